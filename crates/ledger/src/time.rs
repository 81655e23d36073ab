//! Log time and business dates. Nobody here reads a clock: the leader's clock, made monotone, is in the entry.

use std::fmt;

/// Nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The epoch; also "not set" where a field says so.
    pub const ZERO: Self = Self(0);
    /// Later than any real time.
    pub const MAX: Self = Self(u64::MAX);

    /// From nanoseconds since the epoch.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0
    }

    /// `ns` later; saturates at the end of time.
    #[must_use]
    pub const fn plus_ns(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// The UTC date of this instant.
    #[must_use]
    pub fn date(self) -> BusinessDate {
        // 2^64 ns are about 213,000 days.
        BusinessDate::from_days(u32::try_from(self.0 / NS_PER_DAY).unwrap_or(u32::MAX))
    }
}

const NS_PER_DAY: u64 = 86_400_000_000_000;

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC with microseconds: `2026-11-30T08:00:00.000001Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 % NS_PER_DAY;
        let seconds = ns / 1_000_000_000;
        write!(
            f,
            "{}T{:02}:{:02}:{:02}.{:06}Z",
            self.date(),
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60,
            ns % 1_000_000_000 / 1000
        )
    }
}

/// A calendar date, counted in days since 1970-01-01. A business date comes from the journal, not from a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BusinessDate(u32);

impl BusinessDate {
    /// Days since 1970-01-01, at most the year 9999.
    #[must_use]
    pub const fn from_days(days: u32) -> Self {
        Self(if days > 2_932_896 { 2_932_896 } else { days })
    }

    /// Days since 1970-01-01.
    #[must_use]
    pub const fn days(self) -> u32 {
        self.0
    }

    /// The next calendar day.
    #[must_use]
    pub const fn next(self) -> Self {
        Self::from_days(self.0 + 1)
    }

    /// The date of a proleptic Gregorian year, month and day; `None` when there is no such day from 1970 to 9999.
    #[must_use]
    pub fn from_ymd(year: u32, month: u32, day: u32) -> Option<Self> {
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || day < 1 {
            return None;
        }
        // Days from civil (Howard Hinnant's algorithm), in unsigned arithmetic since the year is at least 1970.
        let shifted_year = if month <= 2 { year - 1 } else { year };
        let era = shifted_year / 400;
        let year_of_era = shifted_year % 400;
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        let date = Self((era * 146_097 + day_of_era).checked_sub(719_468)?);
        (date.ymd() == (year, month, day)).then_some(date)
    }

    /// Reads `YYYY-MM-DD`.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let [y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = *text else {
            return None;
        };
        let number = |digits: &[u8]| {
            digits.iter().try_fold(0_u32, |sum, digit| {
                digit
                    .is_ascii_digit()
                    .then(|| sum * 10 + u32::from(digit - b'0'))
            })
        };
        Self::from_ymd(
            number(&[y0, y1, y2, y3])?,
            number(&[m0, m1])?,
            number(&[d0, d1])?,
        )
    }

    /// Year, month, day.
    #[must_use]
    pub const fn ymd(self) -> (u32, u32, u32) {
        let days = self.0 + 719_468;
        let era = days / 146_097;
        let day_of_era = days % 146_097;
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
        (year, month, day)
    }
}

impl fmt::Display for BusinessDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.ymd();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::{BusinessDate, Timestamp};

    #[test]
    fn dates_round_trip() {
        let mut date = BusinessDate::from_days(0);
        for days in 0..60_000 {
            assert_eq!(date, BusinessDate::from_days(days));
            assert_eq!(BusinessDate::parse(date.to_string().as_bytes()), Some(date));
            date = date.next();
        }
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-1-10",
            "1969-12-31",
            "2026-11-30Z",
            "",
        ] {
            assert_eq!(BusinessDate::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times_print_in_utc() {
        let at = Timestamp::from_ns(1_796_000_400_000_001_999);
        assert_eq!(at.to_string(), "2026-11-30T01:00:00.000001Z");
    }
}
