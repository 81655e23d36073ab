//! `[rate]` of `node.toml`: how much participants may hand in at this node.

use std::collections::BTreeMap;

use clearspan_ledger::Bic;
use serde::Deserialize;
use toml::Spanned;

use crate::cluster::keys::{self, Fault};
use crate::rate::{Rate, RateLimits};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileRate {
    payments_per_s: Option<Spanned<i64>>,
    mib_per_s: Option<Spanned<i64>>,
    node_payments_per_s: Option<Spanned<i64>>,
    burst_ms: Option<Spanned<i64>>,
    urgent_percent: Option<Spanned<i64>>,
    #[serde(default)]
    participant: BTreeMap<String, Spanned<FileParticipantRate>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileParticipantRate {
    payments_per_s: Option<Spanned<i64>>,
    mib_per_s: Option<Spanned<i64>>,
}

impl FileRate {
    pub(super) fn check(&self) -> Result<RateLimits, Fault> {
        let each = Rate {
            payments_per_s: keys::EACH_PAYMENTS.number(self.payments_per_s.as_ref())?,
            bytes_per_s: keys::EACH_MIB.bytes(self.mib_per_s.as_ref())?,
        };
        let mut named = BTreeMap::new();
        for (code, participant) in &self.participant {
            let offset = participant.span().start;
            let bic = Bic::parse(code.as_bytes())
                .ok_or_else(|| (offset, format!("{code:?} is not a BIC")))?;
            let participant = participant.get_ref();
            let payments = keys::OWN_PAYMENTS.given(participant.payments_per_s.as_ref())?;
            let mib = participant.mib_per_s.as_ref();
            let own = Rate {
                payments_per_s: payments.unwrap_or(each.payments_per_s),
                bytes_per_s: match mib {
                    None => each.bytes_per_s,
                    given => keys::OWN_MIB.bytes(given)?,
                },
            };
            if named.insert(bic, own).is_some() {
                return Err((offset, format!("{bic} stands here a second time")));
            }
        }
        let percent = keys::URGENT_PERCENT.number(self.urgent_percent.as_ref())?;
        Ok(RateLimits {
            each,
            named,
            node_payments_per_s: keys::NODE_PAYMENTS.number(self.node_payments_per_s.as_ref())?,
            burst_ns: keys::BURST.number(self.burst_ms.as_ref())? * 1_000_000,
            // The range of the key fits.
            reserved_percent: u8::try_from(percent).unwrap_or(u8::MAX),
        })
    }
}
