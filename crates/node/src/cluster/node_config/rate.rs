//! `[rate]` of `node.toml`: how much participants may hand in at this node.

use std::collections::BTreeMap;

use clearspan_ledger::Bic;
use serde::Deserialize;
use toml::Spanned;

use super::{Fault, number, size};
use crate::rate::{Rate, RateLimits};

/// Above this a rate is a mistake in the unit.
const PAYMENTS_MAX_PER_S: u64 = 1_000_000_000;
/// Above this no line is as fast: 1 TiB.
const MIB_PER_S_MAX: u64 = 1 << 20;
/// Below this no message is saved up for, above it no rate is held.
const BURST_MS: (u64, u64) = (100, 3_600_000);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRate {
    payments_per_s: Option<Spanned<u64>>,
    mib_per_s: Option<Spanned<u64>>,
    node_payments_per_s: Option<Spanned<u64>>,
    burst_ms: Option<Spanned<u64>>,
    urgent_percent: Option<Spanned<u64>>,
    #[serde(default)]
    participant: BTreeMap<String, Spanned<FileParticipantRate>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileParticipantRate {
    payments_per_s: Option<Spanned<u64>>,
    mib_per_s: Option<Spanned<u64>>,
}

fn payments(what: &str, setting: Option<&Spanned<u64>>, default: u64) -> Result<u64, Fault> {
    number(what, setting, default, 0, PAYMENTS_MAX_PER_S)
}

fn rate(
    payments_per_s: Option<&Spanned<u64>>,
    mib_per_s: Option<&Spanned<u64>>,
    usual: Rate,
) -> Result<Rate, Fault> {
    Ok(Rate {
        payments_per_s: payments("payments_per_s", payments_per_s, usual.payments_per_s)?,
        bytes_per_s: size("mib_per_s", mib_per_s, usual.bytes_per_s, 0, MIB_PER_S_MAX)?,
    })
}

impl FileRate {
    pub(super) fn check(&self) -> Result<RateLimits, Fault> {
        let usual = RateLimits::default();
        let each = rate(
            self.payments_per_s.as_ref(),
            self.mib_per_s.as_ref(),
            usual.each,
        )?;
        let mut named = BTreeMap::new();
        for (code, participant) in &self.participant {
            let offset = participant.span().start;
            let bic = Bic::parse(code.as_bytes())
                .ok_or_else(|| (offset, format!("{code:?} is not a BIC")))?;
            let participant = participant.get_ref();
            let own = rate(
                participant.payments_per_s.as_ref(),
                participant.mib_per_s.as_ref(),
                each,
            )?;
            if named.insert(bic, own).is_some() {
                return Err((offset, format!("{bic} stands here a second time")));
            }
        }
        let (burst_min_ms, burst_max_ms) = BURST_MS;
        let burst_ms = number(
            "burst_ms",
            self.burst_ms.as_ref(),
            usual.burst_ns / 1_000_000,
            burst_min_ms,
            burst_max_ms,
        )?;
        let percent = number(
            "urgent_percent",
            self.urgent_percent.as_ref(),
            usual.reserved_percent.into(),
            0,
            90,
        )?;
        Ok(RateLimits {
            each,
            named,
            node_payments_per_s: payments(
                "node_payments_per_s",
                self.node_payments_per_s.as_ref(),
                usual.node_payments_per_s,
            )?,
            burst_ns: burst_ms * 1_000_000,
            reserved_percent: u8::try_from(percent).unwrap_or(usual.reserved_percent),
        })
    }
}
