//! Payments and requests to cancel, passed on to the receiver: our group header, the sender's transactions byte-exact.
//!
//! The transaction's bytes mean what they meant in the sender's message because the same namespace bindings are in scope:
//! our own elements take the sender's prefix, and the declarations that the heap kept stand on the `Document` element.

use clearspan_ledger::message::MessageKind;
use clearspan_ledger::{Bic, BusinessDate, Currency};

use super::document::{Framing, Head, begin, end};
use super::status::Sum;
use super::version::Definition;
use super::xml::{Xml, fits_18_digits};
use crate::read::heap::HeapContext;

/// What our group header says about the transactions that follow.
///
/// Settlement date, sender and receiver stand in the group or in each transaction, not both: they are written where the
/// sender's group header had them, so that nothing stands twice.
#[derive(Clone, Copy, Debug)]
pub struct ForwardGroup {
    /// What the message was.
    pub definition: Definition,
    /// How many transactions follow.
    pub count: u64,
    /// Their sum in minor units and its currency, where they are of one.
    pub total: Option<(u128, Currency)>,
    /// The settlement date.
    pub date: Option<BusinessDate>,
    /// The sender.
    pub sender: Bic,
    /// The receiver.
    pub receiver: Bic,
}

/// Appends a message of the sender's definition and namespace: our group header and `transactions`, byte-exact.
///
/// The group's `PmtTpInf` and a return's `OrgnlGrpInf` go along as sent. The total is written with the date, as the
/// published rules want; without a date in the group it is written as control sum.
pub fn forward<'t>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    context: &HeapContext<'_>,
    group: &ForwardGroup,
    transactions: impl IntoIterator<Item = &'t [u8]>,
) {
    let kind = group.definition.kind;
    let root = match kind {
        MessageKind::CustomerTransfer => "FIToFICstmrCdtTrf",
        MessageKind::BankTransfer | MessageKind::CoverTransfer if group.definition.version <= 3 => {
            "FinInstnCdtTrf"
        }
        MessageKind::BankTransfer | MessageKind::CoverTransfer => "FICdtTrf",
        MessageKind::Return => "PmtRtr",
        MessageKind::Cancellation => {
            forward_recall(
                out,
                head,
                context,
                group.definition.version,
                group.count,
                transactions,
            );
            return;
        }
    };
    sender_document(out, head, context, group.definition, |xml| {
        xml.group(root, |xml| {
            xml.group("GrpHdr", |xml| group_header(xml, head, context, group));
            xml.out.extend_from_slice(context.original_group);
            for transaction in transactions {
                xml.out.extend_from_slice(transaction);
            }
        });
    });
}

fn group_header(
    xml: &mut Xml<'_>,
    head: &Head<'_>,
    context: &HeapContext<'_>,
    group: &ForwardGroup,
) {
    let bic_tag = group.definition.bic_tag();
    let stood_in_group = |local| context.group_part(local).is_some();
    let date = group.date.filter(|_| stood_in_group("IntrBkSttlmDt"));
    xml.id("MsgId", head.message_id);
    xml.time("CreDtTm", head.created);
    xml.number("NbOfTxs", group.count);
    match (group.total, date) {
        (Some((minor, currency)), Some(_)) if fits_18_digits(minor) => {
            let tag = if group.definition.kind == MessageKind::Return {
                "TtlRtrdIntrBkSttlmAmt"
            } else {
                "TtlIntrBkSttlmAmt"
            };
            xml.amount(tag, minor, currency, currency.exponent());
        }
        (Some((minor, currency)), None) => {
            let exponent = currency.exponent();
            Sum { minor, exponent }.write(xml, "CtrlSum");
        }
        _ => {}
    }
    if let Some(date) = date {
        xml.date("IntrBkSttlmDt", date);
    }
    xml.group("SttlmInf", |xml| xml.code("SttlmMtd", "CLRG"));
    if let Some(part) = context.group_part("PmtTpInf")
        && all_names_have(part, context.prefix)
    {
        xml.out.extend_from_slice(part);
    }
    if stood_in_group("InstgAgt") {
        xml.agent("InstgAgt", group.sender, bic_tag);
    }
    if stood_in_group("InstdAgt") {
        xml.agent("InstdAgt", group.receiver, bic_tag);
    }
}

/// Whether every element of a part of the group header has the transactions' prefix. The declarations in scope are those
/// of the transactions; a prefix that the sender declared on the group header alone would be unbound here.
fn all_names_have(part: &[u8], prefix: &str) -> bool {
    memchr::memchr_iter(b'<', part).all(|at| {
        let name = part.get(at + 1..).unwrap_or_default();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let end = name
            .iter()
            .position(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'/' | b'>' | b'!'));
        let name = name.get(..end.unwrap_or(name.len())).unwrap_or_default();
        let colon = memchr::memchr(b':', name);
        // A comment or CDATA section has no name.
        name.is_empty() || name.get(..colon.unwrap_or(0)) == Some(prefix.as_bytes())
    })
}

/// Appends a camt.056 to the receiver of settled payments: our assignment and the sender's `TxInf` elements, byte-exact.
/// `version` is the request's, `count` the number of payments that follow.
pub fn forward_recall<'t>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    context: &HeapContext<'_>,
    version: u8,
    count: u64,
    transactions: impl IntoIterator<Item = &'t [u8]>,
) {
    let definition = Definition {
        kind: MessageKind::Cancellation,
        version,
    };
    let bic_tag = definition.bic_tag();
    sender_document(out, head, context, definition, |xml| {
        xml.group("FIToFIPmtCxlReq", |xml| {
            xml.group("Assgnmt", |xml| {
                xml.id("Id", head.message_id);
                xml.nested_agent("Assgnr", "Agt", head.from, bic_tag);
                xml.nested_agent("Assgne", "Agt", head.to, bic_tag);
                xml.time("CreDtTm", head.created);
            });
            xml.group("CtrlData", |xml| xml.number("NbOfTxs", count));
            xml.group("Undrlyg", |xml| {
                for transaction in transactions {
                    xml.out.extend_from_slice(transaction);
                }
            });
        });
    });
}

fn sender_document(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    context: &HeapContext<'_>,
    definition: Definition,
    content: impl FnOnce(&mut Xml<'_>),
) {
    begin(out, head, definition.text().as_str());
    let mut xml = Xml {
        out,
        prefix: context.prefix,
    };
    xml.raw("<");
    xml.name("Document");
    context.push_attributes(xml.out);
    let default = context.declarations().any(|(prefix, _)| prefix.is_empty());
    if !default && head.framing == Framing::Envelope {
        // Names without prefix had no namespace at the sender; our envelope's must not reach them.
        xml.raw(" xmlns=\"\"");
    }
    xml.raw(">");
    content(&mut xml);
    xml.close("Document");
    end(out, head);
}

#[cfg(test)]
mod tests {
    use super::all_names_have;

    #[test]
    fn a_foreign_prefix_is_seen() {
        // Angle brackets in a comment count as names: rather left out than unbound.
        assert!(!all_names_have(b"<A><!-- <p:x --><B/></A>", ""));
        assert!(all_names_have(b"<A><B x='1'/></A>", ""));
        assert!(all_names_have(b"<p:A><p:B/>text</p:A>", "p"));
        assert!(!all_names_have(b"<p:A><B/></p:A>", "p"));
        assert!(!all_names_have(b"<p:A><q:B/></p:A>", "p"));
        assert!(!all_names_have(b"<q:A/>", ""));
    }
}
