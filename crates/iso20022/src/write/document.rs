//! What stands around every message: declaration, envelope, business header, document element.

use clearspan_ledger::{Bic, BusinessDate, Text, Timestamp};

use super::xml::{Xml, date_text};

/// Namespace of our envelope.
pub const ENVELOPE_NAMESPACE: &str = "urn:clearspan:envelope:1";

/// Namespace of the business header that we write.
pub const HEADER_NAMESPACE: &str = "urn:iso:std:iso:20022:tech:xsd:head.001.001.02";

/// What every ISO 20022 message namespace begins with.
pub(super) const NAMESPACE_STEM: &str = "urn:iso:std:iso:20022:tech:xsd:";

/// What stands around the `Document`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Framing {
    /// Our envelope with the business header (head.001.001.02) before the document.
    #[default]
    Envelope,
    /// The document alone: no header, so no mark of a possible duplicate.
    Bare,
}

/// Who writes to whom, when, under which identifier: the business header and what group headers repeat of it.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The clearing house.
    pub from: Bic,
    /// The participant.
    pub to: Bic,
    /// Identifier of header and message, 1 to 35 characters; see [`output_message_id`].
    pub message_id: &'a str,
    /// Time of the journal entry that this message tells of; never a clock's.
    pub created: Timestamp,
    /// `BizSvc`: the name of the service, if the scheme has one; at most 35 characters.
    pub service: Option<&'a str>,
    /// Marks a replay. In the header only (rule R24).
    pub possible_duplicate: bool,
    /// With or without envelope and header.
    pub framing: Framing,
}

/// The identifier of output message `number` of a participant's stream on a business date: date, BIC, and the number in
/// 16 digits, 35 characters in all. A function of its inputs, so a replay carries the same one (rule R24).
///
/// # Panics
/// When the number has more than 16 digits: at a billion messages a second that takes 115 days of one business date.
#[must_use]
pub fn output_message_id(date: BusinessDate, to: Bic, number: u64) -> Text {
    assert!(
        number < 10_000_000_000_000_000,
        "output number {number} has more than 16 digits"
    );
    let [y0, y1, y2, y3, _, m0, m1, _, d0, d1] = date_text(date);
    let mut id = [b'0'; 35];
    id[..8].copy_from_slice(&[y0, y1, y2, y3, m0, m1, d0, d1]);
    id[8..19].copy_from_slice(to.as_bytes());
    let mut rest = number;
    for slot in id[19..].iter_mut().rev() {
        *slot = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    std::str::from_utf8(&id)
        .ok()
        .and_then(Text::new)
        .unwrap_or(Text::EMPTY)
}

/// One message of ours: `definition` is like `pacs.002.001.10`, `root` the element below `Document`.
pub(super) fn document(
    out: &mut Vec<u8>,
    head: &Head<'_>,
    definition: &str,
    root: &str,
    content: impl FnOnce(&mut Xml<'_>),
) {
    begin(out, head, definition);
    let mut xml = Xml { out, prefix: "" };
    xml.raw("<Document xmlns=\"");
    xml.raw(NAMESPACE_STEM);
    xml.raw(definition);
    xml.raw("\">");
    xml.group(root, content);
    xml.raw("</Document>");
    end(out, head);
}

/// Everything before the document element.
pub(super) fn begin(out: &mut Vec<u8>, head: &Head<'_>, definition: &str) {
    let mut xml = Xml { out, prefix: "" };
    xml.raw("<?xml version=\"1.0\" encoding=\"UTF-8\"?>");
    if head.framing == Framing::Bare {
        return;
    }
    xml.raw("<BusinessMessage xmlns=\"");
    xml.raw(ENVELOPE_NAMESPACE);
    xml.raw("\"><AppHdr xmlns=\"");
    xml.raw(HEADER_NAMESPACE);
    xml.raw("\">");
    xml.nested_agent("Fr", "FIId", head.from, "BICFI");
    xml.nested_agent("To", "FIId", head.to, "BICFI");
    xml.id("BizMsgIdr", head.message_id);
    xml.text("MsgDefIdr", definition);
    xml.optional("BizSvc", head.service);
    xml.time("CreDt", head.created);
    if head.possible_duplicate {
        xml.code("PssblDplct", "true");
    }
    xml.close("AppHdr");
}

/// Everything after the document element.
pub(super) fn end(out: &mut Vec<u8>, head: &Head<'_>) {
    if head.framing == Framing::Envelope {
        out.extend_from_slice(b"</BusinessMessage>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_identifiers_fill_their_35_characters() {
        let to = Bic::parse(b"ALFADEFF").unwrap();
        let date = BusinessDate::from_ymd(2026, 11, 30).unwrap();
        assert_eq!(
            output_message_id(date, to, 42).as_str(),
            "20261130ALFADEFFXXX0000000000000042"
        );
        assert_ne!(
            output_message_id(date, to, 1),
            output_message_id(date.next(), to, 1)
        );
    }
}
