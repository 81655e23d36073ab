//! The long form of the tests that do harm to clusters of real processes (`docs/reliability.md`).

use anyhow::bail;

use crate::run::{cargo, check};

/// Each option, and the variable by which the test learns it.
const OPTIONS: [(&str, &str); 3] = [
    ("--minutes", "CLEARSPAN_FAULTS_MINUTES"),
    ("--seed", "CLEARSPAN_FAULTS_SEED"),
    ("--scenario", "CLEARSPAN_FAULTS_SCENARIO"),
];

pub(crate) fn run(options: &[&str]) -> anyhow::Result<()> {
    let mut command = cargo(&[
        "test",
        "-p",
        "clearspan-cli",
        "--test",
        "faults",
        "long",
        "--",
        "--ignored",
        "--nocapture",
    ]);
    let (pairs, rest) = options.as_chunks::<2>();
    for [name, value] in pairs {
        match OPTIONS.iter().find(|(option, _)| option == name) {
            Some((_, variable)) => command.env(variable, value),
            None => bail!("there is no option {name}: give --minutes N, --seed S, --scenario NAME"),
        };
    }
    if let [option] = rest {
        bail!("{option} has no value: give --minutes N, --seed S, --scenario NAME");
    }
    check(command)
}
