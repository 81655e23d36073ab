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

/// Prints one line.
pub(crate) fn line(text: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{text}")?;
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
        let widths = self.widths();
        let all: Vec<usize> = (0..widths.len()).collect();
        for (_, line) in self.block(&widths, &all) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// Its lines, none longer than `columns`, each with the place of its row, the head's being 0. Columns that do not fit
    /// beside each other follow in a block of their own, which begins with the first column again; a column that does not
    /// even fit beside the first one is cut off.
    pub(crate) fn lines_within(&self, columns: usize) -> Vec<(usize, String)> {
        let mut widths = self.widths();
        let first = widths.first().copied().unwrap_or(0).min(columns / 2);
        // Two spaces before the first column, two between columns.
        let room = columns.saturating_sub(2 + first);
        for (at, width) in widths.iter_mut().enumerate() {
            *width = if at == 0 {
                first
            } else {
                (*width).min(room.saturating_sub(2))
            };
        }
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut used = usize::MAX;
        for (at, width) in widths.iter().enumerate().skip(1) {
            used = used.saturating_add(2 + width);
            match blocks.last_mut() {
                Some(block) if used <= room => block.push(at),
                _ => {
                    blocks.push(vec![0, at]);
                    used = 2 + width;
                }
            }
        }
        blocks
            .iter()
            .flat_map(|block| self.block(&widths, block))
            .collect()
    }

    fn widths(&self) -> Vec<usize> {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        (0..self.alignment.len()).map(width).collect()
    }

    /// Some of its columns, in lines.
    fn block(&self, widths: &[usize], columns: &[usize]) -> Vec<(usize, String)> {
        let sides: Vec<char> = self.alignment.chars().collect();
        let line = |row: &Vec<String>| {
            let mut line = String::from(" ");
            for &at in columns {
                let (Some(cell), Some(&width), Some(&side)) =
                    (row.get(at), widths.get(at), sides.get(at))
                else {
                    continue;
                };
                let cell = &shorten(cell, width);
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
            line.trim_end().to_owned()
        };
        self.rows.iter().map(line).enumerate().collect()
    }
}

/// A text of at most so many characters: its end gives way to `…`.
fn shorten(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(columns.saturating_sub(1)).collect();
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// A text in lines of at most so many characters, broken at spaces; all but the first begin with `indent` spaces. A word that
/// is longer is shortened.
pub(crate) fn wrap(text: &str, columns: usize, indent: usize) -> String {
    let mut wrapped = String::new();
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let bare = word.trim_end();
        let word_columns = bare.chars().count();
        if used + word_columns > columns && used > indent {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            used = indent;
        }
        if used + word_columns > columns {
            wrapped.push_str(&shorten(bare, columns.saturating_sub(used)));
            used = columns;
        } else {
            wrapped.push_str(word);
            used += word.chars().count();
        }
    }
    wrapped
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
