//! Amounts: the currencies served, the log-normal draw, and decimal text. Integers only.

use super::rng::Rng;

/// A currency of the generated load.
#[derive(Debug)]
pub(crate) struct Currency {
    pub(crate) code: &'static str,
    /// Decimals of the currency (ISO 4217).
    pub(crate) exponent: u32,
    /// Median of a payment in a package, in minor units.
    median_minor: u64,
    /// Share among the payments, relative to the other chosen currencies.
    pub(crate) weight: u64,
}

/// Medians are about 250 euros in each currency.
pub(crate) const CURRENCIES: &[Currency] = &[
    Currency {
        code: "EUR",
        exponent: 2,
        median_minor: 25_000,
        weight: 60,
    },
    Currency {
        code: "USD",
        exponent: 2,
        median_minor: 27_000,
        weight: 20,
    },
    Currency {
        code: "GBP",
        exponent: 2,
        median_minor: 21_000,
        weight: 10,
    },
    Currency {
        code: "CHF",
        exponent: 2,
        median_minor: 24_000,
        weight: 6,
    },
    Currency {
        code: "SEK",
        exponent: 2,
        median_minor: 280_000,
        weight: 4,
    },
    Currency {
        code: "JPY",
        exponent: 0,
        median_minor: 40_000,
        weight: 12,
    },
    Currency {
        code: "KWD",
        exponent: 3,
        median_minor: 83_000,
        weight: 5,
    },
    Currency {
        code: "BHD",
        exponent: 3,
        median_minor: 102_000,
        weight: 2,
    },
    Currency {
        code: "OMR",
        exponent: 3,
        median_minor: 104_000,
        weight: 2,
    },
];

/// Deviation of log2 of a package payment, in 1/256: 1.9 bits. The mean is then about 2.4 times the median.
const PACKAGE_SIGMA_Q8: i64 = 486;
/// An urgent payment is larger, 2 000 times the median of a package payment, and spread wider: 2.4 bits.
const URGENT_FACTOR: u64 = 2_000;
const URGENT_SIGMA_Q8: i64 = 614;
/// No amount is above this: at most 18 digits may travel, and one payment shall not dwarf all accounts.
const LARGEST_MINOR: u64 = 50_000_000_000;

impl Currency {
    pub(crate) fn by_code(code: &str) -> Option<&'static Self> {
        CURRENCIES.iter().find(|currency| currency.code == code)
    }

    /// The amount of a payment in a package, in minor units.
    pub(crate) fn draw_package_minor(&self, rng: &mut Rng) -> u64 {
        self.draw_minor(rng, self.median_minor, PACKAGE_SIGMA_Q8)
    }

    /// The amount of an urgent payment, in minor units.
    pub(crate) fn draw_urgent_minor(&self, rng: &mut Rng) -> u64 {
        self.draw_minor(rng, self.median_minor * URGENT_FACTOR, URGENT_SIGMA_Q8)
    }

    fn draw_minor(&self, rng: &mut Rng, median_minor: u64, sigma_q8: i64) -> u64 {
        let drawn = log_normal(rng, median_minor, sigma_q8).clamp(1, LARGEST_MINOR);
        // Three in ten payments are of whole major units, as people and invoices like them.
        let unit = 10_u64.pow(self.exponent);
        if rng.percent(30) && drawn >= unit {
            drawn - drawn % unit
        } else {
            drawn
        }
    }

    /// `amount_minor` in hundred-thousandths of the major unit, the finest amount a message can carry.
    pub(crate) fn finest(&self, amount_minor: u64) -> u128 {
        u128::from(amount_minor) * 10_u128.pow(5 - self.exponent)
    }

    /// `amount_minor` as the decimal text of a message.
    pub(crate) fn text(&self, amount_minor: u64) -> String {
        decimal(i128::from(amount_minor), self.exponent)
    }
}

/// `value` with its last `exponent` digits after the point.
pub(crate) fn decimal(value: i128, exponent: u32) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let magnitude = value.unsigned_abs();
    if exponent == 0 {
        return format!("{sign}{magnitude}");
    }
    let unit = 10_u128.pow(exponent);
    let width = usize::try_from(exponent).expect("an exponent is a small number");
    format!("{sign}{}.{:0width$}", magnitude / unit, magnitude % unit)
}

/// A sum of amounts in hundred-thousandths, without needless zeros: the control sum of a message.
pub(crate) fn control_sum(finest: u128) -> String {
    let text = decimal(
        i128::try_from(finest).expect("a sum of amounts fits 127 bits"),
        5,
    );
    let trimmed = text.trim_end_matches('0');
    trimmed.strip_suffix('.').unwrap_or(trimmed).to_owned()
}

/// `2^(step/256)` times 2^62.
const POWERS_Q62: [u128; 256] = {
    // 2^(1/256) times 2^62.
    const ROOT_Q62: u128 = 4_624_189_567_668_517_720;
    let mut powers = [1_u128 << 62; 256];
    let mut step = 1;
    while step < 256 {
        powers[step] = (powers[step - 1] * ROOT_Q62) >> 62;
        step += 1;
    }
    powers
};

/// `median * 2^(sigma * z)` with `z` standard normal.
fn log_normal(rng: &mut Rng, median: u64, sigma_q8: i64) -> u64 {
    let exponent_q16 = rng.normal_q16() * sigma_q8 / 256;
    let step = usize::try_from((exponent_q16 >> 8) & 0xff).expect("8 bits");
    let mantissa = (u128::from(median) * POWERS_Q62[step]) >> 46;
    // The mantissa keeps 16 bits of fraction, so that small factors do not lose the amount.
    let shift = exponent_q16 >> 16;
    let scaled = match u32::try_from(shift) {
        Ok(left) => mantissa.checked_shl(left).unwrap_or(u128::MAX),
        Err(_) => mantissa
            .checked_shr(u32::try_from(-shift).unwrap_or(u32::MAX))
            .unwrap_or(0),
    };
    u64::try_from(scaled >> 16).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_follow_the_currency() {
        let text = |code: &str, minor| Currency::by_code(code).expect("served").text(minor);
        assert_eq!(text("EUR", 5), "0.05");
        assert_eq!(text("JPY", 1_500), "1500");
        assert_eq!(text("KWD", 1_001), "1.001");
        assert_eq!(decimal(-12_345, 2), "-123.45");
    }

    #[test]
    fn a_control_sum_adds_amounts_regardless_of_currency() {
        let [eur, jpy, kwd] =
            ["EUR", "JPY", "KWD"].map(|code| Currency::by_code(code).expect("served"));
        assert_eq!(
            control_sum(eur.finest(1_050) + jpy.finest(7) + kwd.finest(2)),
            "17.502"
        );
        assert_eq!(control_sum(jpy.finest(100)), "100");
        assert_eq!(control_sum(0), "0");
    }

    #[test]
    fn the_median_of_the_draws_is_the_median_asked_for() {
        let mut rng = Rng::new(11, 0);
        let mut draws: Vec<u64> = (0..20_001)
            .map(|_| log_normal(&mut rng, 25_000, PACKAGE_SIGMA_Q8))
            .collect();
        draws.sort_unstable();
        assert!(
            (24_000..26_000).contains(&draws[10_000]),
            "median {}",
            draws[10_000]
        );
        // One deviation up is 2^1.9 = 3.7 times the median.
        let upper = draws[16_826];
        assert!((88_000..99_000).contains(&upper), "upper {upper}");
    }
}
