//! What a cycle certificate says. Layout and canonical form: `docs/format/certificate.md`.

use crate::figures::{Digest, Minor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of [`Certificate::format`].
pub const CERTIFICATE_FORMAT: &str = "clearspan-cycle-certificate";

/// Highest certificate version this code reads and the one it writes.
pub const CERTIFICATE_VERSION: u32 = 1;

/// The public account of one netting cycle: what went in, what came out, and which shortfall excluded what.
///
/// Field order is part of the format: the digest is taken over the JSON text in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`CERTIFICATE_FORMAT`].
    pub format: String,
    /// [`CERTIFICATE_VERSION`].
    pub version: u32,
    /// Cluster that ran the cycle.
    pub cluster: String,
    /// Business date, `YYYY-MM-DD`.
    pub business_date: String,
    /// Cycle number, from 1, growing within a business date; an abandoned cycle leaves a hole.
    pub cycle: u64,
    /// Currencies of the cycle and their number of decimals (EUR 2, JPY 0). Each is a netting problem of its own.
    pub currencies: BTreeMap<String, u8>,
    /// Per shard, the log index of the cut that fixed its part of the set.
    pub cuts: BTreeMap<u32, u64>,
    /// The commit point: coordinator shard and log index.
    pub decided: LogPosition,
    /// Per shard, the log index at which the result was posted; finality of every settled payment of that shard.
    pub posts: BTreeMap<u32, u64>,
    /// BLAKE3 of the bytes of `inputs.csv`.
    pub inputs_blake3: Digest,
    /// Per currency, what went in, settled and was dropped.
    pub totals: BTreeMap<String, Totals>,
    /// Every participant with a payment in the set, sent or received, by its name in `inputs.csv`. Others may be listed.
    pub participants: BTreeMap<String, Participant>,
    /// The reservation rounds in order; the last one dropped nothing.
    pub rounds: Vec<Round>,
    /// Digest of the certificate before this one, over business dates; none for the first of a cluster.
    pub previous: Option<Digest>,
    /// BLAKE3 of the canonical JSON of everything above.
    pub digest: Digest,
}

/// A log index, always with its shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogPosition {
    /// Shard whose log it is.
    pub shard: u32,
    /// Index in that log, from 1.
    pub index: u64,
}

/// A number of payments and the sum of their amounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Payments.
    pub count: u64,
    /// Sum of their amounts.
    pub sum_minor: Minor,
}

/// One currency of a cycle: `set = settled + dropped`, by count and by sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Payments the cut put into the set.
    pub set: Tally,
    /// Payments that settled.
    pub settled: Tally,
    /// Payments that stay queued for the next cycle.
    pub dropped: Tally,
}

/// One participant of a cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Participant {
    /// Home shard: the only one that lists payments of this sender.
    pub shard: u32,
    /// What is dropped at a time when its funds are short.
    pub nets_by: NetsBy,
    /// Its settlement accounts by currency.
    pub accounts: BTreeMap<String, Account>,
}

/// What a participant drops at a time when its funds are short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NetsBy {
    /// Single payments, from the last.
    Payment,
    /// All payments of one package in this currency together, from the last package.
    Package,
}

/// One settlement account in a cycle. All sums cover settled payments unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Balance just before the post entry of its shard.
    pub opening_minor: Minor,
    /// What it paid.
    pub out_minor: Minor,
    /// What it was paid.
    pub in_minor: Minor,
    /// `in - out`: the one movement posted.
    pub net_minor: Minor,
    /// Balance just after: `opening + net`.
    pub closing_minor: Minor,
    /// Agreed overdraft at the post entry: the balance floor is its negative.
    pub credit_line_minor: Minor,
    /// Balance plus credit line less what was reserved for other purposes, as the last round saw it.
    pub available_minor: Minor,
    /// Its payments in the set, as sender.
    pub set: Tally,
    /// Its payments that settled, as sender.
    pub settled: Tally,
    /// Its payments that were dropped, as sender.
    pub dropped: Tally,
    /// Settled payments it received.
    pub received_count: u64,
}

/// One reservation round: every shard checked its net payers against the same vectors of all shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Round number, from 1 without holes.
    pub round: u64,
    /// What was dropped; at most one record per participant and currency.
    pub drops: Vec<Dropped>,
}

/// A participant's last payments leaving the cycle because its funds were short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    /// Sender that was short.
    pub participant: String,
    /// In which currency.
    pub currency: String,
    /// Balance plus credit line less other reservations, when its shard answered this round.
    pub available_minor: Minor,
    /// Its payments still in the cycle at the start of the round.
    pub out_before_minor: Minor,
    /// Payments of others to it still in the cycle at the start of the round.
    pub in_before_minor: Minor,
    /// `out_before - in_before - available`, above zero.
    pub shortfall_minor: Minor,
    /// Payments dropped: the fewest from the tail that cover the shortfall, or all.
    pub dropped_count: u64,
    /// Sum of their amounts.
    pub dropped_sum_minor: Minor,
}

impl Certificate {
    /// The canonical JSON: compact, fields in declaration order, maps in key order, no line end.
    ///
    /// # Errors
    /// What the encoder says; none is known for this type.
    pub fn to_canonical_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(self)
    }

    /// The digest its other fields call for, whatever [`Self::digest`] holds.
    ///
    /// # Errors
    /// What the encoder says; none is known for this type.
    pub fn computed_digest(&self) -> serde_json::Result<Digest> {
        self.to_canonical_json()
            .map(|json| digest_without_tail(&json))
    }
}

/// Digest of a canonical JSON object whose last field is its own digest: over the object with that field cut off.
pub(crate) fn digest_without_tail(json: &[u8]) -> Digest {
    // `,"digest":"` + 64 digits + `"}`
    const TAIL_LEN_BYTES: usize = 11 + 64 + 2;
    let body = json
        .len()
        .checked_sub(TAIL_LEN_BYTES)
        .and_then(|len| json.get(..len));
    let mut hasher = blake3::Hasher::new();
    hasher.update(body.expect("an object that ends with its digest is longer than that field"));
    hasher.update(b"}");
    Digest::from(*hasher.finalize().as_bytes())
}
