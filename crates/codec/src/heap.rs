//! A message's heap, compressed where that makes it smaller: XML shrinks to a fraction, and the log carries every byte
//! to every replica.

use bytes::{Bytes, BytesMut};

use crate::DecodeError;

const STORED: u8 = 0;
const LZ4: u8 = 1;
/// Heaps below this are not worth the attempt.
const COMPRESS_MIN_BYTES: usize = 128;
/// The most that a heap may decompress to: the largest message that a gateway takes in is smaller.
pub const RAW_MAX_BYTES: usize = 256 << 20;

/// The most that a byte of an LZ4 block can stand for: a length byte of 255, and its token and offset shared by many.
const LZ4_GROWTH_MAX: usize = 256;

/// Packs a heap: kind, raw length, bytes.
#[must_use]
pub fn pack(raw: &[u8]) -> Bytes {
    let raw_len = u32::try_from(raw.len()).expect("a gateway takes in no message of 4 GiB");
    let mut packed = Vec::with_capacity(5 + lz4_flex::block::get_maximum_output_size(raw.len()));
    packed.push(LZ4);
    packed.extend(raw_len.to_le_bytes());
    if raw.len() >= COMPRESS_MIN_BYTES {
        packed.resize(5 + lz4_flex::block::get_maximum_output_size(raw.len()), 0);
        if let Ok(len) = lz4_flex::block::compress_into(raw, &mut packed[5..])
            && len < raw.len()
        {
            packed.truncate(5 + len);
            return Bytes::from(packed);
        }
        packed.truncate(5);
    }
    packed[0] = STORED;
    packed.extend_from_slice(raw);
    Bytes::from(packed)
}

/// Unpacks it.
///
/// # Errors
/// [`DecodeError`] when the bytes were not made by [`pack`], or state more than [`RAW_MAX_BYTES`].
pub fn unpack(packed: &Bytes) -> Result<Bytes, DecodeError> {
    let Some((&[kind, a, b, c, d], rest)) = packed.split_first_chunk::<5>() else {
        return Err(DecodeError::Short {
            offset_bytes: 0,
            missing_bytes: 5 - packed.len().min(5),
        });
    };
    let raw_len = u32::from_le_bytes([a, b, c, d]) as usize;
    if raw_len > RAW_MAX_BYTES {
        return Err(DecodeError::Compression);
    }
    match kind {
        STORED if rest.len() == raw_len => Ok(packed.slice(5..)),
        // No block of LZ4 grows further than this: memory is taken in proportion to what came.
        LZ4 if raw_len <= rest.len().saturating_mul(LZ4_GROWTH_MAX) => {
            let mut raw = BytesMut::zeroed(raw_len);
            match lz4_flex::block::decompress_into(rest, &mut raw) {
                Ok(len) if len == raw_len => Ok(raw.freeze()),
                _ => Err(DecodeError::Compression),
            }
        }
        _ => Err(DecodeError::Compression),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{pack, unpack};

    #[test]
    fn heaps_come_back() {
        for raw in [
            &b""[..],
            b"short",
            &b"<a>repeated</a>".repeat(500),
            &(0..=255).collect::<Vec<u8>>(),
        ] {
            assert_eq!(unpack(&pack(raw)).as_deref(), Ok(raw));
        }
        assert!(pack(&b"<a>repeated</a>".repeat(500)).len() < 500);
    }

    #[test]
    fn damage_is_refused() {
        let packed = pack(&b"<a>repeated</a>".repeat(500));
        for cut in 0..packed.len() {
            assert!(unpack(&packed.slice(..cut)).is_err());
        }
        assert!(unpack(&Bytes::from_static(&[1, 255, 255, 255, 255, 0])).is_err());
        assert!(unpack(&Bytes::from_static(&[2, 0, 0, 0, 0])).is_err());
        // A long run shrinks as far as anything can, and still comes back.
        let run = vec![b' '; 8 << 20];
        assert_eq!(unpack(&pack(&run)).as_deref(), Ok(&run[..]));
    }
}
