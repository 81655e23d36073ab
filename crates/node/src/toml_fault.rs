//! What is wrong with a TOML file, in one line for people: where, which key, and which one was probably meant.

use crate::cluster::keys::Key;

/// The line of a byte offset.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset)
        .map_or(1, |before| before.matches('\n').count() + 1)
}

/// The line of a fault and what it is. `keys` are all of the file, as far as they are in a table.
pub(crate) fn explain(text: &str, fault: &toml::de::Error, keys: &[Key]) -> (usize, String) {
    let line = line_of(text, fault.span().map_or(0, |span| span.start));
    let message = fault.message();
    let what = if let Some(rest) = message.strip_prefix("unknown field ") {
        unknown(rest, keys)
    } else if let Some(name) = message.strip_prefix("missing field ") {
        format!("missing key {name}")
    } else {
        message.replace('\n', ", ")
    };
    (line, what)
}

/// `rest` names the key, then those that there are, each in backticks.
fn unknown(rest: &str, keys: &[Key]) -> String {
    let mut names = rest.split('`').skip(1).step_by(2);
    let name = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let elsewhere = keys
        .iter()
        .find(|key| key.name == name)
        .map(|key| match key.table {
            "" => "; it stands at the top of the file, before all tables".to_owned(),
            table => format!("; it stands in {table}"),
        });
    if let Some(elsewhere) = elsewhere {
        return format!("unknown key `{name}` here{elsewhere}");
    }
    let nearest = known
        .iter()
        .map(|known| (distance(name, known), *known))
        .min()
        // Of which half is other letters, it was not meant.
        .filter(|(changes, known)| *changes * 2 <= name.len().max(known.len()));
    match nearest {
        Some((_, nearest)) => format!("unknown key `{name}`; the nearest is `{nearest}`"),
        None if known.is_empty() => format!("unknown key `{name}`; there is none here"),
        None => format!("unknown key `{name}`; there are {}", known.join(", ")),
    }
}

/// How many letters must be put in, left out, changed or swapped with the next one to make one name of another.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.as_bytes(), to.as_bytes());
    // Row by row: so much for the first `at` letters of one and the first so many of the other.
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    let cell = |rows: &[Vec<usize>], row: Option<usize>, at: Option<usize>| -> usize {
        let row = row.and_then(|row| rows.get(row));
        let found = row.zip(at).and_then(|(row, at)| row.get(at));
        found.copied().unwrap_or(usize::MAX - 1)
    };
    for (at, byte) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (other_at, other) in to.iter().enumerate() {
            let left = row.last().copied().unwrap_or(usize::MAX - 1) + 1;
            let above = cell(&rows, Some(at), Some(other_at + 1)) + 1;
            let changed = cell(&rows, Some(at), Some(other_at)) + usize::from(byte != other);
            let mut least = left.min(above).min(changed);
            let before = |text: &[u8], at: usize| text.get(at.wrapping_sub(1)).copied();
            if before(from, at) == Some(*other) && before(to, other_at) == Some(*byte) {
                least = least.min(cell(&rows, at.checked_sub(1), other_at.checked_sub(1)) + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    cell(&rows, Some(from.len()), Some(to.len()))
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances() {
        for (from, to, expected) in [
            ("log", "log", 0),
            ("lgo", "log", 1),
            ("lag", "log", 1),
            ("", "log", 3),
            ("log", "", 3),
            ("kidn", "id", 2),
            ("kidn", "kind", 1),
            ("election", "election_ms", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }
}
