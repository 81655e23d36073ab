//! Amounts in integer minor units (domain rule R39): no floating point, overflow is a refusal, never a wrap.

use crate::Currency;

/// Minor units of one currency: cents for EUR, yen for JPY, fils for KWD. Never negative; balances are `i128`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AmountMinor(u64);

impl AmountMinor {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The largest amount of one payment: 18 digits, the most that an ISO 20022 amount can hold.
    pub const MAX: Self = Self(999_999_999_999_999_999);

    /// `minor` minor units; `None` above [`AmountMinor::MAX`].
    #[must_use]
    pub const fn new(minor: u64) -> Option<Self> {
        if minor <= Self::MAX.0 {
            Some(Self(minor))
        } else {
            None
        }
    }

    /// The number of minor units.
    #[must_use]
    pub const fn minor(self) -> u64 {
        self.0
    }

    /// The same amount, signed and wide enough for sums of any number of payments.
    #[must_use]
    pub const fn signed(self) -> i128 {
        self.0 as i128
    }
}

/// Why a decimal string is not an amount of a currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmountFault {
    /// Nothing there.
    Empty,
    /// Not digits with at most one point, or a sign.
    NotANumber,
    /// More significant decimals than the currency has.
    TooManyDecimals,
    /// More than 18 digits in minor units.
    TooLarge,
}

/// Reads a decimal string as minor units of a currency with `exponent` decimals.
///
/// Decided spellings (domain 4, tested below): leading zeros and trailing zero decimals are accepted when the value is
/// exact (`0100.00`, `100.0`; also `100.00` for JPY is refused, since the *written* decimals exceed the currency's);
/// `+100`, `-1`, `1e3`, `1,00`, ` 1` and `.` are not numbers; `.5` and `5.` are read as `0.5` and `5`.
///
/// # Errors
/// [`AmountFault`] names the first fault.
pub fn parse_amount(text: &[u8], exponent: u8) -> Result<AmountMinor, AmountFault> {
    if text.is_empty() {
        return Err(AmountFault::Empty);
    }
    let mut value: u64 = 0;
    let mut decimals: Option<u8> = None;
    let mut digits = 0_u32;
    let mut too_large = false;
    for &byte in text {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                if let Some(count) = decimals.as_mut() {
                    *count = count.saturating_add(1);
                }
                match value
                    .checked_mul(10)
                    .and_then(|v| v.checked_add(u64::from(byte - b'0')))
                {
                    Some(next) => value = next,
                    None => too_large = true,
                }
            }
            b'.' if decimals.is_none() => decimals = Some(0),
            _ => return Err(AmountFault::NotANumber),
        }
    }
    if digits == 0 {
        return Err(AmountFault::NotANumber);
    }
    let written = decimals.unwrap_or(0);
    if written > exponent {
        return Err(AmountFault::TooManyDecimals);
    }
    for _ in written..exponent {
        match value.checked_mul(10) {
            Some(next) => value = next,
            None => too_large = true,
        }
    }
    if too_large {
        return Err(AmountFault::TooLarge);
    }
    AmountMinor::new(value).ok_or(AmountFault::TooLarge)
}

/// Writes signed minor units with the currency's decimals: `-12.34` EUR, `1200` JPY, `0.001` KWD.
#[must_use]
pub fn format_minor(minor: i128, currency: Currency) -> String {
    let mut text = String::with_capacity(24);
    push_minor(&mut text, minor, currency.exponent());
    text
}

/// As [`format_minor`], appended to `out`, for hot paths that reuse a buffer.
pub fn push_minor(out: &mut String, minor: i128, exponent: u8) {
    let mut buffer = [0_u8; 48];
    let mut at = buffer.len();
    let mut rest = minor.unsigned_abs();
    let mut written = 0_u8;
    loop {
        if written == exponent && exponent > 0 {
            at -= 1;
            buffer[at] = b'.';
        }
        at -= 1;
        // A remainder by ten always fits a byte.
        buffer[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        written += 1;
        if rest == 0 && written > exponent {
            break;
        }
    }
    if minor < 0 {
        at -= 1;
        buffer[at] = b'-';
    }
    out.extend(buffer[at..].iter().map(|&byte| char::from(byte)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decided_spellings() {
        let read =
            |text: &str, exponent| parse_amount(text.as_bytes(), exponent).map(AmountMinor::minor);
        assert_eq!(read("100", 2), Ok(10_000));
        assert_eq!(read("100.0", 2), Ok(10_000));
        assert_eq!(read("100.00", 2), Ok(10_000));
        assert_eq!(read("0100.00", 2), Ok(10_000));
        assert_eq!(read(".5", 2), Ok(50));
        assert_eq!(read("5.", 2), Ok(500));
        assert_eq!(read("0.001", 3), Ok(1));
        assert_eq!(read("90071992547409.93", 2), Ok(9_007_199_254_740_993));
        assert_eq!(read("+100", 2), Err(AmountFault::NotANumber));
        assert_eq!(read("-1", 2), Err(AmountFault::NotANumber));
        assert_eq!(read("1e3", 2), Err(AmountFault::NotANumber));
        assert_eq!(read("1,00", 2), Err(AmountFault::NotANumber));
        assert_eq!(read(" 1", 2), Err(AmountFault::NotANumber));
        assert_eq!(read(".", 2), Err(AmountFault::NotANumber));
        assert_eq!(read("", 2), Err(AmountFault::Empty));
        assert_eq!(read("100.00", 0), Err(AmountFault::TooManyDecimals));
        assert_eq!(read("1.00000", 2), Err(AmountFault::TooManyDecimals));
        assert_eq!(read("9999999999999999.99", 2), Ok(999_999_999_999_999_999));
        assert_eq!(read("10000000000000000.00", 2), Err(AmountFault::TooLarge));
        assert_eq!(
            read("99999999999999999999999999", 0),
            Err(AmountFault::TooLarge)
        );
    }

    #[test]
    fn written_amounts() {
        let write = |minor, exponent| {
            let mut out = String::new();
            push_minor(&mut out, minor, exponent);
            out
        };
        assert_eq!(write(0, 2), "0.00");
        assert_eq!(write(5, 2), "0.05");
        assert_eq!(write(-1234, 2), "-12.34");
        assert_eq!(write(1200, 0), "1200");
        assert_eq!(write(1, 3), "0.001");
        assert_eq!(
            write(i128::MIN, 3),
            "-170141183460469231731687303715884105.728"
        );
    }
}
