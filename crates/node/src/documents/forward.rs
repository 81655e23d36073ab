//! Payments and recalls passed on to the receiver, byte-exact.

use std::collections::BTreeMap;

use clearspan_iso20022::read::heap::heap_context;
use clearspan_iso20022::write::{Definition, ForwardGroup, forward, forward_recall};
use clearspan_ledger::entry::RecallNotice;
use clearspan_ledger::message::{MessageKind, Submission};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, MessageNo, ShardId};

use super::status::body;
use super::{DocumentError, Documents, Sheaf, View, definition_name};

/// Payments to forward, gathered by what can stand in one message: one sender, one definition, the same namespaces and
/// the same group-level parts. Bytes are copied out, so that no package is held.
pub(super) struct Forwards {
    date: BusinessDate,
    currency: Option<Currency>,
    receiver: Bic,
    by_key: BTreeMap<Vec<u8>, usize>,
    /// In the order of their first payment.
    groups: Vec<Group>,
    /// The message of the last payment and its group.
    last: Option<((ShardId, MessageNo), usize)>,
}

struct Group {
    definition: Definition,
    sender: Bic,
    /// The beginning of the first package's heap: what surrounded its transactions.
    context: Vec<u8>,
    transactions: Vec<u8>,
    count: u64,
    minor: u128,
    first: (ShardId, MessageNo, u32),
}

impl Forwards {
    pub(super) const fn new(date: BusinessDate, currency: Option<Currency>, receiver: Bic) -> Self {
        Self {
            date,
            currency,
            receiver,
            by_key: BTreeMap::new(),
            groups: Vec::new(),
            last: None,
        }
    }

    pub(super) fn add(
        &mut self,
        package: &Submission,
        (shard, message, position): (ShardId, MessageNo, u32),
        (sender, amount): (Bic, AmountMinor),
    ) -> Result<(), DocumentError> {
        let bytes = body(package, shard, message, position)?;
        let at = match self.last {
            Some((known, at)) if known == (shard, message) => at,
            _ => self.group_of(package, (shard, message, position), sender)?,
        };
        self.last = Some(((shard, message), at));
        if let Some(group) = self.groups.get_mut(at) {
            group.transactions.extend_from_slice(bytes);
            group.count += 1;
            group.minor += u128::from(amount.minor());
        }
        Ok(())
    }

    fn group_of(
        &mut self,
        package: &Submission,
        first: (ShardId, MessageNo, u32),
        sender: Bic,
    ) -> Result<usize, DocumentError> {
        let (shard, message, position) = first;
        let context = heap_context(&package.heap).ok_or(DocumentError::Body {
            shard,
            message,
            position,
        })?;
        // Parts end with a byte that none of them holds, so that different parts never make equal keys.
        let mut key = sender.as_bytes().to_vec();
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
        let at = *self.by_key.entry(key).or_insert(self.groups.len());
        if at == self.groups.len() {
            self.groups.push(Group {
                definition: Definition {
                    kind: package.kind,
                    version: package.version,
                },
                sender,
                context: package.heap.get(..context.len).unwrap_or_default().to_vec(),
                transactions: Vec::new(),
                count: 0,
                minor: 0,
                first,
            });
        }
        Ok(at)
    }

    /// One message for each group.
    pub(super) fn add_to(&self, sheaf: &mut Sheaf<'_>) -> Result<(), DocumentError> {
        for group in &self.groups {
            let (shard, message, position) = group.first;
            let context = heap_context(&group.context).ok_or(DocumentError::Body {
                shard,
                message,
                position,
            })?;
            let header = ForwardGroup {
                definition: group.definition,
                count: group.count,
                total: self.currency.map(|currency| (group.minor, currency)),
                date: Some(self.date),
                sender: group.sender,
                receiver: self.receiver,
            };
            sheaf.add(definition_name(group.definition), |out, head| {
                out.reserve(group.transactions.len() + group.context.len() + 2048);
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
        let context = heap_context(&package.heap).ok_or(DocumentError::Body {
            shard: from,
            message: notice.request,
            position: notice.position,
        })?;
        let definition = Definition {
            kind: MessageKind::Cancellation,
            version: package.version,
        };
        sheaf.add(definition_name(definition), |out, head| {
            forward_recall(out, head, &context, package.version, 1, [bytes]);
        })
    }
}
