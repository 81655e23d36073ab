//! Short identifiers kept inline, so that a record needs no allocation.

use std::fmt;

/// A text of at most 35 bytes of UTF-8 (ISO 20022 `Max35Text` in practice: scheme rules admit ASCII identifiers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text {
    len: u8,
    bytes: [u8; Self::MAX_LEN],
}

impl Text {
    /// The most bytes it holds.
    pub const MAX_LEN: usize = 35;

    /// No text.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: [0; Self::MAX_LEN],
    };

    /// `None` when `text` is longer than 35 bytes: refused, never cut (domain 4: a 36-character UUID does not fit).
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; Self::MAX_LEN];
        bytes
            .get_mut(..text.len())?
            .copy_from_slice(text.as_bytes());
        Some(Self {
            len: u8::try_from(text.len()).ok()?,
            bytes,
        })
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only `new` fills the bytes, from a str of this length.
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}
