//! Payments and requests to cancel, passed on to the receiver: our group header, the sender's transactions byte-exact.
//!
//! The transaction's bytes mean what they meant in the sender's message because the same namespace bindings are in scope:
//! our own elements take the sender's prefix, and every other binding is declared again on the `Document` element.

use clearspan_ledger::{Bic, BusinessDate, Currency};

use super::document::{Framing, Head, begin, end};
use super::status::Sum;
use super::version::Definition;
use super::xml::{Xml, fits_18_digits};
use clearspan_ledger::message::MessageKind;

/// What was in scope at the transactions, as sent: what [`HeapContext`](crate::read::heap::HeapContext) gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForwardContext<'a> {
    /// The prefix bound to the document's namespace at the transactions; empty where it is the default namespace.
    pub prefix: &'a str,
    /// Every declaration in scope, the document's own among them, and inherited `xml:` attributes, as attributes in
    /// double quotes: ` xmlns="…" xmlns:p="…"`.
    pub attributes: &'a [u8],
}

/// What our group header says about the transactions that follow.
#[derive(Clone, Copy, Debug)]
pub struct ForwardGroup<'a> {
    /// What the message was.
    pub definition: Definition,
    /// How many transactions follow.
    pub count: u64,
    /// Their sum in minor units and its currency, where they are of one.
    pub total: Option<(u128, Currency)>,
    /// The settlement date, where the sender gave it for the group (group or transaction, not both).
    pub date: Option<BusinessDate>,
    /// The sender, where it stood in the group header (group or transaction, not both).
    pub instructing: Option<Bic>,
    /// The receiver, where it stood in the group header (group or transaction, not both).
    pub instructed: Option<Bic>,
    /// The group header's `PmtTpInf` element, byte-exact; empty where there was none.
    pub payment_type: &'a [u8],
    /// A return's `OrgnlGrpInf` element of the message, byte-exact; empty where there was none.
    pub original_group: &'a [u8],
}

/// Appends a message of the sender's definition and namespace: our group header and `transactions`, byte-exact.
///
/// The total is written with the date, as the published rules want; without a date it is written as control sum.
pub fn forward<'t>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    context: &ForwardContext<'_>,
    group: &ForwardGroup<'_>,
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
        MessageKind::Cancellation => "FIToFIPmtCxlReq",
    };
    sender_document(out, head, context, group.definition, |xml| {
        xml.group(root, |xml| {
            xml.group("GrpHdr", |xml| group_header(xml, head, group));
            if kind == MessageKind::Return {
                xml.out.extend_from_slice(group.original_group);
            }
            for transaction in transactions {
                xml.out.extend_from_slice(transaction);
            }
        });
    });
}

fn group_header(xml: &mut Xml<'_>, head: &Head<'_>, group: &ForwardGroup<'_>) {
    let bic_tag = group.definition.bic_tag();
    xml.id("MsgId", head.message_id);
    xml.time("CreDtTm", head.created);
    xml.number("NbOfTxs", group.count);
    match (group.total, group.date) {
        (Some((minor, currency)), Some(_)) if fits_18_digits(minor) => {
            let tag = if group.definition.kind == MessageKind::Return {
                "TtlRtrdIntrBkSttlmAmt"
            } else {
                "TtlIntrBkSttlmAmt"
            };
            xml.amount(tag, minor, currency, currency.exponent());
        }
        (Some((minor, currency)), None) => Sum {
            minor,
            exponent: currency.exponent(),
        }
        .write(xml, "CtrlSum"),
        _ => {}
    }
    if let Some(date) = group.date {
        xml.date("IntrBkSttlmDt", date);
    }
    xml.group("SttlmInf", |xml| xml.code("SttlmMtd", "CLRG"));
    xml.out.extend_from_slice(group.payment_type);
    if let Some(bic) = group.instructing {
        xml.agent("InstgAgt", bic, bic_tag);
    }
    if let Some(bic) = group.instructed {
        xml.agent("InstdAgt", bic, bic_tag);
    }
}

/// What stands before the payments to cancel.
#[derive(Clone, Copy, Debug)]
pub struct RecallGroup<'a> {
    /// Version of the camt.056.
    pub version: u8,
    /// How many payments follow.
    pub count: u64,
    /// The request's `Case` element, byte-exact; empty where there was none.
    pub case: &'a [u8],
    /// The request's `OrgnlGrpInfAndCxl` element, byte-exact; empty where there was none.
    pub original_group: &'a [u8],
}

/// Appends a camt.056 to the receiver of settled payments: our assignment and the sender's `TxInf` elements, byte-exact.
pub fn forward_recall<'t>(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    context: &ForwardContext<'_>,
    group: &RecallGroup<'_>,
    transactions: impl IntoIterator<Item = &'t [u8]>,
) {
    let definition = Definition {
        kind: MessageKind::Cancellation,
        version: group.version,
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
            xml.out.extend_from_slice(group.case);
            xml.group("CtrlData", |xml| xml.number("NbOfTxs", group.count));
            xml.group("Undrlyg", |xml| {
                xml.out.extend_from_slice(group.original_group);
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
    context: &ForwardContext<'_>,
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
    xml.out.extend_from_slice(context.attributes);
    // In a value the quote would be escaped, so this is a declaration and nothing else.
    let default = memchr::memmem::find(context.attributes, b" xmlns=\"").is_some();
    if !default && head.framing == Framing::Envelope {
        // Names without prefix had no namespace at the sender; our envelope's must not reach them.
        xml.raw(" xmlns=\"\"");
    }
    xml.raw(">");
    content(&mut xml);
    xml.close("Document");
    end(out, head);
}
