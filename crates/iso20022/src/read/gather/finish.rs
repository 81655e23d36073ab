//! The message at its end: counts, sums, doubles, and what is handed over.

use std::mem;

use bytes::Bytes;
use clearspan_ledger::message::{MessageKind, PaymentRecord, Settlement, Submission};
use clearspan_ledger::{Bic, Currency, PaymentId, Reason, Text};

use super::{
    Definition, Field, Gather, Incoming, Mark, Place, ReportRequest, Spot, StatusRequest, Stop,
    Submitted, values,
};

impl Gather<'_> {
    /// The message is read: compares counts and sums, and hands everything over.
    pub(crate) fn finish(
        &mut self,
        digest: u128,
        heap: Vec<u8>,
        end: &dyn Place,
    ) -> Result<(Incoming, Vec<Mark>), Stop> {
        let Some((definition, version)) = self.definition else {
            return Err(Stop::new(
                end.at(),
                Reason::Syntax,
                "no Document of a message that is known by its namespace",
            ));
        };
        if self
            .header
            .as_ref()
            .is_some_and(|header| header.from.is_none())
        {
            self.fault(
                end,
                Reason::HeaderMismatch,
                "the business header names no sender by BIC",
            );
        }
        if let Some(stop) = self.fatal.take() {
            return Err(stop);
        }
        let Some(message_id) = self.message_id.as_deref().and_then(Text::new) else {
            return Err(Stop::new(
                end.at(),
                Reason::MessageIdInvalid,
                "no message identifier",
            ));
        };
        let Some(sender) = self.sender() else {
            return Err(Stop::new(
                end.at(),
                Reason::SenderUnknown,
                "nothing names the sender by BIC",
            ));
        };
        // The header may have come behind the document.
        let told = self
            .faults
            .iter()
            .any(|reason| reason == Reason::SenderUnknown);
        if !told && self.claim.is_some_and(|claim| claim != sender) {
            self.fault(
                end,
                Reason::SenderUnknown,
                "the instructing agent is not the sender of the message",
            );
        }
        let incoming = if self.is_request() {
            self.request(definition, version, sender, message_id)?
        } else {
            self.submission(
                (definition, version),
                sender,
                message_id,
                (digest, heap),
                end,
            )
        };
        Ok((incoming, mem::take(&mut self.marks)))
    }

    // Of a request nothing is taken in, so its first fault refuses it.
    fn request(
        &mut self,
        definition: Definition,
        version: u8,
        sender: Bic,
        message_id: Text,
    ) -> Result<Incoming, Stop> {
        let first = (0..self.marks.len()).min_by_key(|&at| self.marks[at].reason);
        if let Some(at) = first {
            let Mark {
                at,
                reason,
                detail,
                path,
                ..
            } = self.marks.swap_remove(at);
            return Err(Stop {
                at,
                reason,
                detail,
                path: Some(path),
            });
        }
        let header = self.header.take();
        Ok(if definition == Definition::Status {
            Incoming::StatusRequest(StatusRequest {
                version,
                sender,
                message_id,
                originals: mem::take(&mut self.original_messages),
                payments: mem::take(&mut self.requests),
                header,
            })
        } else {
            let reports = mem::take(&mut self.reports);
            Incoming::ReportRequest(ReportRequest {
                version,
                sender,
                message_id,
                reports,
                header,
            })
        })
    }

    fn submission(
        &mut self,
        (definition, version): (Definition, u8),
        sender: Bic,
        message_id: Text,
        (digest, heap): (u128, Vec<u8>),
        end: &dyn Place,
    ) -> Incoming {
        self.compare_sums(end);
        self.find_duplicates(sender);
        if self.payments.is_empty() && self.faults.is_empty() {
            self.fault(end, Reason::MessageNotSupported, "no payment in it");
        }
        let mut sequence = None;
        if (self.context.numbers_messages)(sender) {
            sequence = values::sequence_of(message_id.as_str());
            if sequence.is_none() {
                self.fault(
                    end,
                    Reason::SequenceMissing,
                    "no number behind the last - or / of the message identifier",
                );
            }
        }
        let kind = match definition {
            Definition::Customer => MessageKind::CustomerTransfer,
            Definition::Bank if self.cover => MessageKind::CoverTransfer,
            Definition::Bank => MessageKind::BankTransfer,
            Definition::Return => MessageKind::Return,
            _ => MessageKind::Cancellation,
        };
        let submission = Submission {
            kind,
            version,
            sender,
            message_id,
            digest,
            sequence,
            settlement: self.settlement.unwrap_or(Settlement::Net),
            faults: self.faults,
            payments: mem::take(&mut self.payments),
            times: mem::take(&mut self.times),
            originals: mem::take(&mut self.originals),
            heap: Bytes::from(heap),
        };
        Incoming::Submission(Submitted {
            submission,
            header: self.header.take(),
            notes: Vec::new(),
        })
    }

    fn compare_sums(&mut self, end: &dyn Place) {
        if let Some(Some(stated)) = self.count
            && u64::try_from(self.payments.len()) != Ok(stated)
        {
            let detail = format!("{stated} stated, {} found", self.payments.len());
            let spot = self.spot(Field::Count, end);
            self.fault(&spot, Reason::CountMismatch, detail);
        }
        // A sum that cannot be made is not compared: the payment without a readable amount is refused alone.
        let Some(sum) = self.sum else { return };
        if let Some(Some(stated)) = self.control_sum
            && stated != sum
        {
            let spot = self.spot(Field::ControlSum, end);
            self.fault(
                &spot,
                Reason::ControlSumMismatch,
                "the amounts sum to another number",
            );
        }
        if let Some((Some(currency), Some(stated))) = self.total {
            let other = |payment: &PaymentRecord| {
                payment.currency != currency && payment.currency != Currency::NONE
            };
            if stated != sum || self.payments.iter().any(other) {
                let spot = self.spot(Field::Total, end);
                let detail = "the amounts sum to another number, or are of other currencies";
                self.fault(&spot, Reason::TotalMismatch, detail);
            }
        }
    }

    fn spot(&self, field: Field, end: &dyn Place) -> Spot {
        let found = self.spots.iter().find(|(of, _)| *of == field);
        found.map_or_else(|| Spot::new(end), |(_, spot)| spot.clone())
    }

    fn find_duplicates(&mut self, sender: Bic) {
        let mut keys: Vec<(PaymentId, usize)> = Vec::with_capacity(self.payments.len());
        keys.extend(
            (0..)
                .zip(&self.payments)
                .map(|(at, payment)| (payment.id, at)),
        );
        keys.retain(|(id, _)| *id != PaymentId::Transaction(0));
        keys.sort_unstable();
        for pair in keys.windows(2) {
            if let [(first, _), (second, at)] = *pair
                && first == second
            {
                self.payment_fault(
                    at,
                    Reason::DuplicateInMessage,
                    "the identifier stands above already",
                );
            }
        }
        for at in 0..self.payments.len() {
            // A cancellation has no receiver.
            if self.payments[at].receiver == Some(sender) {
                self.payment_fault(at, Reason::SameParticipant, "the sender is the receiver");
            }
        }
    }

    fn payment_fault(&mut self, at: usize, reason: Reason, detail: &'static str) {
        if let Some(payment) = self.payments.get_mut(at) {
            payment.faults.insert(reason);
        }
        let path = format!("{}[{}]", self.transactions_path, at + 1);
        let spot = Spot {
            at: self.starts.get(at).copied().unwrap_or(0),
            path,
        };
        self.mark(&spot, u32::try_from(at).ok(), reason, detail);
    }

    /// After the header and the document: do they agree?
    pub(crate) fn compare_header(&mut self, message_name: &str, end: &dyn Place) {
        let differs = self
            .header
            .as_ref()
            .is_some_and(|header| header.definition != message_name);
        if differs {
            let spot = self.spot(Field::HeaderDefinition, end);
            self.fault(
                &spot,
                Reason::HeaderMismatch,
                "MsgDefIdr is not the message that follows",
            );
        }
    }
}
