//! Tables for people, JSON for programs.

use std::io::Write;

use serde::Serialize;

/// Prints a value as one JSON document.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// A table whose columns are as wide as they need to be; `<` or `>` per column says where its cells go.
pub(crate) struct Table {
    alignment: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(alignment: &str, head: &[&str]) -> Self {
        Self::of(alignment.to_owned(), head)
    }

    /// One whose columns are counted while the program runs.
    pub(crate) fn of(alignment: String, head: &[&str]) -> Self {
        Self {
            alignment,
            rows: vec![head.iter().map(|&cell| cell.to_owned()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let widths: Vec<usize> = (0..self.alignment.len())
            .map(|at| {
                self.rows
                    .iter()
                    .filter_map(|row| row.get(at))
                    .map(|cell| cell.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::from(" ");
            for ((cell, width), side) in row.iter().zip(&widths).zip(self.alignment.chars()) {
                let fill = " ".repeat(width - cell.chars().count());
                line.push(' ');
                if side == '>' {
                    line.push_str(&fill);
                    line.push_str(cell);
                } else {
                    line.push_str(cell);
                    line.push_str(&fill);
                }
                line.push(' ');
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// Digits in groups of three: `1 234 567`.
pub(crate) fn count(number: u64) -> String {
    group(&number.to_string())
}

/// Bytes with three digits or so: `12.3 MB`.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut value = number as f64;
    let mut unit = "B";
    for next in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let decimals = if value < 100.0 { 1 } else { 0 };
    format!("{value:.decimals$} {unit}")
}

/// `1 cycle`, `2 cycles`.
pub(crate) fn some(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number as u64))
}

/// A decimal number with its whole part in groups of three.
pub(crate) fn group(text: &str) -> String {
    let (sign, rest) = text
        .strip_prefix('-')
        .map_or(("", text), |rest| ("-", rest));
    let (whole, decimals) = rest
        .split_once('.')
        .map_or((rest, None), |(whole, decimals)| (whole, Some(decimals)));
    let mut grouped = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if let Some(decimals) = decimals {
        grouped.push('.');
        grouped.push_str(decimals);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::{bytes, group};

    #[test]
    fn bytes_with_their_unit() {
        for (number, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (12_345_678, "12.3 MB"),
            (456_000_000_000, "456 GB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn groups_of_three() {
        for (plain, grouped) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1 000"),
            ("-1234567.891", "-1 234 567.891"),
            ("12345", "12 345"),
        ] {
            assert_eq!(group(plain), grouped);
        }
    }
}
