//! A small seeded generator: the same seed gives the same bytes on every machine and in every build.
//!
//! SplitMix64 spreads the seed, xoshiro256** (Blackman and Vigna) draws. No floating point: the mathematical functions
//! of one platform differ from those of the next in the last bit, and one bit would be another file.

/// A stream of random draws. Each message has its own, so that one message does not depend on how another was made.
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream `stream` of the seed `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut spread = seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut next = || {
            spread = spread.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = spread;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        Self {
            state: [next(), next(), next(), next()],
        }
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let drawn = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let mixed_c = c ^ a;
        let mixed_d = d ^ b;
        self.state = [
            a ^ mixed_d,
            b ^ mixed_c,
            mixed_c ^ (b << 17),
            mixed_d.rotate_left(45),
        ];
        drawn
    }

    /// A number below `bound`, which is at least 1. The bias of the multiplication is below `bound` in 2^64.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing is below zero");
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the upper half of a 128-bit product has 64 bits")
    }

    /// An index into something of `len` elements, which is at least 1.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let bound = u64::try_from(len).expect("a length fits 64 bits");
        usize::try_from(self.below(bound)).expect("smaller than a length")
    }

    /// One of `items`, which is not empty.
    pub(crate) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }

    /// True in `share_percent` of 100 draws.
    pub(crate) fn percent(&mut self, share_percent: u64) -> bool {
        self.below(100) < share_percent
    }

    /// True in `share_ppm` of a million draws.
    pub(crate) fn ppm(&mut self, share_ppm: u32) -> bool {
        self.below(1_000_000) < u64::from(share_ppm)
    }

    /// A draw from the standard normal distribution times 65 536: the sum of twelve uniform draws, so within six
    /// deviations.
    pub(crate) fn normal_q16(&mut self) -> i64 {
        let mut sum = 0_i64;
        for _ in 0..3 {
            let word = self.next_u64();
            for shift in [0, 16, 32, 48] {
                sum += i64::try_from((word >> shift) & 0xffff).expect("16 bits");
            }
        }
        // Twelve draws of mean 32 767.5.
        sum - 393_210
    }

    /// Puts `items` in random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.index(last + 1);
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_draws_of_a_seed_never_change() {
        let mut rng = Rng::new(1, 0);
        let drawn: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        // SplitMix64 and xoshiro256** as published, started from seed 1.
        assert_eq!(
            drawn,
            [
                12_966_619_160_104_079_557,
                9_600_361_134_598_540_522,
                10_590_380_919_521_690_900
            ]
        );
    }

    #[test]
    fn the_normal_draw_has_mean_zero_and_deviation_one() {
        let mut rng = Rng::new(7, 0);
        let draws: Vec<i64> = (0..20_000).map(|_| rng.normal_q16()).collect();
        let mean = draws.iter().sum::<i64>() / 20_000;
        let variance = draws.iter().map(|draw| draw * draw / 65_536).sum::<i64>() / 20_000;
        assert!(mean.abs() < 1_500, "mean {mean}");
        assert!((variance - 65_536).abs() < 2_000, "variance {variance}");
    }

    #[test]
    fn shuffling_keeps_every_element() {
        let mut items: Vec<u32> = (0..100).collect();
        Rng::new(3, 9).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<u32>>());
    }
}
