//! What the layouts promise: bytes that outlive a process stay as they are, and bytes from outside never panic.

mod damage;
mod frames;
mod golden;
mod samples;
