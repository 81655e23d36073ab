//! Payments and recalls passed on to the receiver, byte-exact.

use std::collections::BTreeMap;

use clearspan_iso20022::read::heap::heap_context;
use clearspan_iso20022::write::{Definition, ForwardGroup, forward, forward_recall};
use clearspan_ledger::entry::RecallNotice;
use clearspan_ledger::message::{MessageKind, Submission};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, MessageNo, ShardId};

use super::status::body;
use super::{DocumentError, Documents, Sheaf, View, definition_name};

/// A payment by its place in a package.
pub(super) type Place = (ShardId, MessageNo, u32);

/// Forms of messages: what must be equal for two payments to stand in one message, that is definition, namespaces and
/// group-level parts; the sender too where the group header names it.
#[derive(Debug, Default)]
pub(super) struct Forms {
    by_key: BTreeMap<Vec<u8>, usize>,
    forms: Vec<Form>,
}

#[derive(Debug)]
struct Form {
    definition: Definition,
    sender: Bic,
    /// The beginning of a package's heap: what surrounded its transactions. All packages of a form give equal messages.
    context: Vec<u8>,
    first: Place,
}

impl Forms {
    /// The place of a package's form.
    pub(super) fn place(
        &mut self,
        package: &Submission,
        first: Place,
        sender: Bic,
    ) -> Result<usize, DocumentError> {
        let context = heap_context(&package.heap).ok_or_else(|| no_body(first))?;
        // Parts end with a byte that none of them holds, so that different parts never make equal keys.
        let mut key = vec![package.kind as u8];
        if context.group_part("InstgAgt").is_some() {
            // Ours will name the sender there, so all payments below it are that sender's.
            key.extend_from_slice(sender.as_bytes());
        }
        key.push(0);
        key.extend_from_slice(context.namespace.as_bytes());
        key.push(0);
        key.extend_from_slice(context.prefix.as_bytes());
        key.push(0);
        context.push_attributes(&mut key);
        key.push(0);
        key.extend_from_slice(context.original_group);
        key.push(0);
        key.extend_from_slice(context.group_part("PmtTpInf").unwrap_or_default());
        for local in ["IntrBkSttlmDt", "InstgAgt", "InstdAgt"] {
            key.push(0);
            key.push(u8::from(context.group_part(local).is_some()));
        }
        let at = *self.by_key.entry(key).or_insert(self.forms.len());
        if at == self.forms.len() {
            self.forms.push(Form {
                definition: Definition {
                    kind: package.kind,
                    version: package.version,
                },
                sender,
                context: package.heap.get(..context.len).unwrap_or_default().to_vec(),
                first,
            });
        }
        Ok(at)
    }
}

fn no_body((shard, message, position): Place) -> DocumentError {
    DocumentError::Body {
        shard,
        message,
        position,
    }
}

/// Payments to forward to one receiver, by form.
pub(super) struct Forwards {
    date: BusinessDate,
    currency: Currency,
    receiver: Bic,
    /// In the order of their first payment; a page has few forms, so they are searched from the last used.
    groups: Vec<Group>,
}

struct Group {
    form: usize,
    transactions: Vec<u8>,
    count: u64,
    minor: u128,
}

impl Forwards {
    pub(super) const fn new(date: BusinessDate, currency: Currency, receiver: Bic) -> Self {
        Self {
            date,
            currency,
            receiver,
            groups: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, form: usize, body: &[u8], amount: AmountMinor) {
        let at = self
            .groups
            .iter()
            .rposition(|group| group.form == form)
            .unwrap_or_else(|| {
                self.groups.push(Group {
                    form,
                    transactions: Vec::new(),
                    count: 0,
                    minor: 0,
                });
                self.groups.len() - 1
            });
        let group = &mut self.groups[at];
        group.transactions.extend_from_slice(body);
        group.count += 1;
        group.minor += u128::from(amount.minor());
    }

    /// One message for each group.
    pub(super) fn add_to(&self, sheaf: &mut Sheaf<'_>, forms: &Forms) -> Result<(), DocumentError> {
        for group in &self.groups {
            let form = &forms.forms[group.form];
            let context = heap_context(&form.context).ok_or_else(|| no_body(form.first))?;
            let header = ForwardGroup {
                definition: form.definition,
                count: group.count,
                total: Some((group.minor, self.currency)),
                date: Some(self.date),
                sender: form.sender,
                receiver: self.receiver,
            };
            sheaf.add(definition_name(form.definition), |out, head| {
                out.reserve(group.transactions.len() + form.context.len() + 2048);
                forward(
                    out,
                    head,
                    &context,
                    &header,
                    [group.transactions.as_slice()],
                );
            })?;
        }
        Ok(())
    }
}

impl<V: View> Documents<'_, V> {
    /// Another participant asks to have a settled payment sent back.
    pub(super) fn recall(
        &self,
        sheaf: &mut Sheaf<'_>,
        from: ShardId,
        notice: &RecallNotice,
    ) -> Result<(), DocumentError> {
        let package = self.package(from, notice.request)?;
        let bytes = body(&package, from, notice.request, notice.position)?;
        let context = heap_context(&package.heap)
            .ok_or_else(|| no_body((from, notice.request, notice.position)))?;
        let definition = Definition {
            kind: MessageKind::Cancellation,
            version: package.version,
        };
        sheaf.add(definition_name(definition), |out, head| {
            forward_recall(out, head, &context, package.version, 1, [bytes]);
        })
    }
}
