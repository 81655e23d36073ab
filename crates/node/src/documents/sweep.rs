//! Payments of a cycle for many receivers at once.
//!
//! A package pays hundreds of receivers, and its heap is unpacked as a whole. Receiver by receiver, each package would be
//! unpacked once for each of them; so one pass over the packages copies out what a run of receivers is going to need,
//! as many as fit the memory set aside for it. Output is formed in that order: by home shard, then by participant.

use std::collections::BTreeMap;

use clearspan_ledger::query::{CycleCredits, CyclePayment};
use clearspan_ledger::{CycleNumber, ParticipantId, ShardId};

use super::forward::Forms;
use super::status::body;
use super::{DocumentError, Documents, View};

/// The most bytes of payments copied out at a time, over all shards and both passes that are kept for each.
pub const SWEEPS_MAX_BYTES: usize = 512 << 20;
/// Passes kept for each shard of a cycle: threads work on neighbouring receivers, and may stand on both sides of the end
/// of a run.
pub(super) const SWEEPS_KEPT: usize = 2;

/// What one pass has copied out.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    pub(super) forms: Forms,
    lists: BTreeMap<(ParticipantId, usize), Bodies>,
}

/// The payments of one list of [`CycleCredits`], in its order.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    form: usize,
    start: usize,
    end: usize,
}

impl Bodies {
    /// Form and bytes of the payment at a place of the list.
    pub(super) fn get(&self, at: usize) -> Option<(usize, &[u8])> {
        let span = self.spans.get(at)?;
        Some((span.form, self.bytes.get(span.start..span.end)?))
    }
}

impl Sweep {
    pub(super) fn list(&self, receiver: ParticipantId, currency_place: usize) -> Option<&Bodies> {
        self.lists.get(&(receiver, currency_place))
    }
}

impl<V: View> Documents<'_, V> {
    /// Copies out the payments of `first` and of as many receivers after it as there is room for.
    pub(super) fn sweep(
        &self,
        cycle: CycleNumber,
        from: ShardId,
        first: ParticipantId,
        credits: &CycleCredits,
    ) -> Result<Sweep, DocumentError> {
        let senders = self.view.ledger(from);
        let places = senders.directory().currencies().len();
        let mut receivers: Vec<(ShardId, ParticipantId)> = senders
            .directory()
            .iter()
            .map(|(participant, terms)| (terms.home, participant))
            .collect();
        receivers.sort_unstable();
        let begin = receivers
            .iter()
            .position(|(_, participant)| *participant == first)
            .unwrap_or(receivers.len());
        let mut sweep = Sweep::default();
        // Payment by payment in the order of the packages, with the list it belongs to.
        let mut wanted: Vec<(CyclePayment, ParticipantId)> = Vec::new();
        let mut room = None;
        for &(_, receiver) in receivers.get(begin..).unwrap_or_default() {
            for place in 0..places {
                let list = credits.of(receiver, place);
                if list.is_empty() {
                    continue;
                }
                wanted.extend(
                    senders
                        .credited(cycle, list)
                        .map(|payment| (payment, receiver)),
                );
                sweep.lists.insert((receiver, place), Bodies::default());
            }
            if room.is_none()
                && let Some((payment, _)) = wanted.first()
            {
                room = Some(self.room(from, payment)?);
            }
            if room.is_some_and(|room| wanted.len() >= room) {
                break;
            }
        }
        // Payments ascend within each list; together they are put in the order of their packages.
        wanted.sort_unstable_by_key(|(payment, _)| payment.payment);
        for of_message in wanted.chunk_by(|(a, _), (b, _)| a.message == b.message) {
            let Some((one, _)) = of_message.first() else {
                continue;
            };
            let package = self.read_package(from, one.message)?;
            let (sender, _) = self.participant(one.sender)?;
            let form = sweep
                .forms
                .place(&package, (from, one.message, one.position), sender)?;
            for (payment, receiver) in of_message {
                let bytes = body(&package, from, payment.message, payment.position)?;
                let list = (*receiver, usize::from(payment.currency_place));
                if let Some(bodies) = sweep.lists.get_mut(&list) {
                    let start = bodies.bytes.len();
                    bodies.bytes.extend_from_slice(bytes);
                    let end = bodies.bytes.len();
                    bodies.spans.push(Span { form, start, end });
                }
            }
        }
        Ok(sweep)
    }

    /// How many payments like those of this one's message fit into one pass.
    fn room(&self, from: ShardId, like: &CyclePayment) -> Result<usize, DocumentError> {
        let package = self.package(from, like.message)?;
        let bytes = SWEEPS_MAX_BYTES / SWEEPS_KEPT / usize::from(self.view.shards().max(1));
        let each = package.heap.len() / package.payments.len().max(1);
        Ok(bytes / each.max(1))
    }
}
