//! What a day's statements say. Layout and canonical form: `docs/format/certificate.md`.

use crate::certificate::digest_without_tail;
use crate::figures::{Digest, Minor};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Value of [`Day::format`].
pub const DAY_FORMAT: &str = "clearspan-statement-day";

/// Highest version of the day summary and its statements this code reads, and the one it writes.
pub const DAY_VERSION: u32 = 1;

/// One settlement account over one business date: one line of `statements.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// Account holder.
    pub participant: String,
    /// Currency of the account.
    pub currency: String,
    /// Business date, `YYYY-MM-DD`.
    pub business_date: String,
    /// Statement number of this account, from 1 without holes.
    pub sequence: u64,
    /// Balance when the business date opened: the closing balance of the statement before.
    pub opening_minor: Minor,
    /// Postings that lowered the balance; a cycle posts one net movement.
    pub debits: u64,
    /// Their sum, not negative.
    pub debits_minor: Minor,
    /// Postings that raised the balance.
    pub credits: u64,
    /// Their sum, not negative.
    pub credits_minor: Minor,
    /// The part of `credits - debits` that cycles posted: the sum of this account's `net_minor` over the date's certificates.
    pub netted_minor: Minor,
    /// Balance when the business date closed: `opening - debits + credits`.
    pub closing_minor: Minor,
    /// First number of the participant's output stream that belongs to this date.
    pub first_output: u64,
    /// Last such number; `first_output - 1` when there was no output.
    pub last_output: u64,
    /// Digest of this account's statement before; none for its first.
    pub previous: Option<Digest>,
    /// BLAKE3 of the canonical JSON of everything above.
    pub digest: Digest,
}

/// The day as a whole: `day.json`, beside the statements it sums up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Day {
    /// [`DAY_FORMAT`].
    pub format: String,
    /// [`DAY_VERSION`].
    pub version: u32,
    /// Cluster whose books these are.
    pub cluster: String,
    /// Business date, `YYYY-MM-DD`.
    pub business_date: String,
    /// Statements in `statements.jsonl`.
    pub statements: u64,
    /// BLAKE3 of the bytes of `statements.jsonl`.
    pub statements_blake3: Digest,
    /// Per currency, what entered and left the books and what travelled between shards.
    pub currencies: BTreeMap<String, DayCurrency>,
    /// Digest of the day before this one; none for the first of a cluster.
    pub previous: Option<Digest>,
    /// BLAKE3 of the canonical JSON of everything above.
    pub digest: Digest,
}

/// One currency of a day: accounts and transit together change by the central bank's movements alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DayCurrency {
    /// Net of the central bank's funding (positive) and defunding (negative).
    pub central_bank_minor: Minor,
    /// Credit advices debited and not yet credited when the date opened.
    pub in_transit_opening_minor: Minor,
    /// The same when the date closed.
    pub in_transit_closing_minor: Minor,
}

impl Statement {
    /// The canonical JSON: compact, fields in declaration order, no line end.
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

impl Day {
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
