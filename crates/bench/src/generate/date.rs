//! Calendar days as the messages write them, without a clock.

/// A day of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Day {
    year: u32,
    month: u32,
    day: u32,
}

impl Day {
    /// Reads `2026-11-30`; nothing when it is no such day, or not of the years 2000 to 2099.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let mut part = |width: usize| {
            let digits = parts.next()?;
            let plain = digits.len() == width && digits.bytes().all(|byte| byte.is_ascii_digit());
            if plain { digits.parse().ok() } else { None }
        };
        let day = Self {
            year: part(4)?,
            month: part(2)?,
            day: part(2)?,
        };
        let known = (2000..=2099).contains(&day.year)
            && (1..=12).contains(&day.month)
            && (1..=month_days(day.year, day.month)).contains(&day.day);
        (known && parts.next().is_none()).then_some(day)
    }

    /// `2026-11-30`.
    pub(crate) fn text(self) -> String {
        format!("{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }

    /// `20261130`.
    pub(crate) fn compact(self) -> String {
        format!("{:04}{:02}{:02}", self.year, self.month, self.day)
    }

    pub(crate) fn before(self) -> Self {
        match (self.month, self.day) {
            (1, 1) => Self {
                year: self.year - 1,
                month: 12,
                day: 31,
            },
            (month, 1) => Self {
                month: month - 1,
                day: month_days(self.year, month - 1),
                ..self
            },
            (_, day) => Self {
                day: day - 1,
                ..self
            },
        }
    }

    pub(crate) fn after(self) -> Self {
        if self.day < month_days(self.year, self.month) {
            Self {
                day: self.day + 1,
                ..self
            }
        } else if self.month < 12 {
            Self {
                month: self.month + 1,
                day: 1,
                ..self
            }
        } else {
            Self {
                year: self.year + 1,
                month: 1,
                day: 1,
            }
        }
    }

    /// The moment `second` seconds after midnight, as a message writes it.
    pub(crate) fn at(self, second: u64) -> String {
        format!(
            "{}T{:02}:{:02}:{:02}.000Z",
            self.text(),
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }
}

fn month_days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) => 29, // the years 2000 to 2099
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_around_month_ends() {
        let day = |text| Day::parse(text).expect("a day");
        assert_eq!(day("2026-11-30").after().text(), "2026-12-01");
        assert_eq!(day("2026-12-31").after().text(), "2027-01-01");
        assert_eq!(day("2028-03-01").before().text(), "2028-02-29");
        assert_eq!(day("2027-01-01").before().text(), "2026-12-31");
        assert_eq!(day("2026-11-30").at(21_723), "2026-11-30T06:02:03.000Z");
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "2026-11",
            "2026-11-31",
            "2026-13-01",
            "26-11-30",
            "2026-11-30-1",
            "+026-11-30",
            "2026-02-29",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }
}
