//! Running other programs.

use std::process::Command;

use anyhow::{Context as _, bail};

/// A program in the repository's root.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::root()).args(arguments);
    command
}

/// The cargo that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    command(
        &std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()),
        arguments,
    )
}

/// Runs it to its end, in sight.
pub(crate) fn check(mut command: Command) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("start {command:?}"))?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}

/// Runs it to its end and gives what it printed.
pub(crate) fn output(mut command: Command) -> anyhow::Result<String> {
    let output = command
        .output()
        .with_context(|| format!("start {command:?}"))?;
    if !output.status.success() {
        bail!(
            "{command:?}: {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    String::from_utf8(output.stdout).with_context(|| format!("read what {command:?} printed"))
}
