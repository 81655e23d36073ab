//! What `--help` says is for people who use the program: nothing of how it is built, and no lines broken by hand.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use crate::support::clearspan;

/// Every command's words and its help.
fn helps() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut commands = VecDeque::from([Vec::new()]);
    while let Some(command) = commands.pop_front() {
        let mut arguments: Vec<String> = command.clone();
        arguments.push("--help".to_owned());
        let help = clearspan(&arguments).good();
        let names = help
            .lines()
            .skip_while(|line| *line != "Commands:")
            .skip(1)
            .take_while(|line| !line.is_empty())
            .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
            .filter_map(|line| line.split_whitespace().next())
            .filter(|name| *name != "help");
        for name in names {
            let mut below = command.clone();
            below.push(name.to_owned());
            commands.push_back(below);
        }
        found.push((command.join(" "), help));
    }
    found
}

/// What the packages of the workspace say of themselves to those who build them.
fn descriptions() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = fs::read_dir(crates).expect("the workspace's crates");
    let manifests = entries.map(|entry| entry.expect("a crate").path().join("Cargo.toml"));
    manifests
        .filter_map(|path| fs::read_to_string(path).ok())
        .filter_map(|text| {
            let line = text.lines().find(|line| line.starts_with("description"))?;
            Some(line.split('"').nth(1)?.trim_end_matches('.').to_owned())
        })
        .collect()
}

#[test]
fn help_speaks_to_users_and_not_of_the_code() {
    let descriptions = descriptions();
    assert!(descriptions.len() > 5, "{descriptions:?}");
    let helps = helps();
    assert!(helps.len() > 30, "{}", helps.len());
    for (command, help) in helps {
        for description in &descriptions {
            assert!(
                !help.contains(description),
                "{command}: {description}\n{help}"
            );
        }
        for word in [
            " crate", "[`", "::", "xtask", "ADR ", "TODO", "struct ", ".rs\n",
        ] {
            assert!(!help.contains(word), "{command}: {word:?}\n{help}");
        }
        let about = help.lines().next().unwrap_or_default();
        assert!(
            about.len() > 10 && about.starts_with(char::is_uppercase),
            "{command}: {about:?}"
        );
        check_arguments(&command, &help);
        check_lines(&command, &help);
    }
}

/// Every argument and option says what it is for, on its line or the next one.
fn check_arguments(command: &str, help: &str) {
    let (before, after) = help.split_once("\nOptions:\n").expect("options");
    // What follows the options stands at the margin.
    let options = after
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    let lines: Vec<&str> = before.lines().chain(options).collect();
    for (at, line) in lines.iter().enumerate() {
        let name = line.trim_start();
        let indent = line.len() - name.len();
        let is_one = (name.starts_with("--") || name.starts_with("-h") || name.starts_with('<'))
            && (2..=6).contains(&indent);
        if is_one {
            let beside = name.contains("  ");
            let below = lines.get(at + 1).is_some_and(|next| {
                next.len() - next.trim_start().len() > indent && !next.trim().is_empty()
            });
            assert!(beside || below, "{command}: {name} says nothing\n{help}");
        }
    }
}

/// Lines are as long as they can be: one that was broken by hand stands ragged on a narrower terminal.
fn check_lines(command: &str, help: &str) {
    let after = help.lines().skip_while(|line| *line != "Options:");
    let lines: Vec<&str> = after.collect();
    for pair in lines.windows(2) {
        let [line, next] = pair else { continue };
        let text = |line: &str| !line.is_empty() && !line.starts_with(' ');
        if text(line) && text(next) {
            let word = next.split(' ').next().unwrap_or_default();
            let whole = line.chars().count() + 1 + word.chars().count();
            assert!(whole > 100, "{command}: broken by hand after {line:?}");
        }
    }
}
