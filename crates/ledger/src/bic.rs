//! Business identifier codes (ISO 9362) as participants' names on the wire.

use std::fmt;

/// A business identifier code of 11 characters; a code of 8 is filled up with `XXX` (domain 4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bic([u8; 11]);

impl Bic {
    /// Reads 8 or 11 characters: 4 letters or digits (party prefix), 2 letters (country), 2 and optionally 3 letters or
    /// digits, upper case. `None` for anything else.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut code = *b"XXXXXXXXXXX";
        match text.len() {
            8 | 11 => code.get_mut(..text.len())?.copy_from_slice(text),
            _ => return None,
        }
        // No branch for a byte: every payment's receiver is read at the gateway and on every replica.
        let mut fits = true;
        for (index, &byte) in code.iter().enumerate() {
            let digit = byte.is_ascii_digit() & !matches!(index, 4 | 5);
            fits &= byte.is_ascii_uppercase() | digit;
        }
        if !fits {
            return None;
        }
        Some(Self(code))
    }

    /// The 11 bytes, upper-case letters and digits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 11] {
        &self.0
    }

    /// The 11 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only `parse` builds a code, and it admits ASCII alone.
        std::str::from_utf8(&self.0).unwrap_or("???????????")
    }
}

impl fmt::Display for Bic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Bic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Bic;

    #[test]
    fn eight_is_filled_up_to_eleven() {
        assert_eq!(Bic::parse(b"ALFADEFF"), Bic::parse(b"ALFADEFFXXX"));
        assert_eq!(
            Bic::parse(b"ALFADEFF")
                .map(|bic| bic.to_string())
                .as_deref(),
            Some("ALFADEFFXXX")
        );
    }

    #[test]
    fn other_shapes_are_refused() {
        for text in [
            "",
            "ALFADEF",
            "ALFADEFFX",
            "ALFADEFFXXXX",
            "alfadeff",
            "ALFA1EFF",
            "ALFADE F",
        ] {
            assert_eq!(Bic::parse(text.as_bytes()), None, "{text}");
        }
    }
}
