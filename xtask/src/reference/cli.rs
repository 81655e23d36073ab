//! Help of every command, from the binary itself.

use std::collections::VecDeque;
use std::fmt::Write as _;

use super::GENERATED;
use crate::run::{cargo, output};

pub(super) fn text() -> anyhow::Result<String> {
    let mut text = format!(
        "{GENERATED}# Command line

Data goes to stdout, talk to stderr; every answer has `--json`. Exit codes are in [operate.md](../operate.md).
"
    );
    let mut commands = VecDeque::from([Vec::new()]);
    while let Some(command) = commands.pop_front() {
        let help = help(&command)?;
        let name = [&["clearspan".to_owned()], &command[..]].concat().join(" ");
        let _ = write!(text, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
        // Depth first, in the order of the help.
        for subcommand in subcommands(&help).into_iter().rev() {
            commands.push_front([&command[..], &[subcommand]].concat());
        }
    }
    Ok(text)
}

fn help(command: &[String]) -> anyhow::Result<String> {
    let mut arguments = vec!["run", "--quiet", "--package", "clearspan-cli", "--"];
    arguments.extend(command.iter().map(String::as_str));
    arguments.push("--help");
    let mut command = cargo(&arguments);
    // The width of whoever's terminal is no part of the document.
    // Help texts show defaults that follow the environment: it is the same on every machine.
    command
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .env("TMPDIR", "/tmp")
        .env_remove("CLEARSPAN_LAB");
    let help = output(command)?;
    Ok(help
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n"))
}

/// The names under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::subcommands;

    #[test]
    fn subcommands_are_found_with_wrapped_descriptions_between() {
        let help = "About.\n\nCommands:\n  day    Run a day: files in,\n         receipts out\n  query  Ask\n  help   Print\n\nOptions:\n  -h  Print\n";
        assert_eq!(subcommands(help), ["day", "query"]);
        assert_eq!(
            subcommands("Usage: clearspan day <DIR>\n"),
            Vec::<String>::new()
        );
    }
}
