//! What the verifier can hold against a file: one variant per kind, with the place and the figures.

use crate::figures::{Digest, Minor};
use serde::Serialize;

/// One thing that is wrong. `line` counts from 1 and includes the header line of `inputs.csv`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the message of a variant says what it and its fields mean"
)]
pub enum Finding {
    // The files.
    #[error("{file} cannot be read: {cause}")]
    Unreadable { file: String, cause: String },
    #[error("{file} line {line} is malformed: {cause}")]
    Malformed {
        file: String,
        line: u64,
        cause: String,
    },
    #[error("{file} is not in canonical form")]
    NotCanonical { file: String },
    #[error("{file} is {format:?} version {version}, which this verifier does not know")]
    Unsupported {
        file: String,
        format: String,
        version: u32,
    },
    #[error("{path} does not belong where it stands: {cause}")]
    Misplaced { path: String, cause: String },
    #[error("{file} should have the digest {expected} and has {found}")]
    FileDigest {
        file: String,
        expected: Digest,
        found: Digest,
    },
    #[error("{document} states the digest {found} and its contents give {expected}")]
    OwnDigest {
        document: String,
        expected: Digest,
        found: Digest,
    },
    #[error("{document} should follow {expected:?} and follows {found:?}")]
    ChainBreak {
        document: String,
        expected: Option<Digest>,
        found: Option<Digest>,
    },
    #[error("{document} is of cluster {found:?}, the one before of {expected:?}")]
    OtherCluster {
        document: String,
        expected: String,
        found: String,
    },

    // The certificate's frame.
    #[error("certificate field {field} is not sound: {cause}")]
    Field { field: &'static str, cause: String },
    #[error(
        "shard {shard}: {later} at log index {later_index} comes before {earlier} at {earlier_index}"
    )]
    LogOrder {
        shard: u32,
        earlier: &'static str,
        earlier_index: u64,
        later: &'static str,
        later_index: u64,
    },
    #[error("shard {shard} has no {what} in the certificate")]
    ShardMissing { shard: u32, what: &'static str },

    // The lines of inputs.csv.
    #[error("line {line}: the payments of {participant} in {currency} were listed before")]
    ListReappears {
        line: u64,
        participant: String,
        currency: String,
    },
    #[error(
        "line {line}: {participant} in {currency} is at position {found} where {expected} is due"
    )]
    PositionGap {
        line: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },
    #[error("line {line}: {participant} in {currency} comes back to package {unit}")]
    UnitReappears {
        line: u64,
        participant: String,
        currency: String,
        unit: u64,
    },
    #[error("line {line}: this payment of {participant} stands at line {first_line} too")]
    DuplicatePayment {
        line: u64,
        first_line: u64,
        participant: String,
    },
    #[error("line {line}: this payment of {participant} settled in cycle {cycle} of the same date")]
    SettledBefore {
        line: u64,
        participant: String,
        cycle: u64,
    },
    #[error(
        "line {line}: {participant} in {currency} does not begin with what the cycle before dropped, in its order"
    )]
    OrderLost {
        line: u64,
        participant: String,
        currency: String,
    },
    #[error("line {line}: the certificate has no account of {participant} in {currency}")]
    UnknownAccount {
        line: u64,
        participant: String,
        currency: String,
    },
    #[error("line {line}: {participant} is listed by shard {found}, its home is {expected}")]
    WrongShard {
        line: u64,
        participant: String,
        expected: u32,
        found: u32,
    },
    #[error("line {line}: {participant} pays itself in {currency}")]
    SelfPayment {
        line: u64,
        participant: String,
        currency: String,
    },
    #[error(
        "line {line}: {participant} in {currency} settles position {position} after a dropped one"
    )]
    NotPrefix {
        line: u64,
        participant: String,
        currency: String,
        position: u64,
    },
    #[error(
        "line {line}: {participant} nets by package and package {unit} in {currency} is settled in part"
    )]
    UnitSplit {
        line: u64,
        participant: String,
        currency: String,
        unit: u64,
    },

    // Sums, counts, balances.
    #[error("total {figure} in {currency} should be {expected} and is {found}")]
    Total {
        currency: String,
        figure: &'static str,
        expected: Minor,
        found: Minor,
    },
    #[error("{figure} of {participant} in {currency} should be {expected} and is {found}")]
    AccountFigure {
        participant: String,
        currency: String,
        figure: &'static str,
        expected: Minor,
        found: Minor,
    },
    #[error("net of {participant} in {currency} should be {expected} (in - out) and is {found}")]
    Net {
        participant: String,
        currency: String,
        expected: Minor,
        found: Minor,
    },
    #[error("net positions in {currency} sum to {found} instead of 0")]
    NetsDoNotBalance { currency: String, found: Minor },
    #[error(
        "closing balance of {participant} in {currency} should be {expected} (opening + net) and is {found}"
    )]
    Closing {
        participant: String,
        currency: String,
        expected: Minor,
        found: Minor,
    },
    #[error(
        "{participant} in {currency} closes at {closing}, below its credit line of {credit_line}"
    )]
    BelowFloor {
        participant: String,
        currency: String,
        closing: Minor,
        credit_line: Minor,
    },
    #[error("{participant} in {currency} settles a net of {net} with {available} available")]
    Unfunded {
        participant: String,
        currency: String,
        available: Minor,
        net: Minor,
    },

    // The rounds.
    #[error("round {expected} is due and the record says {found}")]
    RoundNumber { expected: u64, found: u64 },
    #[error("the certificate has no rounds")]
    NoRounds,
    #[error("the last round, {round}, still drops payments")]
    LastRoundDrops { round: u64 },
    #[error("round {round} drops nothing and is not the last")]
    IdleRound { round: u64 },
    #[error(
        "round {round} drops payments of {participant} in {currency}, which has no such account"
    )]
    DropUnknown {
        round: u64,
        participant: String,
        currency: String,
    },
    #[error("round {round} drops payments of {participant} in {currency} twice")]
    DropTwice {
        round: u64,
        participant: String,
        currency: String,
    },
    #[error(
        "round {round}: {figure} of {participant} in {currency} should be {expected} and is {found}"
    )]
    DropFigure {
        round: u64,
        participant: String,
        currency: String,
        figure: &'static str,
        expected: Minor,
        found: Minor,
    },
    #[error(
        "round {round} drops payments of {participant} in {currency}, which is not short: {surplus} is left"
    )]
    DropNeedless {
        round: u64,
        participant: String,
        currency: String,
        surplus: Minor,
    },
    #[error(
        "round {round} drops {found} payments of {participant} in {currency}, {expected} are enough"
    )]
    DropTooMany {
        round: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },
    #[error(
        "round {round} drops {found} payments of {participant} in {currency}, it takes {expected}"
    )]
    DropTooFew {
        round: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },
    #[error("round {round} leaves {participant} in {currency} short by {shortfall}")]
    ShortfallIgnored {
        round: u64,
        participant: String,
        currency: String,
        shortfall: Minor,
    },
    #[error(
        "line {line}: the rounds leave {expected} payments of {participant} in {currency}, {found} are settled"
    )]
    OutcomeMismatch {
        line: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },

    // The greatest set.
    #[error(
        "line {line}: {participant} in {currency} could settle {expected} payments and settles {found}"
    )]
    NotGreatest {
        line: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },
    #[error(
        "line {line}: {participant} in {currency} can settle {expected} payments and settles {found}"
    )]
    BeyondGreatest {
        line: u64,
        participant: String,
        currency: String,
        expected: u64,
        found: u64,
    },

    // The statements.
    #[error("{date} line {line}: {participant} in {currency} is out of order")]
    StatementOrder {
        date: String,
        line: u64,
        participant: String,
        currency: String,
    },
    #[error(
        "{date} line {line}: {figure} of {participant} in {currency} should be {expected} and is {found}"
    )]
    StatementFigure {
        date: String,
        line: u64,
        participant: String,
        currency: String,
        figure: &'static str,
        expected: Minor,
        found: Minor,
    },
    #[error(
        "{date}: {participant} in {currency} closed the day before at {closing} and has no statement"
    )]
    StatementMissing {
        date: String,
        participant: String,
        currency: String,
        closing: Minor,
    },
    #[error(
        "{date}: {participant} in {currency} was moved by cycles ({netted}) and has no statement"
    )]
    NettedWithoutStatement {
        date: String,
        participant: String,
        currency: String,
        netted: Minor,
    },
    #[error("{date}: {figure} in {currency} should be {expected} and is {found}")]
    DayFigure {
        date: String,
        currency: String,
        figure: &'static str,
        expected: Minor,
        found: Minor,
    },

    // The list itself.
    #[error("{more} more findings are not shown")]
    Truncated { more: u64 },
}

/// Findings of one file set. One wrong file can be wrong a million times; a reader is helped by the first few.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    more: u64,
}

/// Findings kept per cycle or day.
const FINDINGS_MAX: usize = 200;

impl Findings {
    pub(crate) fn push(&mut self, finding: Finding) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(finding);
        } else {
            self.more += 1;
        }
    }

    /// True when another finding would only be counted.
    pub(crate) fn is_full(&self) -> bool {
        self.list.len() >= FINDINGS_MAX
    }

    pub(crate) fn into_vec(mut self) -> Vec<Finding> {
        if self.more > 0 {
            self.list.push(Finding::Truncated { more: self.more });
        }
        self.list
    }
}
