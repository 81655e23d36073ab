//! The public interface of one node as a real process: what it holds against those who send too much, too slowly, or what is
//! not quite HTTP.

#![expect(clippy::unwrap_used, reason = "a test that finds nothing fails")]

mod http;
mod node;
mod rate;
mod raw;
