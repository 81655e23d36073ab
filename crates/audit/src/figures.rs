//! The two scalar forms a certificate is written in: signed money and digests. Both have exactly one spelling, so that
//! equal values are equal bytes and a digest over the text means something.

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Signed money in minor units of one currency: cents for EUR, yen for JPY.
///
/// In JSON it is a decimal string (`"-1250"`), because sums exceed the 2^53 that JSON readers keep exactly. There is
/// one spelling per value: no plus sign, no leading zero, no `-0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minor(i128);

/// Largest magnitude read. A sum of 2^31 such figures still fits an `i128`, so the verifier's additions over
/// figures it has read cannot overflow; the money of the world is about 2^60 cents.
pub const MINOR_MAX: i128 = 1 << 96;

impl Minor {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Minor units as a plain integer.
    #[must_use]
    pub const fn get(self) -> i128 {
        self.0
    }
}

impl From<i128> for Minor {
    fn from(minor: i128) -> Self {
        Self(minor)
    }
}

impl From<u64> for Minor {
    fn from(minor: u64) -> Self {
        Self(i128::from(minor))
    }
}

impl From<i64> for Minor {
    fn from(minor: i64) -> Self {
        Self(i128::from(minor))
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a text is not a [`Minor`] or a [`Digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// Not a decimal integer in its only spelling.
    #[error("not an integer of minor units in canonical form")]
    Minor,
    /// Magnitude above [`MINOR_MAX`].
    #[error("amount beyond 2^96 minor units")]
    Range,
    /// Not 64 lower-case hexadecimal digits.
    #[error("not a digest of 64 lower-case hexadecimal digits")]
    Digest,
}

impl FromStr for Minor {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let canonical = match digits.as_bytes() {
            [b'0'] => digits.len() == text.len(),
            [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if !canonical {
            return Err(FigureError::Minor);
        }
        let minor: i128 = text.parse().map_err(|_| FigureError::Range)?;
        if minor.unsigned_abs() > MINOR_MAX.unsigned_abs() {
            return Err(FigureError::Range);
        }
        Ok(Self(minor))
    }
}

impl Serialize for Minor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Minor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

/// A BLAKE3 digest; in JSON 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The digest as bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        let canonical = text
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        if text.len() != 64 || !canonical {
            return Err(FigureError::Digest);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| FigureError::Digest)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| FigureError::Digest)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_one_spelling() {
        for good in [
            "0",
            "1",
            "-1",
            "9007199254740993",
            "-79228162514264337593543950336",
        ] {
            let minor: Minor = good.parse().expect(good);
            assert_eq!(minor.to_string(), good);
        }
        for bad in [
            "", "-", "-0", "00", "01", "+1", "1.0", " 1", "1e3", "0x1", "١",
        ] {
            assert_eq!(bad.parse::<Minor>(), Err(FigureError::Minor), "{bad:?}");
        }
        for far in [
            "79228162514264337593543950337",
            "999999999999999999999999999999999999999999",
        ] {
            assert_eq!(far.parse::<Minor>(), Err(FigureError::Range), "{far:?}");
        }
        assert!(
            serde_json::from_str::<Minor>("12").is_err(),
            "a bare number may have lost digits on its way"
        );
    }

    #[test]
    fn a_digest_reads_back() {
        let digest = Digest::of(b"cycle");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
        assert!("é".repeat(32).parse::<Digest>().is_err());
    }
}
