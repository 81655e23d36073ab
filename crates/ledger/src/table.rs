//! Growing tables without long pauses: a chunked vector, and an index over positions that grows in small segments.
//!
//! A plain vector of millions of payments would copy itself when it doubles, and a plain hash table would rehash itself:
//! tens of milliseconds in which no urgent payment settles. Here the longest step moves one segment, in order and without
//! a look at the keys.

use crate::layout::{Layout, Sink, Source};

/// Elements per chunk: 16 KiB elements of 16 bytes are 256 KiB, large enough for streaming and small enough to allocate
/// without a pause.
const CHUNK_LEN: usize = 1 << 14;

/// A vector in chunks of a fixed size; an element never moves.
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<T> Chunked<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, value: T) {
        if self.len.is_multiple_of(CHUNK_LEN) {
            self.chunks.push(Vec::with_capacity(CHUNK_LEN));
        }
        // The line above made sure that there is a last chunk.
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(value);
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> Option<&T> {
        self.chunks
            .get(position / CHUNK_LEN)?
            .get(position % CHUNK_LEN)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, position: usize) -> Option<&mut T> {
        self.chunks
            .get_mut(position / CHUNK_LEN)?
            .get_mut(position % CHUNK_LEN)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// The elements of `from..to`, chunk by chunk, for loops that the compiler can make fast.
    pub(crate) fn slices_mut(&mut self, from: usize, to: usize) -> impl Iterator<Item = &mut [T]> {
        let to = to.min(self.len);
        let from = from.min(to);
        let first = from / CHUNK_LEN;
        self.chunks[first..to.div_ceil(CHUNK_LEN)]
            .iter_mut()
            .enumerate()
            .map(move |(at, chunk)| {
                let base = (first + at) * CHUNK_LEN;
                let low = from.saturating_sub(base);
                let high = (to - base).min(chunk.len());
                &mut chunk[low..high]
            })
    }

    /// As [`Chunked::slices_mut`], for reading.
    pub(crate) fn slices(&self, from: usize, to: usize) -> impl DoubleEndedIterator<Item = &[T]> {
        let to = to.min(self.len);
        let from = from.min(to);
        let first = from / CHUNK_LEN;
        self.chunks[first..to.div_ceil(CHUNK_LEN)]
            .iter()
            .enumerate()
            .map(move |(at, chunk)| {
                let base = (first + at) * CHUNK_LEN;
                let low = from.saturating_sub(base);
                let high = (to - base).min(chunk.len());
                &chunk[low..high]
            })
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.len() * CHUNK_LEN * size_of::<T>()
    }
}

impl<T: Layout> Layout for Chunked<T> {
    fn put<S: Sink>(&self, sink: &mut S) {
        (self.len as u64).put(sink);
        for value in self.iter() {
            value.put(sink);
        }
    }
    fn take<S: Source>(source: &mut S) -> Result<Self, S::Error> {
        let len = u64::take(source)?;
        let mut values = Self::default();
        for _ in 0..len {
            values.push(T::take(source)?);
        }
        Ok(values)
    }
}

/// Segments of an index: the longest rehash moves 1/256 of the entries.
const SEGMENT_COUNT: usize = 256;
/// Slots of a new segment.
const SEGMENT_SLOTS_MIN: usize = 16;

/// Finds positions in a table by a hash of their key. It keeps no keys: the table that it indexes compares them. Several
/// positions may have one key; iteration over the whole does not exist, so hash order never shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug, Default)]
struct Segment {
    /// `tag << 32 | position + 1`; zero is free. Linear probing, at most three quarters full. Where an entry belongs are
    /// the upper bits of its tag, so a segment grows without the keys, and entries keep their order while it does.
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    /// The positions whose key has this hash (the lower 64 bits of it), and a few others: compare the keys.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> impl Iterator<Item = usize> {
        let segment = self.segments.get(Self::segment_of(hash));
        let slots = segment.map_or(&[][..], |segment| &segment.slots);
        let mask = slots.len().wrapping_sub(1);
        let tag = Self::tag_of(hash);
        let mut at = Self::place_of(tag, slots.len());
        std::iter::from_fn(move || {
            loop {
                let slot = *slots.get(at & mask)?;
                if slot == 0 {
                    return None;
                }
                at = at.wrapping_add(1);
                if slot >> 32 == tag {
                    return Some((slot & 0xFFFF_FFFF) as usize - 1);
                }
            }
        })
    }

    /// Loads the line in which a hash is looked for, without a look at what is there: what depended on it would wait.
    #[inline]
    pub(crate) fn touch(&self, hash: u64) -> u64 {
        self.segments
            .get(Self::segment_of(hash))
            .map(|segment| &segment.slots)
            .and_then(|slots| slots.get(Self::place_of(Self::tag_of(hash), slots.len())))
            .copied()
            .unwrap_or(0)
    }

    /// Adds a position under its key's hash.
    ///
    /// # Panics
    /// When the table has 2^32 - 1 positions: a business day of one shard ends long before.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u64, position: usize) {
        if self.segments.is_empty() {
            self.segments = vec![Segment::default(); SEGMENT_COUNT];
        }
        let value = u32::try_from(position + 1)
            .expect("a day's table of one shard stays below 2^32 positions");
        let segment = &mut self.segments[Self::segment_of(hash)];
        if (segment.used + 1) * 4 > segment.slots.len() * 3 {
            let slots = (segment.slots.len() * 2).max(SEGMENT_SLOTS_MIN);
            let old = std::mem::replace(&mut segment.slots, vec![0; slots]);
            for slot in old.into_iter().filter(|&slot| slot != 0) {
                Self::place(&mut segment.slots, slot);
            }
        }
        let slot = Self::tag_of(hash) << 32 | u64::from(value);
        Self::place(&mut segment.slots, slot);
        segment.used += 1;
    }

    #[inline]
    fn place(slots: &mut [u64], slot: u64) {
        let mask = slots.len() - 1;
        let mut at = Self::place_of(slot >> 32, slots.len());
        while slots[at] != 0 {
            at = (at + 1) & mask;
        }
        slots[at] = slot;
    }

    /// Where a tag belongs among this many slots, a power of two.
    #[inline]
    const fn place_of(tag: u64, slots: usize) -> usize {
        // The upper bits of 32 bits, scaled: below `slots`.
        ((tag * slots as u64) >> 32) as usize
    }

    #[inline]
    const fn segment_of(hash: u64) -> usize {
        (hash >> 56) as usize
    }

    #[inline]
    const fn tag_of(hash: u64) -> u64 {
        hash >> 24 & 0xFFFF_FFFF
    }

    /// Bytes held.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.segments
            .iter()
            .map(|segment| segment.slots.capacity() * 8)
            .sum()
    }
}

/// Hashes keys with a secret of the cluster, so that nobody outside can choose keys that collide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hasher {
    pub(crate) seed: u128,
}

impl Hasher {
    /// The hash of a 128-bit key in a scope (the sender).
    #[inline]
    pub(crate) fn hash(self, key: u128, scope: u16) -> u64 {
        let low = key as u64 ^ self.seed as u64;
        let high = (key >> 64) as u64 ^ (self.seed >> 64) as u64 ^ u64::from(scope) << 48;
        let product =
            u128::from(low | 1).wrapping_mul(u128::from(high ^ 0x9E37_79B9_7F4A_7C15 | 1 << 63));
        let folded = product as u64 ^ (product >> 64) as u64;
        let product = u128::from(folded ^ low.rotate_left(32))
            .wrapping_mul(0xD6E8_FEB8_6659_FD93_A076_1D64_78BD_642F);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_LEN, Chunked, Hasher, Index};

    #[test]
    fn chunked_reads_what_was_pushed() {
        let mut values = Chunked::default();
        let len = CHUNK_LEN * 2 + 5;
        for value in 0..len {
            values.push(value);
        }
        assert_eq!(values.len(), len);
        assert_eq!(values.get(CHUNK_LEN), Some(&CHUNK_LEN));
        assert_eq!(values.get(len), None);
        for (from, to) in [
            (0, len),
            (3, 4),
            (CHUNK_LEN - 1, CHUNK_LEN + 1),
            (5, 5),
            (len - 1, len + 9),
            (0, CHUNK_LEN),
        ] {
            let found: Vec<usize> = values.slices(from, to).flatten().copied().collect();
            assert_eq!(
                found,
                (from..to.min(len)).collect::<Vec<_>>(),
                "{from}..{to}"
            );
        }
    }

    #[test]
    fn the_index_finds_every_position_and_no_missing_key() {
        let hasher = Hasher { seed: 7 };
        let keys: Vec<u128> = (0..100_000_u128).map(|n| n * n << 32 | n).collect();
        let hash = |position: usize| hasher.hash(keys[position], 3);
        let mut index = Index::default();
        for position in 0..keys.len() {
            index.insert(hash(position), position);
        }
        for (position, &key) in keys.iter().enumerate() {
            let found: Vec<usize> = index
                .find(hasher.hash(key, 3))
                .filter(|&at| keys[at] == key)
                .collect();
            assert_eq!(found, [position]);
        }
        assert_eq!(
            index
                .find(hasher.hash(u128::MAX, 3))
                .filter(|&at| keys[at] == u128::MAX)
                .count(),
            0
        );
    }
}
