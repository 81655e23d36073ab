//! The plainest bytes for a layout, and a strict reader: short, left-over or wrong bytes are refused.

use bytes::Bytes;
use clearspan_ledger::layout::{Layout, Sink, Source};

#[derive(Default)]
struct Written(Vec<u8>);

impl Sink for Written {
    fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

struct Reader {
    left: Bytes,
}

impl Source for Reader {
    type Error = &'static str;

    fn raw<const N: usize>(&mut self) -> Result<[u8; N], Self::Error> {
        let bytes = self.slice(N)?;
        bytes.as_ref().try_into().map_err(|_| "length")
    }

    fn slice(&mut self, len: usize) -> Result<Bytes, Self::Error> {
        if len > self.left.len() {
            return Err("short");
        }
        Ok(self.left.split_to(len))
    }

    fn left(&self) -> usize {
        self.left.len()
    }

    fn invalid(&self, what: &'static str) -> Self::Error {
        what
    }
}

pub(crate) fn write<T: Layout>(value: &T) -> Vec<u8> {
    let mut sink = Written::default();
    value.put(&mut sink);
    sink.0
}

/// Reads a value that takes all of the bytes.
pub(crate) fn read<T: Layout>(bytes: &[u8]) -> Result<T, &'static str> {
    let mut reader = Reader {
        left: Bytes::copy_from_slice(bytes),
    };
    let value = T::take(&mut reader)?;
    if reader.left.is_empty() {
        Ok(value)
    } else {
        Err("left over")
    }
}
