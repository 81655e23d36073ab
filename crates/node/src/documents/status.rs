//! pacs.002: what became of a message and of its payments.

use clearspan_iso20022::read::heap::{Ids, transaction, transaction_ids};
use clearspan_iso20022::write::{
    self, Definition, EffectiveDate, OriginalMessage, Status, StatusCount, StatusReason,
    StatusReport, StatusVersion, Sum, status_report_version,
};
use clearspan_ledger::day::{MessageRecord, PaymentStatus};
use clearspan_ledger::message::{MessageKind, Submission};
use clearspan_ledger::query::PaymentView;
use clearspan_ledger::stream::GrossEvent;
use clearspan_ledger::{
    AmountMinor, Currency, CycleNumber, Ledger, LogIndex, MessageNo, PaymentId, PaymentNo, Reason,
    ShardId, Timestamp,
};

use super::{DocumentError, Documents, Found, Sheaf, View};

/// One payment of a report.
#[derive(Default)]
pub(super) struct Line<'p> {
    pub(super) ids: Names<'p>,
    pub(super) id: Option<PaymentId>,
    pub(super) status: Option<Status>,
    pub(super) reason: Option<Reason>,
    /// Stands for the reason's own text where it is not empty.
    pub(super) text: String,
    pub(super) accepted: Option<Timestamp>,
    pub(super) effective: Option<EffectiveDate>,
    pub(super) cycle: Option<CycleNumber>,
    pub(super) finality: Option<write::Finality>,
}

/// The identifiers that a payment's sender gave it.
#[derive(Default)]
pub(super) struct Names<'p> {
    ids: Ids<'p>,
    /// Of a return these are the original payment's, not its own.
    original: bool,
}

impl<'p> Names<'p> {
    pub(super) fn of(kind: MessageKind, body: &'p [u8]) -> Self {
        Self {
            ids: transaction_ids(body),
            original: matches!(kind, MessageKind::Return),
        }
    }

    pub(super) const fn from_ids(ids: Ids<'p>) -> Self {
        Self {
            ids,
            original: false,
        }
    }

    pub(super) fn instruction(&self) -> Option<&str> {
        self.ids
            .instruction
            .as_deref()
            .filter(|id| !self.original && fits(id))
    }

    pub(super) fn end_to_end(&self) -> Option<&str> {
        self.ids
            .end_to_end
            .as_deref()
            .filter(|id| !self.original && fits(id))
    }

    pub(super) fn transaction(&self) -> Option<&str> {
        self.ids.transaction.as_deref().filter(|id| fits(id))
    }
}

/// An identifier of a payment that was refused for it may be longer than its type: it is left out, never cut.
pub(super) fn fits(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= 35
}

impl Line<'_> {
    fn written(&self) -> write::PaymentStatus<'_> {
        write::PaymentStatus {
            instruction_id: self.ids.instruction(),
            end_to_end_id: self.ids.end_to_end(),
            transaction_id: self.ids.transaction(),
            id: self.id.unwrap_or(PaymentId::Transaction(0)),
            status: self.status.unwrap_or(Status::Rejected),
            reason: self.status_reason(),
            accepted: self.accepted,
            effective: self.effective,
            cycle: self.cycle,
            finality: self.finality,
        }
    }

    fn status_reason(&self) -> Option<StatusReason<'_>> {
        if self.reason.is_none() && self.text.is_empty() {
            return None;
        }
        Some(StatusReason {
            code: self.reason.map_or("", Reason::code),
            text: if self.text.is_empty() {
                self.reason.map_or("", Reason::text)
            } else {
                &self.text
            },
        })
    }
}

/// A count and, while all is of one currency, a sum.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    minor: u128,
    currency: Option<Currency>,
    mixed: bool,
}

impl Tally {
    pub(super) fn add(&mut self, amount: AmountMinor, currency: Currency) {
        self.count += 1;
        self.minor += u128::from(amount.minor());
        self.mixed |= self.currency.is_some_and(|known| known != currency);
        self.currency = Some(currency);
    }

    pub(super) fn sum(&self) -> Option<Sum> {
        self.currency
            .filter(|&currency| !self.mixed && currency != Currency::NONE)
            .map(|currency| Sum {
                minor: self.minor,
                exponent: currency.exponent(),
            })
    }

    fn as_status(self, status: Status) -> Option<StatusCount> {
        (self.count > 0).then(|| StatusCount {
            status,
            count: self.count,
            sum: self.sum(),
        })
    }
}

/// A report on one message.
pub(super) struct Report<'r> {
    pub(super) record: &'r MessageRecord,
    pub(super) status: Option<Status>,
    pub(super) reason: Option<StatusReason<'r>>,
    pub(super) counts: Vec<StatusCount>,
    pub(super) lines: Vec<Line<'r>>,
}

impl Report<'_> {
    pub(super) fn add_to(&self, sheaf: &mut Sheaf<'_>) -> Result<(), DocumentError> {
        let record = self.record;
        let definition = Definition {
            kind: record.kind,
            version: record.version,
        };
        let original = OriginalMessage {
            message_id: record.message_id.as_str(),
            definition,
            created: None,
            count: Some(u64::from(record.count)),
            sum: None,
        };
        add_report(
            sheaf,
            status_report_version(record.kind, record.version),
            original,
            (self.status, self.reason),
            &self.counts,
            &self.lines,
        )
    }
}

/// Adds one pacs.002.
pub(super) fn add_report(
    sheaf: &mut Sheaf<'_>,
    version: StatusVersion,
    original: OriginalMessage<'_>,
    (status, reason): (Option<Status>, Option<StatusReason<'_>>),
    counts: &[StatusCount],
    lines: &[Line<'_>],
) -> Result<(), DocumentError> {
    let report = StatusReport {
        version,
        original,
        status,
        reason,
        counts,
    };
    sheaf.add(format!("pacs.002.{}", version.suffix()), |out, head| {
        write::status_report(out, head, &report, lines.iter().map(Line::written));
    })
}

impl<V: View> Documents<'_, V> {
    pub(super) fn message<'l>(
        &self,
        ledger: &'l Ledger,
        shard: ShardId,
        message: MessageNo,
    ) -> Result<&'l MessageRecord, DocumentError> {
        ledger.message(message).ok_or(DocumentError::Missing {
            what: "message",
            shard,
            number: message.get(),
        })
    }

    /// A message was taken in: accepted, refused, or in part. Refused payments are listed, and accepted ones that look
    /// like an earlier payment under another key (rule R3).
    pub(super) fn reception(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        message: MessageNo,
    ) -> Result<(), DocumentError> {
        let record = self.message(found.ledger, found.home, message)?;
        if let Some(reason) = record.refused {
            let refused = StatusCount {
                status: Status::Rejected,
                count: u64::from(record.count),
                sum: None,
            };
            return Report {
                record,
                status: Some(Status::Rejected),
                reason: Some(reason.into()),
                counts: Vec::from_iter((record.count > 0).then_some(refused)),
                lines: Vec::new(),
            }
            .add_to(sheaf);
        }
        let (mut accepted, mut refused) = (Tally::default(), Tally::default());
        let mut listed: Vec<PaymentView> = Vec::new();
        for view in found.ledger.payments_of(message) {
            if view.status == PaymentStatus::Refused {
                refused.add(view.amount, view.currency);
                listed.push(view);
            } else {
                accepted.add(view.amount, view.currency);
                if view.same_content_as.is_some() {
                    listed.push(view);
                }
            }
        }
        // A refused payment's amount may be unreadable, so the refused ones have no sum.
        refused.mixed = true;
        let package = self.package_for(found, message, &listed)?;
        let mut lines = Vec::with_capacity(listed.len());
        for view in &listed {
            let (status, reason, text) = match view.same_content_as {
                _ if view.status == PaymentStatus::Refused => {
                    (Status::Rejected, view.reason, String::new())
                }
                Some(other) => (Status::Accepted, None, self.same_content(found, other)),
                None => (Status::Accepted, None, String::new()),
            };
            lines.push(Line {
                ids: self.names(package.as_deref(), found.home, message, view.position)?,
                id: Some(view.id),
                status: Some(status),
                reason,
                text,
                ..Line::default()
            });
        }
        let status = match (accepted.count, refused.count) {
            (_, 0) => Status::Accepted,
            (0, _) => Status::Rejected,
            _ => Status::Partial,
        };
        let counts = [
            accepted.as_status(Status::Accepted),
            refused.as_status(Status::Rejected),
        ];
        Report {
            record,
            status: Some(status),
            reason: None,
            counts: counts.into_iter().flatten().collect(),
            lines,
        }
        .add_to(sheaf)
    }

    fn same_content(&self, found: &Found<'_>, other: PaymentNo) -> String {
        match found.ledger.payment(other).map(|view| view.id) {
            Some(id @ PaymentId::Uetr(_)) => {
                format!("Accepted; its content equals that of {id} of today.")
            }
            _ => "Accepted; its content equals that of an earlier payment of today.".to_owned(),
        }
    }

    /// The message's package, where there is a payment to be named from it.
    fn package_for(
        &self,
        found: &Found<'_>,
        message: MessageNo,
        listed: &[PaymentView],
    ) -> Result<Option<std::sync::Arc<Submission>>, DocumentError> {
        if listed.is_empty() {
            Ok(None)
        } else {
            self.package(found.home, message).map(Some)
        }
    }

    /// What the sender called a payment.
    pub(super) fn names<'p>(
        &self,
        package: Option<&'p Submission>,
        shard: ShardId,
        message: MessageNo,
        position: u32,
    ) -> Result<Names<'p>, DocumentError> {
        package.map_or_else(
            || Ok(Names::default()),
            |package| {
                let body = body(package, shard, message, position)?;
                Ok(Names::of(package.kind, body))
            },
        )
    }

    /// What became of a gross payment.
    pub(super) fn gross(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        payment: PaymentNo,
        event: GrossEvent,
    ) -> Result<(), DocumentError> {
        let view = found
            .ledger
            .payment(payment)
            .ok_or(DocumentError::Missing {
                what: "payment",
                shard: found.home,
                number: payment.get(),
            })?;
        let record = self.message(found.ledger, found.home, view.message)?;
        let package = self.package(found.home, view.message)?;
        let mut line = Line {
            ids: self.names(Some(&package), found.home, view.message, view.position)?,
            id: Some(view.id),
            accepted: Some(view.entered.time),
            ..Line::default()
        };
        let status = match event {
            GrossEvent::Settled => {
                line.effective = Some(EffectiveDate::At(found.item.time));
                line.finality = Some(finality(found.home, found.item.index));
                Status::Settled
            }
            GrossEvent::Queued { reason } => {
                line.reason = Some(reason);
                Status::Pending
            }
            GrossEvent::Warned => {
                "It still waits at the latest time that was asked for.".clone_into(&mut line.text);
                Status::Pending
            }
            GrossEvent::Refused { reason } => {
                line.reason = Some(reason);
                Status::Rejected
            }
            GrossEvent::Cancelled => {
                "Cancelled by its sender while it waited.".clone_into(&mut line.text);
                Status::Cancelled
            }
        };
        line.status = Some(status);
        Report {
            record,
            // A message of one payment stands where its payment stands.
            status: (record.count == 1).then_some(status),
            reason: None,
            counts: Vec::new(),
            lines: vec![line],
        }
        .add_to(sheaf)
    }

    /// What a cycle made of one message: settled ones by count and sum, dropped ones one by one.
    pub(super) fn netted(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        cycle: CycleNumber,
        message: MessageNo,
        (settled_stated, dropped_stated): (u32, u32),
    ) -> Result<(), DocumentError> {
        let posted = self.cycle_record(found.home, cycle)?;
        let record = self.message(found.ledger, found.home, message)?;
        let currencies = found.ledger.directory().currencies();
        let (mut settled, mut dropped) = (Tally::default(), Tally::default());
        let mut left = Vec::new();
        for payment in found.ledger.cycle_payments_of(cycle, message) {
            let currency = currencies
                .get(usize::from(payment.currency_place))
                .copied()
                .unwrap_or(Currency::NONE);
            if payment.settled {
                settled.add(payment.amount, currency);
            } else {
                dropped.add(payment.amount, currency);
                left.push(payment);
            }
        }
        for (what, stated, derived) in [
            ("settled payments", settled_stated, settled.count),
            ("dropped payments", dropped_stated, dropped.count),
        ] {
            check(what, found, u128::from(stated), u128::from(derived))?;
        }
        let package = if left.is_empty() {
            None
        } else {
            Some(self.package(found.home, message)?)
        };
        let mut lines = Vec::with_capacity(left.len());
        for payment in &left {
            lines.push(Line {
                ids: self.names(package.as_deref(), found.home, message, payment.position)?,
                id: Some(payment.id),
                status: Some(Status::Pending),
                reason: Some(Reason::InsufficientFunds),
                cycle: Some(cycle),
                ..Line::default()
            });
        }
        // The message's own status counts all of its payments: those refused at reception, cancelled, or settled by an
        // earlier cycle too. None of these changes any more.
        let settled_before = found
            .ledger
            .payments_of(message)
            .filter(|view| view.cycle.is_some_and(|earlier| earlier < cycle))
            .count() as u64;
        let stated = u64::from(record.count);
        let settled_count = settled.count + settled_before;
        let status = if settled_count == stated {
            Status::Settled
        } else if dropped.count == stated {
            Status::Pending
        } else {
            Status::Partial
        };
        let text = format!(
            "CYCLE-{cycle}, final at {}:{}, {}",
            found.home, posted.posted, posted.posted_time
        );
        let counts = [
            settled.as_status(Status::Settled),
            dropped.as_status(Status::Pending),
        ];
        Report {
            record,
            status: Some(status),
            reason: Some(StatusReason {
                code: "",
                text: &text,
            }),
            counts: counts.into_iter().flatten().collect(),
            lines,
        }
        .add_to(sheaf)
    }

    /// Payments of a message that no cycle settled before the business day ended.
    pub(super) fn ended(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        message: MessageNo,
    ) -> Result<(), DocumentError> {
        let record = self.message(found.ledger, found.home, message)?;
        let package = self.package(found.home, message)?;
        let mut ended = Tally::default();
        let mut lines = Vec::new();
        for view in found.ledger.payments_of(message) {
            if view.status != PaymentStatus::Ended {
                continue;
            }
            ended.add(view.amount, view.currency);
            lines.push(Line {
                ids: self.names(Some(&package), found.home, message, view.position)?,
                id: Some(view.id),
                status: Some(Status::Rejected),
                reason: view.reason,
                ..Line::default()
            });
        }
        Report {
            record,
            status: (ended.count == u64::from(record.count)).then_some(Status::Rejected),
            reason: None,
            counts: Vec::from_iter(ended.as_status(Status::Rejected)),
            lines,
        }
        .add_to(sheaf)
    }
}

/// A payment's own bytes.
pub(super) fn body(
    package: &Submission,
    shard: ShardId,
    message: MessageNo,
    position: u32,
) -> Result<&[u8], DocumentError> {
    usize::try_from(position)
        .ok()
        .and_then(|at| package.payments.get(at))
        .and_then(|record| transaction(&package.heap, record.body_offset, record.body_len))
        .ok_or(DocumentError::Body {
            shard,
            message,
            position,
        })
}

/// Stated by the item, derived from the state: they must agree, or a receipt would say what did not happen.
pub(super) fn check(
    what: &'static str,
    found: &Found<'_>,
    stated: u128,
    derived: u128,
) -> Result<(), DocumentError> {
    if stated == derived {
        Ok(())
    } else {
        Err(DocumentError::Differs {
            what,
            number: found.item.number,
            stated,
            derived,
        })
    }
}

pub(super) const fn finality(shard: ShardId, index: LogIndex) -> write::Finality {
    write::Finality { shard, index }
}
