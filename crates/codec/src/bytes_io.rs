//! Bytes as a sink and as a source of the ledger's layouts.

use bytes::{Buf, Bytes};
use clearspan_ledger::layout::{Sink, Source};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They end too early.
    #[error("the bytes end at {offset_bytes}, {missing_bytes} more were expected")]
    Short {
        /// Where.
        offset_bytes: usize,
        /// How many more.
        missing_bytes: usize,
    },
    /// They go on after the end.
    #[error("{left_bytes} bytes are left after the end, at {offset_bytes}")]
    Trailing {
        /// Where.
        offset_bytes: usize,
        /// How many.
        left_bytes: usize,
    },
    /// A value that its type does not allow.
    #[error("at byte {offset_bytes}: {what}")]
    Invalid {
        /// Where, just after the value.
        offset_bytes: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// Another kind of layout, or a version that this build does not know.
    #[error(
        "expected {expected} of version {known} or older, found kind {kind} of version {version}"
    )]
    Unknown {
        /// What was expected.
        expected: &'static str,
        /// The newest version known.
        known: u8,
        /// The kind found.
        kind: u8,
        /// The version found.
        version: u8,
    },
    /// A compressed part does not decompress to what it states.
    #[error("a compressed heap is damaged or states a wrong length")]
    Compression,
}

/// Writes into a vector.
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Sink for Writer {
    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// Reads from shared bytes; slices are shared, not copied.
pub(crate) struct Reader {
    bytes: Bytes,
    len: usize,
}

impl Reader {
    pub(crate) const fn new(bytes: Bytes) -> Self {
        let len = bytes.len();
        Self { bytes, len }
    }

    fn offset(&self) -> usize {
        self.len - self.bytes.len()
    }

    /// Kind and version of a layout.
    pub(crate) fn header(
        &mut self,
        expected: &'static str,
        kind: u8,
        known: u8,
    ) -> Result<u8, DecodeError> {
        let [found, version] = self.raw()?;
        if found != kind || version == 0 || version > known {
            return Err(DecodeError::Unknown {
                expected,
                known,
                kind: found,
                version,
            });
        }
        Ok(version)
    }

    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Trailing {
                offset_bytes: self.offset(),
                left_bytes: self.bytes.len(),
            })
        }
    }
}

impl Source for Reader {
    type Error = DecodeError;

    #[inline]
    fn raw<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some(&value) = self.bytes.first_chunk::<N>() else {
            return Err(DecodeError::Short {
                offset_bytes: self.offset(),
                missing_bytes: N - self.bytes.len(),
            });
        };
        self.bytes.advance(N);
        Ok(value)
    }

    fn slice(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        if len > self.bytes.len() {
            return Err(DecodeError::Short {
                offset_bytes: self.offset(),
                missing_bytes: len - self.bytes.len(),
            });
        }
        Ok(self.bytes.split_to(len))
    }

    fn left(&self) -> usize {
        self.bytes.len()
    }

    fn invalid(&self, what: &'static str) -> DecodeError {
        DecodeError::Invalid {
            offset_bytes: self.offset(),
            what,
        }
    }
}
