//! Random numbers that depend on the seed alone, in streams: what one part draws does not move what another one gets.

/// One stream.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

/// What a stream is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Plan = 1,
    Network = 2,
    Disk = 3,
    Faults = 4,
    Workload = 5,
    Scheduler = 6,
}

impl Rng {
    pub(crate) fn new(seed: u64, stream: Stream) -> Self {
        let mut rng = Self(seed ^ (stream as u64).wrapping_mul(0xA076_1D64_78BD_642F));
        rng.next();
        rng.next();
        rng
    }

    /// SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Below a bound; zero for a bound of zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next() % bound }
    }

    /// Both ends are possible.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// True in so many of a thousand cases.
    pub(crate) fn per_mille(&mut self, chance: u64) -> bool {
        self.below(1000) < chance
    }

    /// Around a mean, with a long tail: most are shorter, few are many times as long.
    pub(crate) fn around(&mut self, mean: u64) -> u64 {
        let halvings = (self.next() | 1 << 6).trailing_zeros();
        let step = mean / 2 + self.below(mean / 2 + 1);
        step + mean.saturating_mul(u64::from(halvings)) / 2
    }
}
