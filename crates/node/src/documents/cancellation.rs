//! camt.029: the answer to a request to cancel.

use clearspan_iso20022::read::heap::transaction_ids;
use clearspan_iso20022::write::{
    CancellationAnswer, CancellationStatus, Case, Confirmation, Definition, PaymentCancellation,
    StatusReason, cancellation_answer, cancellation_answer_version,
};
use clearspan_ledger::{CancelAnswer, CancelOutcome, Currency, MessageNo};

use super::status::{body, fits};
use super::{DocumentError, Documents, Found, Sheaf, View};

impl<V: View> Documents<'_, V> {
    /// One answer for each request of the camt.056, in its order.
    ///
    /// The original's message is named only when it came on the request's own business day: then both leave memory
    /// together, and the answer stays the same for as long as it can be asked for. Otherwise, and where the requests
    /// are about several messages, the request itself is named as the case.
    pub(super) fn cancellation(
        &self,
        sheaf: &mut Sheaf<'_>,
        found: &Found<'_>,
        message: MessageNo,
    ) -> Result<(), DocumentError> {
        let record = self.message(found.ledger, found.home, message)?;
        let answers = found
            .ledger
            .cancellation_answers(message)
            .ok_or(DocumentError::Missing {
                what: "cancellation",
                shard: found.home,
                number: message.get(),
            })?;
        let package = self.package(found.home, message)?;
        let mut bodies = Vec::with_capacity(answers.len());
        for (position, _) in (0_u32..).zip(answers) {
            bodies.push(transaction_ids(body(
                &package, found.home, message, position,
            )?));
        }
        let originals = self.original_of_all(found, message, answers);
        let payments =
            answers
                .iter()
                .zip(&bodies)
                .zip(&package.payments)
                .map(|((answer, ids), asked)| {
                    let name = |id: &'_ Option<std::borrow::Cow<'_, str>>| {
                        id.as_deref().filter(|id| fits(id)).map(str::to_owned)
                    };
                    (
                        answer,
                        asked,
                        [
                            name(&ids.cancellation),
                            name(&ids.instruction),
                            name(&ids.end_to_end),
                            name(&ids.transaction),
                        ],
                    )
                });
        let payments: Vec<_> = payments.collect();
        let written = CancellationAnswer {
            version: cancellation_answer_version(record.version),
            request_id: record.message_id.as_str(),
            case: originals.is_none().then(|| Case {
                id: record.message_id.as_str(),
                creator: found.bic,
            }),
            confirmation: Confirmation::of(answers.iter().map(|answer| status(answer).0)),
            original: originals,
        };
        let name = format!("camt.029.{}", written.version.suffix());
        sheaf.add(name, |out, head| {
            let payments = payments.iter().map(|(answer, asked, names)| {
                let [cancellation, instruction, end_to_end, transaction] = names;
                let (status, reason) = status(answer);
                PaymentCancellation {
                    cancellation_id: cancellation.as_deref(),
                    original: None,
                    instruction_id: instruction.as_deref(),
                    end_to_end_id: end_to_end.as_deref(),
                    transaction_id: transaction.as_deref(),
                    id: asked.id,
                    status,
                    reason,
                    amount: (asked.amount.minor() > 0 && asked.currency != Currency::NONE)
                        .then_some((asked.amount, asked.currency)),
                    date: asked.date,
                }
            });
            cancellation_answer(out, head, &written, payments);
        })
    }

    /// The one message that carried all the payments asked about, of the request's own business day.
    fn original_of_all<'f>(
        &self,
        found: &Found<'f>,
        request: MessageNo,
        answers: &[CancelAnswer],
    ) -> Option<(&'f str, Definition)> {
        let today = found.ledger.message_date(request)?;
        let mut one: Option<MessageNo> = None;
        for answer in answers {
            let view = found.ledger.payment(answer.payment?)?;
            if view.date != today || one.is_some_and(|known| known != view.message) {
                return None;
            }
            one = Some(view.message);
        }
        let record = found.ledger.message(one?)?;
        let definition = Definition {
            kind: record.kind,
            version: record.version,
        };
        Some((record.message_id.as_str(), definition))
    }
}

fn status(answer: &CancelAnswer) -> (CancellationStatus, Option<StatusReason<'static>>) {
    match answer.outcome {
        CancelOutcome::Cancelled => (CancellationStatus::Cancelled, None),
        CancelOutcome::Recalled => {
            let asked = StatusReason {
                code: "PTNA",
                text: "It is final; its receiver was asked to send it back.",
            };
            (CancellationStatus::Pending, Some(asked))
        }
        CancelOutcome::Refused { reason } => (CancellationStatus::Rejected, Some(reason.into())),
    }
}
