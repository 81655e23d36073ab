//! One measured figure with all its repeats.

use std::fmt;

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The part it belongs to.
    pub part: &'static str,
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// One value for each repeat, in the order in which they were taken.
    pub values: Vec<f64>,
    /// What it should be, where something is aimed at.
    pub aim: Option<Aim>,
}

impl Figure {
    pub(crate) fn new(
        part: &'static str,
        name: impl Into<String>,
        unit: &'static str,
        values: Vec<f64>,
    ) -> Self {
        Self {
            part,
            name: name.into(),
            unit,
            values,
            aim: None,
        }
    }

    pub(crate) fn aiming(self, aim: Aim) -> Self {
        Self {
            aim: Some(aim),
            ..self
        }
    }

    /// The middle one of the repeats: the figure to quote.
    #[must_use]
    pub fn median(&self) -> f64 {
        quantile(&self.values, 0.5)
    }

    /// Whether the median is what it should be; `None` where nothing is aimed at.
    #[must_use]
    pub fn met(&self) -> Option<bool> {
        self.aim.map(|aim| match aim {
            Aim::AtMost(most) => self.median() <= most,
            Aim::AtLeast(least) => self.median() >= least,
        })
    }

    /// The figure as a JSON object on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let aim = self.aim.map(|aim| match aim {
            Aim::AtMost(most) => serde_json::json!({ "at_most": most }),
            Aim::AtLeast(least) => serde_json::json!({ "at_least": least }),
        });
        serde_json::json!({
            "part": self.part,
            "name": self.name,
            "unit": self.unit,
            "median": self.median(),
            "values": self.values,
            "aim": aim,
            "met": self.met(),
        })
        .to_string()
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<10} {:<66} {:>12} {}",
            self.part,
            self.name,
            rounded(self.median()),
            self.unit
        )?;
        if self.values.len() > 1 {
            let low = quantile(&self.values, 0.0);
            let high = quantile(&self.values, 1.0);
            write!(f, " ({}..{})", rounded(low), rounded(high))?;
        }
        match self.aim {
            Some(Aim::AtMost(most)) => write!(f, ", aim <= {}", rounded(most))?,
            Some(Aim::AtLeast(least)) => write!(f, ", aim >= {}", rounded(least))?,
            None => {}
        }
        match self.met() {
            Some(true) => f.write_str(": met"),
            Some(false) => f.write_str(": MISSED"),
            None => Ok(()),
        }
    }
}

/// Four significant digits for people.
fn rounded(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude >= 1000.0 {
        format!("{value:.0}")
    } else if magnitude >= 100.0 {
        format!("{value:.1}")
    } else if magnitude >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.3}")
    }
}

/// The value below which this share of the values lies; 0 of none.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is one of its indices"
    )]
    let at = (share.clamp(0.0, 1.0) * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Aim, Figure, quantile};

    #[test]
    fn medians_and_aims() {
        let figure = Figure::new("part", "name", "ns", vec![3.0, 1.0, 200.0]);
        assert_eq!(figure.median(), 3.0);
        assert_eq!(figure.met(), None);
        assert_eq!(figure.clone().aiming(Aim::AtMost(2.0)).met(), Some(false));
        assert_eq!(figure.aiming(Aim::AtLeast(2.0)).met(), Some(true));
        assert_eq!(quantile(&[], 0.5), 0.0);
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.99), 5.0);
    }

    #[test]
    fn one_line_of_json() {
        let json = Figure::new("part", "na\"me", "ns", vec![1.5])
            .aiming(Aim::AtMost(2.0))
            .to_json();
        let back: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(back["name"], "na\"me");
        assert_eq!(back["median"], 1.5);
        assert_eq!(back["met"], true);
        assert!(!json.contains('\n'));
    }
}
