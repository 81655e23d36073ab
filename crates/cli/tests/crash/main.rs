//! What is left when the process, the disk or the power goes away at the worst moment. The real binary runs small business
//! days, is killed, and goes on; what it ends at is compared with a run that nobody disturbed.
//!
//! Reliability promises held here: F1 (killed at random), F2 (killed at every labelled place), F12 (power cut), F17 (a
//! failed fsync ends the process), F18 (a full disk refuses intake and recovers), I2 (nothing acknowledged is lost), I3
//! (nothing twice), I17 (damage is named, never skipped).

#![forbid(unsafe_code)]

mod damage;
mod days;
mod disk_full;
mod fsync;
mod kills;
mod labels;
mod outcome;
mod power_cut;
mod process;
mod rng;
mod volume;
