//! The text of a payment in a compact package: numbered fields, checked when the package comes in, written as XML when
//! somebody reads the payment.
//!
//! A body is a row of fields, each its tag (1 byte), its length (2 bytes) and UTF-8; tags ascend, none is empty. A payment
//! without fields is whole by its record alone. `docs/format/package.md` lists the tags.

use bytes::Bytes;
use clearspan_ledger::message::{MessageKind, PaymentRecord, Submission};
use clearspan_ledger::{Reason, ReasonSet};

use crate::read::heap::{Surroundings, push_long};
use crate::write::Definition;
use crate::write::xml::Xml;

/// The version of pacs.008 and pacs.009 that packages stand for.
pub const VERSION: u8 = 8;
/// The first byte of a heap whose bodies are fields.
pub const HEAP_LAYOUT: u8 = 2;

macro_rules! fields {
    ($($(#[$doc:meta])* $tag:literal $name:ident: $max:literal, $reason:ident, $bank:literal;)+) => {
        /// What a field is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Field {
            $($(#[$doc])* $name,)+
        }

        impl Field {
            /// All, in the order of their tags.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its tag.
            #[must_use]
            pub const fn tag(self) -> u8 {
                match self { $(Self::$name => $tag,)+ }
            }

            const fn of(tag: u8) -> Option<Self> {
                match tag { $($tag => Some(Self::$name),)+ _ => None }
            }

            /// The most characters, as ISO 20022 has it.
            #[must_use]
            pub const fn max_chars(self) -> usize {
                match self { $(Self::$name => $max,)+ }
            }

            /// Why a payment is refused whose field has more.
            const fn too_long(self) -> Reason {
                match self { $(Self::$name => Reason::$reason,)+ }
            }

            /// Whether a transfer between institutions may have it.
            const fn of_banks(self) -> bool {
                match self { $(Self::$name => $bank,)+ }
            }
        }
    };
}

fields! {
    /// `InstrId`
    1 InstructionId: 35, IdInvalid, true;
    /// `EndToEndId`
    2 EndToEndId: 35, IdInvalid, true;
    /// `TxId`
    3 TransactionId: 35, IdInvalid, true;
    /// `Dbtr/Nm`
    4 DebtorName: 140, FieldInvalid, false;
    /// `DbtrAcct/Id`
    5 DebtorAccount: 34, FieldInvalid, false;
    /// `Cdtr/Nm`
    6 CreditorName: 140, FieldInvalid, false;
    /// `CdtrAcct/Id`
    7 CreditorAccount: 34, FieldInvalid, false;
    /// `Purp/Cd`
    8 Purpose: 4, FieldInvalid, false;
    /// `RmtInf/Ustrd`
    9 Remittance: 140, FieldInvalid, true;
}

/// Bytes that are no fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFields {
    /// They end inside a field.
    #[error("the fields end inside one")]
    Short,
    /// A tag that there is not, that this kind of payment does not have, or out of order.
    #[error(
        "field {0} is unknown, stands twice or out of order, or is none of this kind of payment"
    )]
    Tag(u8),
    /// No text, or one that XML cannot carry on one line.
    #[error("field {0} is empty, not UTF-8, or has control characters")]
    Text(u8),
}

/// Appends a field to a payment's body. What is too long to be counted is refused by every reader, so it is cut.
pub fn push(body: &mut Vec<u8>, field: Field, text: &str) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    body.push(field.tag());
    body.extend_from_slice(&len.to_le_bytes());
    body.extend(text.bytes().take(usize::from(len)));
}

/// Looks at every field of a payment: what it is too long for stands in the set.
///
/// # Errors
/// [`BadFields`] when the bytes are no fields of this kind of payment.
pub fn check(body: &[u8], kind: MessageKind) -> Result<ReasonSet, BadFields> {
    let mut faults = ReasonSet::EMPTY;
    let mut rest = body;
    let mut before = 0;
    while !rest.is_empty() {
        let (tag, text) = next(&mut rest)?;
        let field = Field::of(tag)
            .filter(|field| tag > before && (field.of_banks() || is_customer(kind)))
            .ok_or(BadFields::Tag(tag))?;
        before = tag;
        let chars = line_len(text).ok_or(BadFields::Text(tag))?;
        if chars > field.max_chars() {
            faults.insert(field.too_long());
        }
        if field == Field::Purpose && !text.iter().all(u8::is_ascii_alphanumeric) {
            faults.insert(Reason::FieldInvalid);
        }
    }
    Ok(faults)
}

const fn is_customer(kind: MessageKind) -> bool {
    matches!(kind, MessageKind::CustomerTransfer)
}

fn next<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8]), BadFields> {
    let Some((&[tag, l0, l1], after)) = rest.split_first_chunk::<3>() else {
        return Err(BadFields::Short);
    };
    let (text, after) = after
        .split_at_checked(usize::from(u16::from_le_bytes([l0, l1])))
        .ok_or(BadFields::Short)?;
    *rest = after;
    Ok((tag, text))
}

/// Characters of a text on one line; `None` where it is none.
fn line_len(text: &[u8]) -> Option<usize> {
    if text.is_empty() {
        return None;
    }
    if text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Some(text.len());
    }
    let text = std::str::from_utf8(text).ok()?;
    let fits =
        |character: char| !character.is_control() && !matches!(character, '\u{FFFE}' | '\u{FFFF}');
    text.chars().all(fits).then(|| text.chars().count())
}

/// Whether an unpacked heap holds fields.
#[must_use]
pub fn are_in(heap: &[u8]) -> bool {
    heap.first() == Some(&HEAP_LAYOUT)
}

/// Replaces a heap of fields by the XML that stands for them, so that whoever reads the payments reads one form. Its bytes
/// are a function of the submission alone.
pub fn expand(submission: &mut Submission) {
    let namespace = format!(
        "urn:iso:std:iso:20022:tech:xsd:{}.001.{:02}",
        submission.kind.name(),
        submission.version
    );
    let declarations = [(&b""[..], namespace.as_bytes())];
    let surroundings = Surroundings {
        namespace: namespace.as_bytes(),
        prefix: b"",
        declarations: &declarations,
        inherited: &[],
    };
    let mut heap = Vec::with_capacity(submission.heap.len() + submission.payments.len() * 640);
    // The parts are ours and short. The date stands in the group.
    let _ = surroundings.push(&mut heap);
    let _ = push_long(&mut heap, b"<GrpHdr><IntrBkSttlmDt/></GrpHdr>");
    let _ = push_long(&mut heap, b"");
    let fields = std::mem::take(&mut submission.heap);
    let mut payments = std::mem::take(&mut submission.payments);
    for record in &mut payments {
        let body = crate::read::heap::transaction(&fields, record.body_offset, record.body_len)
            .unwrap_or_default();
        let start = heap.len();
        transaction(&mut heap, submission, record, body);
        // A heap that is too long for its offsets is cut off: its payments read as missing, never as others.
        record.body_offset = u32::try_from(start).unwrap_or(u32::MAX);
        record.body_len = u32::try_from(heap.len() - start).unwrap_or(u32::MAX);
    }
    submission.payments = payments;
    submission.heap = Bytes::from(heap);
}

fn transaction(out: &mut Vec<u8>, of: &Submission, record: &PaymentRecord, body: &[u8]) {
    let mut texts = [None; 9];
    let mut rest = body;
    while let Ok((tag, text)) = next(&mut rest) {
        if let Some(slot) = texts.get_mut(usize::from(tag).wrapping_sub(1)) {
            *slot = std::str::from_utf8(text).ok();
        }
    }
    let get = |field: Field| texts.get(usize::from(field.tag()) - 1).copied().flatten();
    let bic_tag = Definition {
        kind: of.kind,
        version: of.version,
    }
    .bic_tag();
    let mut xml = Xml { out, prefix: "" };
    xml.group("CdtTrfTxInf", |xml| {
        xml.group("PmtId", |xml| {
            xml.optional("InstrId", get(Field::InstructionId));
            xml.id("EndToEndId", get(Field::EndToEndId).unwrap_or_default());
            xml.optional("TxId", get(Field::TransactionId));
            xml.uetr("UETR", record.id.bits());
        });
        xml.amount(
            "IntrBkSttlmAmt",
            u128::from(record.amount.minor()),
            record.currency,
            record.currency.exponent(),
        );
        if is_customer(of.kind) {
            xml.code("ChrgBr", "SLEV");
        }
        xml.agent("InstgAgt", of.sender, bic_tag);
        if let Some(receiver) = record.receiver {
            xml.agent("InstdAgt", receiver, bic_tag);
        }
        if is_customer(of.kind) {
            xml.group("Dbtr", |xml| xml.optional("Nm", get(Field::DebtorName)));
            account(xml, "DbtrAcct", get(Field::DebtorAccount));
            xml.agent("DbtrAgt", of.sender, bic_tag);
            if let Some(receiver) = record.receiver {
                xml.agent("CdtrAgt", receiver, bic_tag);
            }
            xml.group("Cdtr", |xml| xml.optional("Nm", get(Field::CreditorName)));
            account(xml, "CdtrAcct", get(Field::CreditorAccount));
            if let Some(purpose) = get(Field::Purpose) {
                xml.group("Purp", |xml| xml.text("Cd", purpose));
            }
        } else {
            xml.agent("Dbtr", of.sender, bic_tag);
            if let Some(receiver) = record.receiver {
                xml.agent("Cdtr", receiver, bic_tag);
            }
        }
        if let Some(text) = get(Field::Remittance) {
            xml.group("RmtInf", |xml| xml.text("Ustrd", text));
        }
    });
}

fn account(xml: &mut Xml<'_>, tag: &str, id: Option<&str>) {
    let Some(id) = id else { return };
    xml.group(tag, |xml| {
        xml.group("Id", |xml| {
            if is_iban(id) {
                xml.text("IBAN", id);
            } else {
                xml.group("Othr", |xml| xml.text("Id", id));
            }
        });
    });
}

/// Two letters, two digits, then 1 to 30 letters and digits.
fn is_iban(id: &str) -> bool {
    let Some((&[c0, c1, d0, d1], rest)) = id.as_bytes().split_first_chunk::<4>() else {
        return false;
    };
    c0.is_ascii_uppercase()
        && c1.is_ascii_uppercase()
        && d0.is_ascii_digit()
        && d1.is_ascii_digit()
        && (1..=30).contains(&rest.len())
        && rest.iter().all(u8::is_ascii_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(fields: &[(Field, &str)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (field, text) in fields {
            push(&mut body, *field, text);
        }
        body
    }

    #[test]
    fn fields_are_checked() {
        let kind = MessageKind::CustomerTransfer;
        let good = body(&[
            (Field::EndToEndId, "E2E-1"),
            (Field::DebtorName, "Müller & Söhne"),
            (Field::Remittance, &"x".repeat(140)),
        ]);
        assert_eq!(check(&good, kind), Ok(ReasonSet::EMPTY));
        assert_eq!(check(b"", kind), Ok(ReasonSet::EMPTY));
        assert_eq!(
            check(&good, MessageKind::BankTransfer),
            Err(BadFields::Tag(4))
        );
        for cut in 1..good.len() {
            // Cut between two fields it is a shorter body.
            let _ = check(&good[..cut], kind);
        }
        assert_eq!(check(&good[..good.len() - 1], kind), Err(BadFields::Short));
        let twice = body(&[(Field::EndToEndId, "a"), (Field::EndToEndId, "b")]);
        assert_eq!(check(&twice, kind), Err(BadFields::Tag(2)));
        assert_eq!(check(&[77, 1, 0, b'x'], kind), Err(BadFields::Tag(77)));
        for text in ["", "a\nb", "a\0", "\u{85}", "\u{FFFF}"] {
            let bad = body(&[(Field::DebtorName, text)]);
            assert_eq!(check(&bad, kind), Err(BadFields::Text(4)), "{text:?}");
        }
        assert_eq!(check(&[4, 1, 0, 0xFF], kind), Err(BadFields::Text(4)));
        for (field, reason) in [
            (Field::TransactionId, Reason::IdInvalid),
            (Field::CreditorName, Reason::FieldInvalid),
            (Field::Purpose, Reason::FieldInvalid),
        ] {
            let long = body(&[(field, &"ä".repeat(field.max_chars() + 1))]);
            assert_eq!(check(&long, kind).map(ReasonSet::first), Ok(Some(reason)));
        }
    }

    #[test]
    fn accounts_are_ibans_where_they_look_so() {
        assert!(is_iban("DE89370400440532013000"));
        assert!(!is_iban("DE89"));
        assert!(!is_iban("4711-0815"));
    }
}
