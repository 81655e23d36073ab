//! One shard's state machine: accounts, gross settlement, cycles and netting, receipts.

#![forbid(unsafe_code)]
