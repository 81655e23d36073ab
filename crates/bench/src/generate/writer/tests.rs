use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::super::{PackageCount, Version, Wrapping, generate};
use super::*;

/// Every file below `dir` by its path.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)
            .expect("a directory")
            .map(|entry| entry.expect("an entry").path())
        {
            if entry.is_dir() {
                open.push(entry);
            } else {
                let name = entry
                    .strip_prefix(dir)
                    .expect("below it")
                    .to_string_lossy()
                    .into_owned();
                found.insert(name, fs::read(&entry).expect("a file"));
            }
        }
    }
    found
}

fn small(out_dir: &Path) -> Options {
    Options {
        out_dir: out_dir.to_owned(),
        participants: 12,
        packages: vec![PackageCount {
            payments: 40,
            packages: 12,
        }],
        urgent: 30,
        faulty_payments_ppm: 100_000,
        faulty_messages: 20,
        ..Options::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_gives_others() {
    let dir = tempfile::tempdir().expect("a directory");
    let made = |name: &str, seed| {
        let options = Options {
            seed,
            ..small(&dir.path().join(name))
        };
        generate(&options, &mut |_| {}).expect("made");
        files(&options.out_dir)
    };
    let first = made("a", 1);
    assert!(first == made("b", 1));
    assert!(first != made("c", 2));
}

#[test]
fn the_summary_counts_what_is_there_and_every_kind_of_fault_is_expected() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = small(dir.path());
    let mut last = Progress::default();
    let summary = generate(&options, &mut |progress| last = progress).expect("made");
    assert_eq!(last.messages, last.messages_total);
    assert_eq!(last.written_bytes, summary.written_bytes);
    let made = files(dir.path());
    let messages: Vec<_> = made
        .iter()
        .filter(|(name, _)| name.starts_with("inbox"))
        .collect();
    assert_eq!(
        summary.messages,
        u64::try_from(messages.len()).expect("few")
    );
    assert_eq!(
        summary.written_bytes,
        messages
            .iter()
            .map(|(_, bytes)| u64::try_from(bytes.len()).expect("small"))
            .sum::<u64>()
    );
    assert_eq!(summary.urgent, 30);
    // Four faults are repeats, each with a good message of three payments before it.
    assert_eq!(summary.payments, 12 * 40 + 30 + 4 * 3);
    let expected = String::from_utf8(made["expected.jsonl"].clone()).expect("text");
    for fault in PaymentFault::ALL {
        assert!(
            expected.contains(&format!("\"fault\":\"{}\"", fault.name())),
            "{}",
            fault.name()
        );
    }
    for fault in MessageFault::ALL {
        assert!(
            expected.contains(&format!("\"fault\":\"{}\"", fault.name())),
            "{}",
            fault.name()
        );
    }
    assert_eq!(
        expected.matches("\"kind\":\"message\"").count(),
        messages.len()
    );
}

#[test]
fn the_list_of_participants_is_toml_and_funds_cover_the_day() {
    let dir = tempfile::tempdir().expect("a directory");
    generate(&small(dir.path()), &mut |_| {}).expect("made");
    let text = fs::read_to_string(dir.path().join("participants.toml")).expect("written");
    let table: toml::Table = text.parse().expect("TOML");
    assert_eq!(table["business_date"].as_str(), Some("2026-11-30"));
    let listed = table["participant"].as_array().expect("a list");
    assert_eq!(listed.len(), 12);
    assert!(listed.iter().all(|one| {
        one["account"]
            .as_array()
            .is_some_and(|accounts| accounts.len() == 3)
    }));
    let balances = fs::read_to_string(dir.path().join("expected-balances.csv")).expect("written");
    // Nobody ends below zero by more than its credit line, which is a fifth of its funds.
    assert_eq!(balances.lines().count(), 1 + 12 * 3);
}

#[test]
fn the_control_sum_is_the_sum_of_the_amounts_as_written() {
    let dir = tempfile::tempdir().expect("a directory");
    generate(&small(dir.path()), &mut |_| {}).expect("made");
    let mut checked = 0;
    for (name, bytes) in files(dir.path())
        .iter()
        .filter(|(name, _)| name.contains("-package-"))
    {
        let xml = std::str::from_utf8(bytes).expect("UTF-8");
        let inside = |text: &str, tag: &str| {
            let start = text.find(&format!("<{tag}")).expect("there") + tag.len() + 1;
            let start = start + text[start..].find('>').expect("closed") + 1;
            text[start..start + text[start..].find('<').expect("closed")].to_owned()
        };
        let finest = |text: &str| {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            format!("{whole}{fraction:0<5}")
                .parse::<u128>()
                .unwrap_or(0)
        };
        let sum: u128 = xml
            .split("<CdtTrfTxInf>")
            .skip(1)
            .map(|one| finest(&inside(one, "IntrBkSttlmAmt")))
            .sum();
        assert_eq!(finest(&inside(xml, "CtrlSum")), sum, "{name}");
        assert_eq!(
            xml.matches("<CdtTrfTxInf>").count().to_string(),
            inside(xml, "NbOfTxs"),
            "{name}"
        );
        checked += 1;
    }
    assert_eq!(checked, 12);
}

#[test]
fn an_inbox_that_is_there_is_not_mixed_with_another() {
    let dir = tempfile::tempdir().expect("a directory");
    generate(&small(dir.path()), &mut |_| {}).expect("made");
    assert!(matches!(
        generate(&small(dir.path()), &mut |_| {}),
        Err(Error::Occupied { .. })
    ));
}

#[test]
fn options_outside_their_range_are_named() {
    type Change = fn(&mut Options);
    let cases: [(&str, Change); 7] = [
        ("participants", |options| options.participants = 1),
        ("shards", |options| options.shards = 0),
        ("currencies", |options| {
            options.currencies = vec!["XAU".to_owned()]
        }),
        ("currencies", |options| {
            options.currencies = vec!["EUR".to_owned(), "EUR".to_owned()]
        }),
        ("business_date", |options| {
            options.business_date = "30.11.2026".to_owned()
        }),
        ("packages", |options| {
            options.packages = vec![PackageCount {
                payments: 0,
                packages: 1,
            }]
        }),
        ("sections", |options| options.sections = 25),
    ];
    for (name, change) in cases {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = small(dir.path());
        change(&mut options);
        let refused = generate(&options, &mut |_| {});
        assert!(
            matches!(refused, Err(Error::Option { option, .. }) if option == name),
            "{name}: {refused:?}"
        );
        assert!(!dir.path().join("inbox").exists());
    }
}

#[test]
fn every_version_and_wrapping_is_made() {
    for number in 6..=13 {
        let dir = tempfile::tempdir().expect("a directory");
        let mut options = small(dir.path());
        options.version = Version::new(number).expect("known");
        options.wrapping = Wrapping::Message;
        generate(&options, &mut |_| {}).expect("made");
        let made = files(dir.path());
        let package = made
            .iter()
            .find(|(name, _)| name.contains("-package-"))
            .expect("there")
            .1;
        let xml = std::str::from_utf8(package).expect("UTF-8");
        assert!(xml.contains(&format!("<MsgDefIdr>pacs.008.001.{number:02}</MsgDefIdr>")));
        assert!(xml.contains(&format!(":pacs.008.001.{number:02}\"")));
        assert_eq!(
            number >= 8,
            xml.contains("<UETR>"),
            "UETR came with version 08"
        );
    }
    assert_eq!(Version::new(5), None);
    assert_eq!(Version::new(14), None);
}

#[test]
fn a_number_of_packages_is_read() {
    let read = |text: &str| text.parse::<PackageCount>().ok();
    assert_eq!(
        read("8x500"),
        Some(PackageCount {
            payments: 500,
            packages: 8
        })
    );
    for text in ["", "8", "8x", "x500", "8x500x", "-1x5", "8 x 500"] {
        assert_eq!(read(text), None, "{text}");
    }
}

/// The text inside the first `tag` after the start of `xml`.
fn inside<'a>(xml: &'a str, tag: &str) -> &'a str {
    let start = xml.find(&format!("<{tag}")).expect("there") + tag.len() + 1;
    let start = start + xml[start..].find('>').expect("closed") + 1;
    &xml[start..start + xml[start..].find('<').expect("closed")]
}

/// An account as the replay of a day sees it, in minor units.
struct Replayed {
    bic: String,
    code: String,
    opening: i128,
    credit_line: i128,
    settled: i128,
    open_cycle: i128,
}

impl Replayed {
    fn is_covered(&self) -> bool {
        self.opening + self.credit_line + self.settled >= 0
    }

    fn net(&mut self) -> bool {
        self.settled += std::mem::take(&mut self.open_cycle);
        self.is_covered()
    }
}

/// The accounts that `participants.toml` lists, in its order.
fn listed_accounts(text: &str) -> Vec<Replayed> {
    let table: toml::Table = text.parse().expect("TOML");
    let list = |value: &toml::Value| value.as_array().expect("a list").clone();
    let mut accounts = Vec::new();
    for one in list(&table["participant"]) {
        for account in list(&one["account"]) {
            let text = |value: &toml::Value| value.as_str().expect("text").to_owned();
            accounts.push(Replayed {
                bic: text(&one["bic"]),
                code: text(&account["currency"]),
                opening: minor(&text(&account["opening_balance"])),
                credit_line: account
                    .get("credit_line")
                    .map_or(0, |line| minor(&text(line))),
                settled: 0,
                open_cycle: 0,
            });
        }
    }
    accounts
}

fn minor(text: &str) -> i128 {
    text.replace('.', "").parse().expect("a number")
}

/// File and number of each payment that is expected to be refused.
fn refused_payments(manifest: &str) -> BTreeSet<(String, usize)> {
    let payments = manifest
        .lines()
        .filter(|line| line.contains("\"kind\":\"payment\""));
    payments
        .map(|line| {
            let value = |key: &str| {
                line.split(&format!("\"{key}\":"))
                    .nth(1)
                    .expect("the key is there")
            };
            let number = value("number").split(',').next().expect("a value");
            (
                value("file").split('"').nth(1).expect("quoted").to_owned(),
                number.parse().expect("a number"),
            )
        })
        .collect()
}

/// Reads the day back from its files and settles it in the plainest way: urgent payments one by one, the others at the
/// end of their section. Returns whether everybody could always pay, and the closing balances.
fn settle_all(dir: &Path) -> (bool, String) {
    let made = files(dir);
    let text = |name: &str| std::str::from_utf8(&made[name]).expect("UTF-8");
    let refused = refused_payments(text("expected.jsonl"));
    let mut accounts = listed_accounts(text("participants.toml"));
    let mut all_could_pay = true;
    let mut section = "";
    for name in made
        .keys()
        .filter(|name| name.starts_with("inbox/") && !name.contains("-z-faulty-"))
    {
        let directory = name.rsplit_once('/').expect("in a section").0;
        if section != directory {
            accounts
                .iter_mut()
                .for_each(|account| all_could_pay &= account.net());
            section = directory;
        }
        let urgent = name.contains("-urgent-");
        let mut parts = text(name).split("<CdtTrfTxInf>");
        let group = parts.next().expect("a group header");
        let sender = inside(&group[group.find("<InstgAgt>").expect("there")..], "BICFI");
        for (_, payment) in parts
            .enumerate()
            .filter(|(index, _)| !refused.contains(&(name.clone(), index + 1)))
        {
            let amount = minor(inside(payment, "IntrBkSttlmAmt "));
            let code = payment
                .split("Ccy=\"")
                .nth(1)
                .map(|rest| &rest[..3])
                .expect("a currency");
            let receiver = inside(
                &payment[payment.find("<InstdAgt>").expect("there")..],
                "BICFI",
            );
            for (bic, moved) in [(sender, -amount), (receiver, amount)] {
                let named = |account: &&mut Replayed| account.bic == bic && account.code == code;
                let account = accounts.iter_mut().find(named).expect("an account");
                if urgent {
                    account.settled += moved;
                    all_could_pay &= moved > 0 || account.is_covered();
                } else {
                    account.open_cycle += moved;
                }
            }
        }
    }
    accounts
        .iter_mut()
        .for_each(|account| all_could_pay &= account.net());
    let mut csv = "bic,currency,opening,closing\n".to_owned();
    for account in accounts {
        let exponent = Currency::by_code(&account.code).expect("known").exponent;
        let [opening, closing] = [account.opening, account.opening + account.settled]
            .map(|minor| decimal(minor, exponent));
        csv.push_str(&format!(
            "{},{},{opening},{closing}\n",
            account.bic, account.code
        ));
    }
    (all_could_pay, csv)
}

#[test]
fn full_coverage_settles_everything_and_the_closing_balances_are_as_promised() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        coverage_percent: 100,
        ..small(dir.path())
    };
    generate(&options, &mut |_| {}).expect("made");
    let (all_could_pay, closing) = settle_all(dir.path());
    assert!(all_could_pay);
    let promised = fs::read_to_string(dir.path().join("expected-balances.csv")).expect("written");
    assert_eq!(closing, promised);
}

#[test]
fn a_shortfall_leaves_payments_that_cannot_settle() {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options {
        coverage_percent: 100,
        shortfall_percent: 50,
        ..small(dir.path())
    };
    generate(&options, &mut |_| {}).expect("made");
    let (all_could_pay, _) = settle_all(dir.path());
    assert!(!all_could_pay);
    assert!(
        !dir.path().join("expected-balances.csv").exists(),
        "nobody can know them beforehand"
    );
}
