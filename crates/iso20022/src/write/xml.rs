//! XML text, piece by piece, into a byte buffer.

use clearspan_ledger::{Bic, BusinessDate, Currency, Timestamp};

/// Writes elements of one namespace, under one prefix.
pub(crate) struct Xml<'b> {
    pub(crate) out: &'b mut Vec<u8>,
    /// Prefix of the namespace in hand; empty where it is the default namespace.
    pub(crate) prefix: &'b str,
}

impl Xml<'_> {
    /// Bytes that are XML already.
    pub(crate) fn raw(&mut self, xml: &str) {
        self.out.extend_from_slice(xml.as_bytes());
    }

    pub(crate) fn open(&mut self, tag: &str) {
        self.out.push(b'<');
        self.name(tag);
        self.out.push(b'>');
    }

    pub(crate) fn close(&mut self, tag: &str) {
        self.out.extend_from_slice(b"</");
        self.name(tag);
        self.out.push(b'>');
    }

    pub(crate) fn name(&mut self, tag: &str) {
        if !self.prefix.is_empty() {
            self.out.extend_from_slice(self.prefix.as_bytes());
            self.out.push(b':');
        }
        self.out.extend_from_slice(tag.as_bytes());
    }

    /// An element that holds others.
    pub(crate) fn group(&mut self, tag: &str, content: impl FnOnce(&mut Self)) {
        self.open(tag);
        content(self);
        self.close(tag);
    }

    /// An element with text from outside.
    pub(crate) fn text(&mut self, tag: &str, text: &str) {
        self.open(tag);
        push_escaped(self.out, text);
        self.close(tag);
    }

    /// As [`Xml::text`], where there is one.
    pub(crate) fn optional(&mut self, tag: &str, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.text(tag, text);
        }
    }

    /// A mandatory identifier; an empty one becomes `NOTPROVIDED`.
    pub(crate) fn id(&mut self, tag: &str, id: &str) {
        self.text(tag, if id.is_empty() { "NOTPROVIDED" } else { id });
    }

    /// A free text, cut after `max` characters; nothing when it is empty.
    pub(crate) fn description(&mut self, tag: &str, text: &str, max: usize) {
        let end = text
            .char_indices()
            .nth(max)
            .map_or(text.len(), |(at, _)| at);
        self.optional(tag, text.get(..end));
    }

    /// An element with a text of ours that needs no escape.
    pub(crate) fn code(&mut self, tag: &str, code: &str) {
        self.open(tag);
        self.raw(code);
        self.close(tag);
    }

    pub(crate) fn number(&mut self, tag: &str, number: u64) {
        self.open(tag);
        push_number(self.out, number);
        self.close(tag);
    }

    pub(crate) fn date(&mut self, tag: &str, date: BusinessDate) {
        self.open(tag);
        self.out.extend_from_slice(&date_text(date));
        self.close(tag);
    }

    pub(crate) fn time(&mut self, tag: &str, at: Timestamp) {
        self.open(tag);
        self.out.extend_from_slice(&time_text(at));
        self.close(tag);
    }

    /// An amount element with its currency; `minor` is not negative, direction is another element.
    pub(crate) fn amount(&mut self, tag: &str, minor: u128, currency: Currency, exponent: u8) {
        self.out.push(b'<');
        self.name(tag);
        self.out.extend_from_slice(b" Ccy=\"");
        self.out.extend_from_slice(currency.as_bytes());
        self.out.extend_from_slice(b"\">");
        push_decimal(self.out, minor, exponent);
        self.close(tag);
    }

    /// A decimal without currency.
    pub(crate) fn decimal(&mut self, tag: &str, minor: u128, exponent: u8) {
        self.open(tag);
        push_decimal(self.out, minor, exponent);
        self.close(tag);
    }

    pub(crate) fn uetr(&mut self, tag: &str, bits: u128) {
        self.open(tag);
        self.out.extend_from_slice(&uuid_text(bits));
        self.close(tag);
    }

    /// An agent by its BIC.
    pub(crate) fn agent(&mut self, tag: &str, bic: Bic, bic_tag: &str) {
        self.open(tag);
        self.institution(bic, bic_tag);
        self.close(tag);
    }

    /// `FinInstnId` with a BIC.
    pub(crate) fn institution(&mut self, bic: Bic, bic_tag: &str) {
        self.open("FinInstnId");
        self.open(bic_tag);
        self.out.extend_from_slice(bic.as_bytes());
        self.close(bic_tag);
        self.close("FinInstnId");
    }

    /// `FIId` of the header and `Agt` of the assignment hold an institution one level deeper.
    pub(crate) fn nested_agent(&mut self, tag: &str, inner: &str, bic: Bic, bic_tag: &str) {
        self.open(tag);
        self.agent(inner, bic, bic_tag);
        self.close(tag);
    }
}

/// Element content. Characters that XML cannot hold become U+FFFD; a carriage return stays one.
pub(super) fn push_escaped(out: &mut Vec<u8>, text: &str) {
    // 0xEF begins U+FFFE and U+FFFF, which XML cannot hold, among many that it can.
    let plain = |byte: u8| byte >= b' ' && !matches!(byte, b'&' | b'<' | b'>' | 0xEF);
    if text.bytes().all(plain) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    for character in text.chars() {
        match character {
            '&' => out.extend_from_slice(b"&amp;"),
            '<' => out.extend_from_slice(b"&lt;"),
            '>' => out.extend_from_slice(b"&gt;"),
            '\r' => out.extend_from_slice(b"&#13;"),
            '\t' | '\n' => push_char(out, character),
            '\0'..' ' | '\u{FFFE}' | '\u{FFFF}' => push_char(out, '\u{FFFD}'),
            _ => push_char(out, character),
        }
    }
}

fn push_char(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

/// A decimal digit; `value` is below ten at every call.
fn digit(value: u64) -> u8 {
    b'0' + u8::try_from(value % 10).unwrap_or(0)
}

pub(super) fn push_number(out: &mut Vec<u8>, number: u64) {
    push_decimal(out, u128::from(number), 0);
}

/// Minor units with `exponent` decimals: `12.34`, `1200`, `0.001`. The 18 digits of a payment stay in 64-bit arithmetic.
pub(super) fn push_decimal(out: &mut Vec<u8>, minor: u128, exponent: u8) {
    let mut buffer = [0_u8; 48];
    let mut at = buffer.len();
    let mut written = 0_u8;
    let mut push = |byte: u8, at: &mut usize| {
        *at -= 1;
        buffer[*at] = byte;
    };
    let mut wide = minor;
    // Down to 64 bits first; then the fast loop.
    while u64::try_from(wide).is_err() {
        if written == exponent && exponent > 0 {
            push(b'.', &mut at);
        }
        push(digit(u64::try_from(wide % 10).unwrap_or(0)), &mut at);
        wide /= 10;
        written += 1;
    }
    let mut rest = u64::try_from(wide).unwrap_or(u64::MAX);
    loop {
        if written == exponent && exponent > 0 {
            push(b'.', &mut at);
        }
        push(digit(rest), &mut at);
        rest /= 10;
        written += 1;
        if rest == 0 && written > exponent {
            break;
        }
    }
    out.extend_from_slice(&buffer[at..]);
}

/// Whether an ISO 20022 amount or sum, 18 digits in all, holds it.
pub(super) const fn fits_18_digits(minor: u128) -> bool {
    minor <= 999_999_999_999_999_999
}

fn two(value: u64) -> [u8; 2] {
    [digit(value / 10), digit(value)]
}

/// `YYYY-MM-DD`.
pub(super) fn date_text(date: BusinessDate) -> [u8; 10] {
    let (year, month, day) = date.ymd();
    let [y0, y1] = two(u64::from(year / 100));
    let [y2, y3] = two(u64::from(year % 100));
    let [m0, m1] = two(u64::from(month));
    let [d0, d1] = two(u64::from(day));
    [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1]
}

/// `hh:mm:ss.ffffffZ`.
pub(super) fn clock_text(at: Timestamp) -> [u8; 16] {
    let ns = at.ns() % 86_400_000_000_000;
    let seconds = ns / 1_000_000_000;
    let micros = ns % 1_000_000_000 / 1000;
    let [h0, h1] = two(seconds / 3600);
    let [m0, m1] = two(seconds / 60 % 60);
    let [s0, s1] = two(seconds % 60);
    let [f0, f1] = two(micros / 10_000);
    let [f2, f3] = two(micros / 100 % 100);
    let [f4, f5] = two(micros % 100);
    [
        h0, h1, b':', m0, m1, b':', s0, s1, b'.', f0, f1, f2, f3, f4, f5, b'Z',
    ]
}

/// `YYYY-MM-DDThh:mm:ss.ffffffZ`.
pub(super) fn time_text(at: Timestamp) -> [u8; 27] {
    let mut text = [b'T'; 27];
    text[..10].copy_from_slice(&date_text(at.date()));
    text[11..].copy_from_slice(&clock_text(at));
    text
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// 32 hexadecimal digits.
pub(super) fn hex_text(bits: u128) -> [u8; 32] {
    let mut text = [0; 32];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bits.to_be_bytes()) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 0xF)];
    }
    text
}

/// A UUID in its usual form.
pub(super) fn uuid_text(bits: u128) -> [u8; 36] {
    let hex = hex_text(bits);
    let mut text = [b'-'; 36];
    text[..8].copy_from_slice(&hex[..8]);
    text[9..13].copy_from_slice(&hex[8..12]);
    text[14..18].copy_from_slice(&hex[12..16]);
    text[19..23].copy_from_slice(&hex[16..20]);
    text[24..].copy_from_slice(&hex[20..]);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearspan_ledger::PaymentId;
    use clearspan_ledger::money::push_minor;

    #[test]
    fn decimals_are_those_of_the_ledger() {
        let values = [
            0,
            5,
            99,
            1200,
            123_456,
            u128::from(u64::MAX),
            u128::from(u64::MAX) + 1,
            10_u128.pow(37),
        ];
        for exponent in [0, 2, 3, 4] {
            for minor in values {
                let (mut ours, mut theirs) = (Vec::new(), String::new());
                push_decimal(&mut ours, minor, exponent);
                push_minor(&mut theirs, i128::try_from(minor).unwrap(), exponent);
                assert_eq!(String::from_utf8(ours).unwrap(), theirs);
            }
        }
    }

    #[test]
    fn times_and_identifiers_are_those_of_the_ledger() {
        for ns in [0, 999, 1_796_000_400_000_001_999, u64::MAX] {
            let at = Timestamp::from_ns(ns);
            assert_eq!(String::from_utf8_lossy(&time_text(at)), at.to_string());
        }
        let id = PaymentId::parse_uetr(b"8a562c67-ca16-48ba-b074-65581be6f001").unwrap();
        assert_eq!(
            String::from_utf8_lossy(&uuid_text(id.bits())),
            id.to_string()
        );
    }

    #[test]
    fn text_is_escaped_once_and_stays_what_it_was() {
        let escaped = |text: &str| {
            let mut out = Vec::new();
            push_escaped(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            escaped("Müller & Söhne <1> \u{2019}"),
            "Müller &amp; Söhne &lt;1&gt; \u{2019}"
        );
        assert_eq!(escaped("a\r\nb\tc"), "a&#13;\nb\tc");
        assert_eq!(
            escaped("\u{0}\u{1b}\u{FFFF}\u{FEFF}"),
            "\u{FFFD}\u{FFFD}\u{FFFD}\u{FEFF}"
        );
    }

    #[test]
    fn descriptions_are_cut_between_characters() {
        let mut out = Vec::new();
        Xml {
            out: &mut out,
            prefix: "",
        }
        .description("D", "äöü", 2);
        assert_eq!(String::from_utf8(out).unwrap(), "<D>äö</D>");
    }
}
