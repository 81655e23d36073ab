//! Answers outside the numbered output: to questions (pacs.028, camt.060), and to what was not taken in.
//!
//! # Decided
//! - pacs.028 about messages: one pacs.002 each, with counts by status; payments are listed where they differ from one
//!   another, settled ones left out. About payments: one pacs.002 for each message they came with, then one for those that
//!   are unknown (`RJCT`, `NOOR`). A sender learns of its own payments alone.
//! - camt.060 for camt.052: the account now. For camt.053: the stored statements of the dates asked for (else the last
//!   one), or of the sequence numbers asked for. For camt.054: where `RptgSeq` is given, its ranges are output numbers and
//!   everything stored under them is put out again, whatever it is; else the notices of credits since the last statement.
//!   Stored documents are marked as possible duplicates. More numbers than the settings allow are named in an admi.007.
//! - A message that could not be read is answered with a pacs.002 `RJCT` when it is known which message of which kind
//!   was refused, else with an admi.007; without an addressee there is no answer but the connection's.
//! - Identifiers of these answers are `Q` and a hash over what is answered and the journal position it holds at.

use clearspan_iso20022::read::{
    Fault, OriginalMessage as Asked, ReportRequest, RequestedReport, StatusRequest,
};
use clearspan_iso20022::write::{
    Definition, EffectiveDate, Handled, OriginalMessage, Status, StatusReason, StatusVersion,
    status_report_version,
};
use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::message::{MessageKind, Submission};
use clearspan_ledger::query::{NettingState, PaymentView};
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{
    Bic, Currency, Ledger, ParticipantId, PaymentId, Reason, ShardId, Text, Timestamp,
};

use super::notice::{add_gap, add_notice};
use super::status::{Line, Names, Report, Tally, add_report, finality, fits};
use super::{Document, DocumentError, Documents, Naming, Sheaf, View};

impl<'a, V: View> Documents<'a, V> {
    /// An answer that holds at a replica's journal position.
    fn answer(&self, to: Bic, ledger: &Ledger, about: &str) -> Sheaf<'a> {
        let (index, now) = ledger.position();
        self.answer_at(to, now, &format!("{index}/{about}"))
    }

    fn answer_at(&self, to: Bic, now: Timestamp, about: &str) -> Sheaf<'a> {
        let basis = format!("{to}/{}/{about}", now.ns());
        Sheaf {
            settings: self.settings,
            to,
            created: now,
            possible_duplicate: false,
            naming: Naming::Answer(xxhash_rust::xxh3::xxh3_128(basis.as_bytes())),
            documents: Vec::new(),
        }
    }

    /// Answers a pacs.028: what has become of these messages or payments, as of the home shard's position.
    ///
    /// # Errors
    /// [`DocumentError`]: an unknown sender, or something that this node does not hold.
    pub fn status_answer(&self, request: &StatusRequest) -> Result<Vec<Document>, DocumentError> {
        let (participant, ledger) = self.find_participant(request.sender)?;
        let (_, home) = self.participant(participant)?;
        let mut sheaf = self.answer(request.sender, ledger, request.message_id.as_str());
        if request.payments.is_empty() {
            for original in &request.originals {
                self.message_status(&mut sheaf, (participant, home), ledger, original)?;
            }
        } else {
            self.payment_statuses(&mut sheaf, (participant, home), ledger, request)?;
        }
        Ok(sheaf.documents)
    }

    fn message_status(
        &self,
        sheaf: &mut Sheaf<'_>,
        (participant, home): (ParticipantId, ShardId),
        ledger: &Ledger,
        asked: &Asked,
    ) -> Result<(), DocumentError> {
        let known =
            Text::new(&asked.message_id).and_then(|id| ledger.find_message(participant, &id));
        let Some((message, record)) = known else {
            return unknown(sheaf, Some(asked), Vec::new());
        };
        if record.refused.is_some() || record.kind == MessageKind::Cancellation {
            // What was answered once and for all is answered so again.
            sheaf
                .documents
                .extend(self.repeat_answer(participant, record.answer)?);
            return Ok(());
        }
        let views: Vec<PaymentView> = ledger.payments_of(message).collect();
        let stands: Vec<(Status, Option<Reason>)> =
            views.iter().map(|view| stand(ledger, view)).collect();
        let mut tallies: Vec<(Status, Tally)> = Vec::new();
        for (view, (status, _)) in views.iter().zip(&stands) {
            let at = tallies
                .iter()
                .position(|(known, _)| known == status)
                .unwrap_or_else(|| {
                    tallies.push((*status, Tally::default()));
                    tallies.len() - 1
                });
            tallies[at].1.add(view.amount, view.currency);
        }
        let status = match tallies.as_slice() {
            [(status, _)] => *status,
            _ => Status::Partial,
        };
        let mut listed = Vec::new();
        if tallies.len() > 1 {
            listed.extend(
                views
                    .iter()
                    .zip(&stands)
                    .filter(|(_, (status, _))| *status != Status::Settled),
            );
        }
        let package = if listed.is_empty() {
            None
        } else {
            Some(self.package(home, message)?)
        };
        let mut lines = Vec::with_capacity(listed.len());
        for (view, stand) in listed {
            let names = self.names(package.as_deref(), home, message, view.position)?;
            lines.push(line(names, view, *stand, home));
        }
        let position = position(ledger, home);
        let counts = tallies
            .iter()
            .map(|(status, tally)| clearspan_iso20022::write::StatusCount {
                status: *status,
                count: tally.count,
                sum: tally.sum().filter(|_| *status != Status::Rejected),
            })
            .collect();
        Report {
            record,
            status: Some(status),
            reason: Some(StatusReason {
                code: "",
                text: &position,
            }),
            counts,
            lines,
        }
        .add_to(sheaf)
    }

    fn payment_statuses(
        &self,
        sheaf: &mut Sheaf<'_>,
        (participant, home): (ParticipantId, ShardId),
        ledger: &Ledger,
        request: &StatusRequest,
    ) -> Result<(), DocumentError> {
        let position = position(ledger, home);
        let mut known: Vec<PaymentView> = Vec::new();
        let mut not_known = Vec::new();
        for asked in &request.payments {
            let view = asked
                .id
                .and_then(|id| ledger.find_payment(participant, id))
                .and_then(|payment| ledger.payment(payment));
            match view {
                Some(view) => known.push(view),
                None => not_known.push(asked),
            }
        }
        known.sort_by_key(|view| view.payment);
        known.dedup_by_key(|view| view.payment);
        for of_message in known.chunk_by(|a, b| a.message == b.message) {
            let Some(message) = of_message.first().map(|view| view.message) else {
                continue;
            };
            let record = self.message(ledger, home, message)?;
            let package = self.package(home, message)?;
            let mut lines = Vec::with_capacity(of_message.len());
            for view in of_message {
                let names = self.names(Some(&package), home, message, view.position)?;
                lines.push(line(names, view, stand(ledger, view), home));
            }
            Report {
                record,
                status: None,
                reason: Some(StatusReason {
                    code: "",
                    text: &position,
                }),
                counts: Vec::new(),
                lines,
            }
            .add_to(sheaf)?;
        }
        if not_known.is_empty() {
            return Ok(());
        }
        let lines = not_known
            .iter()
            .map(|asked| {
                let id = asked
                    .uetr
                    .as_deref()
                    .and_then(|uetr| PaymentId::parse_uetr(uetr.as_bytes()));
                let ids = clearspan_iso20022::read::heap::Ids {
                    instruction: asked.instruction.as_deref().map(Into::into),
                    end_to_end: asked.end_to_end.as_deref().map(Into::into),
                    transaction: asked.transaction.as_deref().map(Into::into),
                    ..Default::default()
                };
                Line {
                    ids: Names::from_ids(ids),
                    id,
                    status: Some(Status::Rejected),
                    reason: Some(Reason::OriginalUnknown),
                    ..Line::default()
                }
            })
            .collect();
        let original = not_known
            .iter()
            .find_map(|asked| asked.original.as_ref())
            .or(request.originals.first());
        unknown(sheaf, original, lines)
    }

    /// Answers a camt.060.
    ///
    /// # Errors
    /// As [`Documents::status_answer`].
    pub fn report_answer(&self, request: &ReportRequest) -> Result<Vec<Document>, DocumentError> {
        let (participant, ledger) = self.find_participant(request.sender)?;
        let query = request.message_id.as_str();
        let mut sheaf = self.answer(request.sender, ledger, query);
        let mut budget = self.settings.replay_max_numbers;
        for report in &request.reports {
            let before = sheaf.documents.len();
            match report.message_name.get(..8) {
                Some("camt.052") => {
                    for currency in currencies(ledger, report) {
                        self.interim(&mut sheaf, ledger, participant, currency, query)?;
                    }
                }
                Some("camt.053") => {
                    let numbers = statements(ledger, participant, report);
                    self.replay(&mut sheaf, participant, numbers, &mut budget)?;
                }
                Some("camt.054") => {
                    let numbers = notices(ledger, participant, report);
                    self.replay(&mut sheaf, participant, numbers, &mut budget)?;
                }
                _ => {
                    let text = "Reports served are camt.052, camt.053 and camt.054.";
                    let refused = Handled::Refused(Reason::MessageNotSupported);
                    add_notice(&mut sheaf, query, name(report), refused, text)?;
                }
            }
            if sheaf.documents.len() == before {
                let text = "There is nothing of this kind, account, date or number.";
                let refused = Handled::Refused(Reason::OriginalUnknown);
                add_notice(&mut sheaf, query, name(report), refused, text)?;
            }
        }
        Ok(sheaf.documents)
    }

    /// Stored documents again, as long as the budget lasts.
    fn replay(
        &self,
        sheaf: &mut Sheaf<'_>,
        participant: ParticipantId,
        numbers: impl Iterator<Item = u64>,
        budget: &mut u64,
    ) -> Result<(), DocumentError> {
        for number in numbers {
            if *budget == 0 {
                let reference = format!("{number}-");
                let text =
                    "One request is answered with so many numbers; ask again from this one on.";
                return add_notice(sheaf, &reference, Some("OUTPUT"), Handled::Pending, text);
            }
            *budget -= 1;
            sheaf
                .documents
                .extend(self.documents(participant, number, true)?);
        }
        Ok(())
    }

    /// Answers a message that could not be read. `None` when nobody is known to whom it could be addressed: neither the
    /// message nor the connection named a sender. `now` is the gateway's time, since no journal knows of the message.
    #[must_use]
    pub fn refusal(
        &self,
        fault: &Fault,
        connection: Option<Bic>,
        now: Timestamp,
    ) -> Option<Document> {
        let to = connection.or(fault.sender)?;
        let id = fault.message_id.as_deref().filter(|id| fits(id));
        let about = format!("{}/{fault}", id.unwrap_or_default());
        let mut sheaf = self.answer_at(to, now, &about);
        let text = format!("line {}, {}: {}", fault.line, fault.path, fault.detail);
        let definition = fault.message_name.as_deref().and_then(definition_of);
        let added = match (id, definition) {
            (Some(id), Some(definition)) => {
                let reason = StatusReason {
                    code: fault.reason.code(),
                    text: &text,
                };
                refused(&mut sheaf, id, definition, None, reason)
            }
            _ => add_notice(
                &mut sheaf,
                id.unwrap_or_default(),
                fault.message_name.as_deref().filter(|name| fits(name)),
                Handled::Refused(fault.reason),
                &text,
            ),
        };
        added.ok()?;
        sheaf.documents.pop()
    }

    /// Answers a message that was read and not stored (`Reply::NotTaken`): the sender may send it again.
    ///
    /// # Errors
    /// None is known.
    pub fn not_taken(
        &self,
        submission: &Submission,
        reason: Reason,
        now: Timestamp,
    ) -> Result<Document, DocumentError> {
        let id = submission.message_id.as_str();
        let mut sheaf = self.answer_at(submission.sender, now, &format!("{id}/{reason}"));
        let definition = Definition {
            kind: submission.kind,
            version: submission.version,
        };
        let count = Some(submission.payments.len() as u64);
        refused(&mut sheaf, id, definition, count, reason.into())?;
        only(sheaf)
    }

    /// Answers a message that came before its turn and has no numbered answer: held before, or not kept for lack of
    /// room (`Reply::Held` with answer 0, `Reply::HeldFull`, where `missing_through` is the message's number less one).
    ///
    /// # Errors
    /// None is known.
    pub fn held(
        &self,
        submission: &Submission,
        missing_from: u64,
        missing_through: u64,
        now: Timestamp,
    ) -> Result<Document, DocumentError> {
        let about = format!("{}/{missing_from}-{missing_through}", submission.message_id);
        let mut sheaf = self.answer_at(submission.sender, now, &about);
        add_gap(
            &mut sheaf,
            &submission.message_id,
            missing_from,
            missing_through,
        )?;
        only(sheaf)
    }
}

fn only(mut sheaf: Sheaf<'_>) -> Result<Document, DocumentError> {
    sheaf
        .documents
        .pop()
        .ok_or(DocumentError::TooMany { number: 0 })
}

/// A pacs.002 that refuses a whole message.
fn refused(
    sheaf: &mut Sheaf<'_>,
    message_id: &str,
    definition: Definition,
    count: Option<u64>,
    reason: StatusReason<'_>,
) -> Result<(), DocumentError> {
    let original = OriginalMessage {
        message_id,
        definition,
        created: None,
        count,
        sum: None,
    };
    let version = status_report_version(definition.kind, definition.version);
    add_report(
        sheaf,
        version,
        original,
        (Some(Status::Rejected), Some(reason)),
        &[],
        &[],
    )
}

/// A pacs.002 about what was never received.
fn unknown(
    sheaf: &mut Sheaf<'_>,
    asked: Option<&Asked>,
    lines: Vec<Line<'_>>,
) -> Result<(), DocumentError> {
    let named = asked.and_then(|asked| definition_of(&asked.message_name));
    let version = named.map_or(StatusVersion::V10, |named| {
        status_report_version(named.kind, named.version)
    });
    let original = OriginalMessage {
        message_id: asked
            .map(|asked| asked.message_id.as_str())
            .filter(|id| fits(id))
            .unwrap_or_default(),
        definition: named.unwrap_or(Definition {
            kind: MessageKind::CustomerTransfer,
            version: 8,
        }),
        created: None,
        count: None,
        sum: None,
    };
    let whole = lines.is_empty();
    add_report(
        sheaf,
        version,
        original,
        (
            whole.then_some(Status::Rejected),
            whole.then_some(Reason::OriginalUnknown.into()),
        ),
        &[],
        &lines,
    )
}

/// Where a payment stands now.
fn stand(ledger: &Ledger, view: &PaymentView) -> (Status, Option<Reason>) {
    match view.status {
        PaymentStatus::Refused | PaymentStatus::Ended => (Status::Rejected, view.reason),
        PaymentStatus::Netting => match ledger.netting_state(view.payment) {
            Some(NettingState::Running) => (Status::InProcess, None),
            Some(NettingState::Dropped) => (Status::Pending, Some(Reason::InsufficientFunds)),
            Some(NettingState::Waiting) | None => (Status::Accepted, None),
        },
        PaymentStatus::Settled => (Status::Settled, None),
        PaymentStatus::Queued => (Status::Pending, view.reason),
        PaymentStatus::Cancelled => (Status::Cancelled, None),
        PaymentStatus::Claiming => (Status::Pending, None),
    }
}

fn line<'p>(
    ids: Names<'p>,
    view: &PaymentView,
    (status, reason): (Status, Option<Reason>),
    home: ShardId,
) -> Line<'p> {
    let text = if view.status == PaymentStatus::Claiming {
        "The return waits for the original payment's shard to grant it.".to_owned()
    } else {
        String::new()
    };
    Line {
        ids,
        id: Some(view.id),
        status: Some(status),
        reason,
        text,
        accepted: Some(view.entered.time),
        effective: view.settled.map(|settled| EffectiveDate::At(settled.time)),
        cycle: view.cycle,
        finality: view.settled.map(|settled| finality(home, settled.index)),
    }
}

fn position(ledger: &Ledger, home: ShardId) -> String {
    format!("As of journal position {home}:{}.", ledger.position().0)
}

/// `pacs.008.001.08` of the messages that move money or ask for it back.
fn definition_of(name: &str) -> Option<Definition> {
    let kind = MessageKind::ALL
        .into_iter()
        .find(|kind| name.get(..8) == Some(kind.name()))?;
    let version = name.get(8..)?.strip_prefix(".001.")?.parse().ok()?;
    (version < 100).then_some(Definition { kind, version })
}

fn name(report: &RequestedReport) -> Option<&str> {
    Some(report.message_name.as_str()).filter(|name| fits(name))
}

/// The currency asked for, else all that are served.
fn currencies(ledger: &Ledger, report: &RequestedReport) -> Vec<Currency> {
    report
        .currency
        .map_or_else(|| ledger.directory().currencies().to_vec(), |one| vec![one])
}

fn within(ranges: &[(Option<u64>, Option<u64>)], number: u64) -> bool {
    ranges.iter().any(|(from, through)| {
        from.is_none_or(|from| from <= number) && through.is_none_or(|through| number <= through)
    })
}

/// Output numbers of the statements asked for.
fn statements<'l>(
    ledger: &'l Ledger,
    participant: ParticipantId,
    report: &'l RequestedReport,
) -> impl Iterator<Item = u64> + use<'l> {
    let all: Vec<(u64, &clearspan_ledger::stream::Statement)> = ledger
        .stream(participant)
        .into_iter()
        .flat_map(|stream| stream.iter())
        .filter_map(|item| match &item.body {
            ItemBody::Statement(statement)
                if report
                    .currency
                    .is_none_or(|currency| currency == statement.currency) =>
            {
                Some((item.number, &**statement))
            }
            _ => None,
        })
        .collect();
    let newest = all.last().map(|(_, statement)| statement.date);
    let dated = report.from_date.is_some() || report.to_date.is_some();
    all.into_iter()
        .filter(move |(_, statement)| {
            if !report.sequences.is_empty() {
                within(&report.sequences, u64::from(statement.sequence))
            } else if dated {
                report.from_date.is_none_or(|from| from <= statement.date)
                    && report.to_date.is_none_or(|to| statement.date <= to)
            } else {
                newest == Some(statement.date)
            }
        })
        .map(|(number, _)| number)
}

/// Output numbers: those asked for, else of the credits since the last statement.
fn notices<'l>(
    ledger: &'l Ledger,
    participant: ParticipantId,
    report: &'l RequestedReport,
) -> impl Iterator<Item = u64> + use<'l> {
    let since = ledger.day_first_number(participant).unwrap_or(1);
    ledger
        .stream(participant)
        .into_iter()
        .flat_map(|stream| stream.iter())
        .flat_map(|item| {
            (item.number..item.number + u64::from(item.pages)).map(move |number| (number, item))
        })
        .filter(move |(number, item)| {
            if !report.sequences.is_empty() {
                return within(&report.sequences, *number);
            }
            let of = |currency| report.currency.is_none_or(|asked| asked == currency);
            *number >= since
                && match &item.body {
                    ItemBody::GrossCredit(advice) => of(advice.currency),
                    ItemBody::Funded { currency, .. } | ItemBody::NetCredits { currency, .. } => {
                        of(*currency)
                    }
                    _ => false,
                }
        })
        .map(|(number, _)| number)
}
