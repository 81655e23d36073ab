//! Certificates of netting cycles and statements of business days, written for `audit` to verify.
//!
//! Everything stands in the shards' states: the coordinator's summary of a cycle, each shard's set and results, and the
//! statements in participants' outputs. Payments are streamed into `inputs.csv`, one shard at a time; what is held in
//! memory is 16 bytes for each payment of one shard's set.
//!
//! # Decided
//! - The cluster's name is its random identity in 32 hexadecimal digits.
//! - A participant whose payments were all dropped before the last round, and that receives nothing, is not asked in that
//!   round what it has available; what it had at its last drop stands there.
//! - Statements of a day cover the output up to the participant's last statement of the date, statements included, so
//!   that one day's numbers end where the next one's begin.

mod cycle;
mod day;
#[cfg(test)]
mod tests;

pub use cycle::{assemble, last_certificate, write};
pub use day::write_statements;

use clearspan_ledger::{CycleNumber, Ledger, ShardId};

use crate::documents::{DocumentError, View};

/// Why a certificate or a day's statements could not be written.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The cycle has not ended in this node's view, was given up, or is beyond retention.
    #[error("cycle {cycle} is not a settled cycle here, not yet or no longer")]
    NotSettled {
        /// The cycle.
        cycle: CycleNumber,
    },
    /// A shard's replica is behind the coordinator's, or its retention has ended.
    #[error("shard {shard} has no record of cycle {cycle}, not yet or no longer")]
    ShardBehind {
        /// The shard.
        shard: ShardId,
        /// The cycle.
        cycle: CycleNumber,
    },
    /// Not all shards have formed the statements of the date, or they are beyond retention.
    #[error("the statements of {date} are not complete here, not yet or no longer")]
    DayNotClosed {
        /// The business date.
        date: clearspan_ledger::BusinessDate,
    },
    /// The cluster has no genesis yet.
    #[error("no genesis yet")]
    NoGenesis,
    /// A payment's identifier or a movement could not be derived.
    #[error("derive what the certificate states")]
    Document(#[from] DocumentError),
    /// The files could not be written.
    #[error("write the audit files")]
    Write(#[from] clearspan_audit::WriteError),
    /// The chain's newest link could not be read.
    #[error("read {path}")]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The chain's newest link is not what it should be.
    #[error("{path} is damaged")]
    Damaged {
        /// The file.
        path: std::path::PathBuf,
        /// What the decoder said.
        source: serde_json::Error,
    },
}

fn shards<V: View>(view: &V) -> impl Iterator<Item = (ShardId, &Ledger)> {
    (0..view.shards())
        .map(ShardId::new)
        .map(|shard| (shard, view.ledger(shard)))
}

fn cluster_name(ledger: &Ledger) -> Result<String, CertificateError> {
    ledger
        .genesis()
        .map(|genesis| format!("{:032x}", genesis.cluster))
        .ok_or(CertificateError::NoGenesis)
}

fn signed(minor: u128) -> i128 {
    // Sums of amounts of 18 digits over fewer than 2^32 payments stay far below 2^127.
    i128::try_from(minor).unwrap_or(i128::MAX)
}
