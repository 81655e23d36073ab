//! As much of DER as says until when a certificate or a revocation list counts.

use clearspan_ledger::BusinessDate;

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// The version of a certificate.
const EXPLICIT_0: u8 = 0xA0;

/// The first element: its tag, what it holds, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (len, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        // Four bytes of length are more than any file here has.
        let count = usize::from(first & 0x7F);
        if !(1..=4).contains(&count) {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        let len = digits
            .iter()
            .fold(0_usize, |len, &digit| (len << 8) | usize::from(digit));
        (len, rest)
    };
    let (content, rest) = rest.split_at_checked(len)?;
    Some((tag, content, rest))
}

fn expect(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    let (tag, content, rest) = element(bytes)?;
    (tag == wanted).then_some((content, rest))
}

/// What follows the first element where it has this tag.
fn skip_optional(bytes: &[u8], unwanted: u8) -> &[u8] {
    expect(bytes, unwanted).map_or(bytes, |(_, rest)| rest)
}

/// Seconds since 1970 of a time in UTC without fractions, the only form that certificates may have.
fn time(tag: u8, text: &[u8]) -> Option<u64> {
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_u32, |sum, digit| {
            digit
                .is_ascii_digit()
                .then(|| sum * 10 + u32::from(digit - b'0'))
        })
    };
    let (year, rest) = match tag {
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (number(year)?, rest)
        }
        UTC_TIME => {
            // RFC 5280, 4.1.2.5.1
            let (year, rest) = text.split_at_checked(2)?;
            let year = number(year)?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        _ => return None,
    };
    let [m0, m1, d0, d1, h0, h1, i0, i1, s0, s1, b'Z'] = *rest else {
        return None;
    };
    let date = BusinessDate::from_ymd(year, number(&[m0, m1])?, number(&[d0, d1])?)?;
    let (hour, minute, second) = (number(&[h0, h1])?, number(&[i0, i1])?, number(&[s0, s1])?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let of_day = hour * 3600 + minute * 60 + second;
    Some(u64::from(date.days()) * 86_400 + u64::from(of_day))
}

/// The end of a certificate's validity, in seconds since 1970.
pub(super) fn not_after_s(certificate: &[u8]) -> Option<u64> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (signed, _) = expect(certificate, SEQUENCE)?;
    let signed = skip_optional(signed, EXPLICIT_0);
    let (_, rest) = expect(signed, INTEGER)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (_, _, rest) = element(validity)?;
    let (tag, text, _) = element(rest)?;
    time(tag, text)
}

/// When the next revocation list is due, in seconds since 1970; this one counts until then.
pub(super) fn next_update_s(list: &[u8]) -> Option<u64> {
    let (list, _) = expect(list, SEQUENCE)?;
    let (signed, _) = expect(list, SEQUENCE)?;
    let signed = skip_optional(signed, INTEGER);
    let (_, rest) = expect(signed, SEQUENCE)?;
    let (_, rest) = expect(rest, SEQUENCE)?;
    let (_, _, rest) = element(rest)?;
    let (tag, text, _) = element(rest)?;
    time(tag, text)
}

#[cfg(test)]
mod tests {
    use super::{GENERALIZED_TIME, UTC_TIME, element, next_update_s, not_after_s, time};

    #[test]
    fn times_are_read_or_refused() {
        assert_eq!(time(UTC_TIME, b"700101000000Z"), Some(0));
        assert_eq!(time(UTC_TIME, b"261130080000Z"), Some(1_796_025_600));
        assert_eq!(
            time(GENERALIZED_TIME, b"20500101000000Z"),
            Some(2_524_608_000)
        );
        for bad in [
            "",
            "2611300800Z",
            "261330080000Z",
            "261130240000Z",
            "261130080000+",
            "2x1130080000Z",
        ] {
            assert_eq!(time(UTC_TIME, bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn what_is_cut_off_or_lies_about_its_length_is_nothing() {
        assert_eq!(element(&[0x30, 0x02, 1]), None);
        assert_eq!(element(&[0x30, 0x85, 1, 1, 1, 1, 1]), None);
        assert_eq!(element(&[0x30, 0x80]), None);
        assert_eq!(
            element(&[0x30, 0x81, 1, 7]),
            Some((0x30, &[7_u8][..], &[][..]))
        );
        assert_eq!(not_after_s(&[]), None);
        assert_eq!(next_update_s(&[0x30, 0x03, 0x30, 0x01, 0x02]), None);
    }
}
