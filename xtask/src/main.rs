//! Automation of the repository: `cargo xtask ci | tidy`.

fn main() {}
