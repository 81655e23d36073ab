//! Values of elements that decide something, from their text.

/// A decimal number with at most five decimals, in units of 0.00001: what sums of amounts of any currency are compared in.
/// `None` for anything else, and above 18 digits before the point.
pub(crate) fn decimal5(text: &[u8]) -> Option<i128> {
    let mut value = 0_i128;
    let mut decimals: Option<u32> = None;
    let mut digits = 0_u32;
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                // Zeros behind the fifth decimal say nothing.
                if let Some(count) = decimals.as_mut() {
                    if *count == 5 {
                        if byte != b'0' {
                            return None;
                        }
                        continue;
                    }
                    *count += 1;
                }
                value = value
                    .checked_mul(10)?
                    .checked_add(i128::from(byte - b'0'))?;
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return None,
        }
    }
    if digits == 0 || digits > 36 {
        return None;
    }
    let missing = 5 - decimals.unwrap_or(0);
    value
        .checked_mul(10_i128.checked_pow(missing)?)
        .filter(|&value| value < 10_i128.pow(23))
}

const NS_PER_SECOND: i64 = 1_000_000_000;

/// A time of day with zone, as nanoseconds from midnight UTC of the same date; negative or above a day where the zone
/// moves it over midnight. `None` without a zone: what it would mean depends on who reads it. Decimals of a second behind
/// the ninth are left out.
pub(crate) fn time_of_day(text: &[u8]) -> Option<i64> {
    let two = |at: usize| match (text.get(at)?, text.get(at + 1)?) {
        (high @ b'0'..=b'9', low @ b'0'..=b'9') => {
            Some(i64::from(high - b'0') * 10 + i64::from(low - b'0'))
        }
        _ => None,
    };
    let (hour, minute, second) = (two(0)?, two(3)?, two(6)?);
    if hour > 23 || minute > 59 || second > 59 || text[2] != b':' || text[5] != b':' {
        return None;
    }
    let mut fraction = 0_i64;
    let mut at = 8;
    if text.get(at) == Some(&b'.') {
        at += 1;
        let digits = text
            .get(at..)?
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits == 0 {
            return None;
        }
        for place in 0..9 {
            let digit = if place < digits {
                text.get(at + place)? - b'0'
            } else {
                0
            };
            fraction = fraction * 10 + i64::from(digit);
        }
        at += digits;
    }
    let offset = match text.get(at)? {
        b'Z' if text.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if text.len() == at + 6 && text.get(at + 3) == Some(&b':') => {
            let (hours, minutes) = (two(at + 1)?, two(at + 4)?);
            if hours > 14 || minutes > 59 || hours * 60 + minutes > 840 {
                return None;
            }
            let seconds = (hours * 60 + minutes) * 60;
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    Some(((hour * 60 + minute) * 60 + second - offset) * NS_PER_SECOND + fraction)
}

/// Whether a text is a legal entity identifier (ISO 17442): 18 capital letters or digits and two check digits, modulo 97.
pub(crate) fn is_lei(text: &[u8]) -> bool {
    if text.len() != 20 || !text[18..].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let mut remainder = 0_u32;
    for &byte in text {
        remainder = match byte {
            b'0'..=b'9' => remainder * 10 + u32::from(byte - b'0'),
            b'A'..=b'Z' => remainder * 100 + u32::from(byte - b'A') + 10,
            _ => return false,
        } % 97;
    }
    remainder == 1
}

/// The number that a message identifier ends with behind its last `-` or `/`, from 1.
#[must_use]
pub fn sequence_of(message_id: &str) -> Option<u64> {
    let (_, digits) = message_id.rsplit_once(['-', '/'])?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|&number| number != 0)
}

/// A code of at most four characters, filled up with blanks.
pub(crate) fn code4(text: &[u8]) -> Option<[u8; 4]> {
    let mut code = *b"    ";
    if text.is_empty() || !text.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    code.get_mut(..text.len())?.copy_from_slice(text);
    Some(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal5(b"100"), Some(10_000_000));
        assert_eq!(decimal5(b"0.00001"), Some(1));
        assert_eq!(decimal5(b"1.10"), Some(110_000));
        assert_eq!(decimal5(b"1.1000000"), Some(110_000));
        assert_eq!(
            decimal5(b"999999999999999999"),
            Some(99_999_999_999_999_999_900_000)
        );
        for text in [
            "",
            ".",
            "1.000001",
            "-1",
            "+1",
            "1e3",
            " 1",
            "1 ",
            "1.2.3",
            "1000000000000000000",
        ] {
            assert_eq!(decimal5(text.as_bytes()), None, "{text}");
        }
        assert_eq!(decimal5(&[b'9'; 100]), None);
    }

    #[test]
    fn times_have_a_zone() {
        assert_eq!(time_of_day(b"00:00:01Z"), Some(1_000_000_000));
        assert_eq!(time_of_day(b"01:00:00+02:00"), Some(-3_600_000_000_000));
        assert_eq!(
            time_of_day(b"01:00:00.123456789-01:30"),
            Some(9_000_123_456_789)
        );
        assert_eq!(time_of_day(b"00:00:00.1234567Z"), Some(123_456_700));
        assert_eq!(time_of_day(b"00:00:00.1234567891Z"), Some(123_456_789));
        for text in [
            "",
            "01:00:00",
            "24:00:00Z",
            "00:60:00Z",
            "00:00:60Z",
            "00:00:00.Z",
            "00-00-00Z",
            "1:00:00Z",
            "00:00:00+15:00",
            "00:00:00Zx",
        ] {
            assert_eq!(time_of_day(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn leis_have_check_digits() {
        assert!(is_lei(b"529900T8BM49AURSDO55"));
        assert!(!is_lei(b"529900T8BM49AURSDO56"));
        assert!(!is_lei(b"529900T8BM49AURSDO5"));
        assert!(!is_lei(b"529900t8BM49AURSDO55"));
    }

    #[test]
    fn sequence_numbers_end_the_identifier() {
        assert_eq!(sequence_of("ALFA-20261130-0042"), Some(42));
        assert_eq!(sequence_of("ALFA/7"), Some(7));
        for id in [
            "ALFA42",
            "ALFA-",
            "ALFA-0",
            "ALFA-4x",
            "ALFA-99999999999999999999",
        ] {
            assert_eq!(sequence_of(id), None, "{id}");
        }
    }

    #[test]
    fn codes_are_filled_up() {
        assert_eq!(code4(b"DUPL"), Some(*b"DUPL"));
        assert_eq!(code4(b"AB"), Some(*b"AB  "));
        assert_eq!(code4(b""), None);
        assert_eq!(code4(b"TOOLONG"), None);
    }
}
