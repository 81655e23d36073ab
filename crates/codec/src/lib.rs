//! Every byte layout that outlives a process or leaves it for another node: entries of the journal (which are also what the
//! package store keeps), heaps, participants' compact packages, snapshots, frames.
//!
//! All integers are little-endian, lengths are 32 bits, and each layout begins with its kind and version. What reads them
//! takes bytes from a disk or a peer: it can always say no, and never panics. Checksums belong to whoever stores or sends
//! (`storage`, frames). `docs/format.md` draws the layouts; golden files in `tests/golden` hold them still.

#![forbid(unsafe_code)]

mod bytes_io;
pub mod entry;
pub mod frame;
pub mod heap;
pub mod nodes;
pub mod package;
pub mod snapshot;

pub use bytes_io::DecodeError;
