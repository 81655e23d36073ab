//! The running digest of everything that an entry changed (promise P9).
//!
//! Replicas that applied the same entries have the same digest, in any build and on any number of threads. It is not
//! cryptographic: it finds a replica that went astray, not a forger.

use crate::layout::layout;

/// A running digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    high: u64,
    low: u64,
}

layout!(struct Digest { high, low });

impl Digest {
    /// Takes in one value; order matters.
    #[inline]
    pub(crate) const fn fold(&mut self, value: u64) {
        self.low = (self.low ^ value)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(29);
        self.high =
            (self.high.rotate_left(11) ^ self.low).wrapping_add(value ^ 0xC2B2_AE3D_27D4_EB4F);
    }

    /// Takes in the lower half of a value: all of it wherever amounts of one shard are summed.
    #[inline]
    pub(crate) const fn fold_low(&mut self, value: u128) {
        self.fold(low_bits(value));
    }

    /// The 128 bits.
    #[must_use]
    pub(crate) const fn bits(self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }
}

/// The lower half of a value.
#[expect(
    clippy::cast_possible_truncation,
    reason = "digests and hashes want these bits and no others"
)]
#[inline]
pub(crate) const fn low_bits(value: u128) -> u64 {
    value as u64
}
