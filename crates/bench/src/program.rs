//! What the programs that print figures have in common: their words, and figures shown as they come.

use std::error::Error;
use std::process::ExitCode;
use std::str::FromStr;

use crate::measure::Figure;

/// The words that a program was started with.
#[derive(Debug)]
pub struct Words {
    flags: Vec<String>,
    /// Options with their values, in order.
    pub values: Vec<(String, String)>,
    /// What is neither: names of parts.
    pub names: Vec<String>,
}

impl Words {
    /// Sorts words; `flags` are those that take no value.
    ///
    /// # Errors
    /// In words for people, when an option lacks its value.
    pub fn read(mut words: impl Iterator<Item = String>, flags: &[&str]) -> Result<Self, String> {
        let mut read = Self {
            flags: Vec::new(),
            values: Vec::new(),
            names: Vec::new(),
        };
        while let Some(word) = words.next() {
            if flags.contains(&word.as_str()) {
                read.flags.push(word);
            } else if word == "--bench" {
                // Cargo says this to every bench.
            } else if word.starts_with("--") {
                let value = words
                    .next()
                    .ok_or_else(|| format!("{word} needs a value"))?;
                read.values.push((word, value));
            } else {
                read.names.push(word);
            }
        }
        Ok(read)
    }

    /// Whether a flag was given.
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// The parts that were named, all of them when none was.
    ///
    /// # Errors
    /// In words for people, when there is no such part.
    pub fn parts<P: Copy>(
        &self,
        all: &[P],
        from_name: impl Fn(&str) -> Option<P>,
    ) -> Result<Vec<P>, String> {
        if self.names.is_empty() {
            return Ok(all.to_vec());
        }
        let named = self.names.iter();
        named
            .map(|name| from_name(name).ok_or_else(|| format!("no part {name:?}")))
            .collect()
    }
}

/// A count: a whole number of at least 1.
///
/// # Errors
/// In words for people, when it is none.
pub fn number<T: FromStr + PartialOrd + From<u8>>(name: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .ok()
        .filter(|number: &T| *number >= T::from(1))
        .ok_or_else(|| format!("{name} needs a whole number of at least 1"))
}

/// Measures part after part and prints each figure as it comes; the first error, with its causes, ends it.
pub fn show<P: Copy, E: Error>(
    parts: Vec<P>,
    json: bool,
    name: impl Fn(P) -> &'static str,
    measure: impl Fn(P, &mut dyn FnMut(Figure)) -> Result<(), E>,
) -> ExitCode {
    for part in parts {
        let shown = measure(part, &mut |figure| {
            if json {
                println!("{}", figure.to_json());
            } else {
                println!("{figure}");
            }
        });
        if let Err(error) = shown {
            eprintln!("{}: {error}", name(part));
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
