//! `participants.toml`: who takes part in a business day, checked as a whole before anything is done.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clearspan_ledger::directory::{NAME_MAX_BYTES, NetUnit, PARTICIPANTS_MAX};
use clearspan_ledger::money::{AmountFault, parse_amount};
use clearspan_ledger::{AmountMinor, Bic, BusinessDate, Currency, ShardId};
use serde::Deserialize;

use crate::toml_fault::{explain, line_of};

/// The most shards of a cluster: channels grow with their square.
pub const SHARDS_MAX: u16 = 256;

/// A business day's participants and settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The business date that messages must carry.
    pub business_date: BusinessDate,
    /// How many shards; fixed for good when the data directory is made.
    pub shards: u16,
    /// The clearing house's own code, the sender of all output.
    pub clearing_house: Bic,
    /// For how many business days payments stay known.
    pub retention_days: u16,
    /// The largest amount of one payment, in minor units of any currency.
    pub amount_max: AmountMinor,
    /// Credits of one netting cycle per output document.
    pub page_len_payments: u32,
    /// After how many seconds a hole in a participant's numbering is reported again.
    pub gap_timeout_seconds: u32,
    /// The participants, in the order of the file.
    pub participants: Vec<Participant>,
}

/// One participant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Its code.
    pub bic: Bic,
    /// Its name.
    pub name: String,
    /// Its home shard.
    pub home: ShardId,
    /// Whether its messages are numbered (rule R5).
    pub numbers_messages: bool,
    /// Whether it wants packages whole or not at all (rule R1).
    pub refuse_whole: bool,
    /// What a netting cycle drops when its funds lack.
    pub net_unit: NetUnit,
    /// Its accounts.
    pub accounts: Vec<Account>,
}

/// One settlement account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Currency.
    pub currency: Currency,
    /// Central-bank money put on it when it is opened.
    pub opening_balance: AmountMinor,
    /// How far it may fall below zero.
    pub credit_line: AmountMinor,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It cannot be read.
    #[error("read {path}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, has a key that there is none of or lacks one, or a value makes no sense.
    #[error("{path}: line {line}: {what}")]
    Value {
        /// Which file.
        path: PathBuf,
        /// The line on which the participant (or the value) stands.
        line: usize,
        /// What is wrong and what to do.
        what: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    business_date: toml::Spanned<String>,
    shards: toml::Spanned<u16>,
    #[serde(default = "default_clearing_house")]
    clearing_house: String,
    #[serde(default = "default_retention_days")]
    retention_days: u16,
    amount_max_minor: Option<u64>,
    #[serde(default = "default_page_len")]
    page_len_payments: u32,
    #[serde(default = "default_gap_timeout")]
    gap_timeout_seconds: u32,
    #[serde(default)]
    participant: Vec<toml::Spanned<FileParticipant>>,
}

fn default_clearing_house() -> String {
    "CLSPZZ2AXXX".to_owned()
}

const fn default_retention_days() -> u16 {
    5
}

const fn default_page_len() -> u32 {
    1000
}

const fn default_gap_timeout() -> u32 {
    300
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileParticipant {
    bic: String,
    name: String,
    shard: u16,
    #[serde(default)]
    sequence: bool,
    #[serde(default)]
    refuse_whole: bool,
    #[serde(default)]
    net_unit: FileNetUnit,
    #[serde(default)]
    account: Vec<FileAccount>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileNetUnit {
    #[default]
    Payment,
    Package,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileAccount {
    currency: String,
    opening_balance: String,
    credit_line: Option<String>,
}

/// Log time is 64 bits of nanoseconds since 1970: it ends in 2554, and this is well before.
fn last_date() -> BusinessDate {
    BusinessDate::from_ymd(2500, 1, 1).unwrap_or_default()
}

impl Settings {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`SettingsError`] names the line and says what to do.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path).map_err(|source| SettingsError::Read {
            path: path.to_owned(),
            source,
        })?;
        Self::parse(&text, path)
    }

    /// Checks a file's text; `path` names it in faults.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, SettingsError> {
        let file: File = toml::from_str(text).map_err(|fault| {
            let (line, what) = explain(text, &fault, &[]);
            SettingsError::Value {
                path: path.to_owned(),
                line,
                what,
            }
        })?;
        let refuse = |offset: usize, what: String| SettingsError::Value {
            path: path.to_owned(),
            line: line_of(text, offset),
            what,
        };
        let shards = *file.shards.get_ref();
        if shards == 0 || shards > SHARDS_MAX {
            return Err(refuse(
                file.shards.span().start,
                format!("shards is {shards}; give 1 to {SHARDS_MAX}"),
            ));
        }
        let date = file.business_date.get_ref();
        let business_date = BusinessDate::parse(date.as_bytes()).ok_or_else(|| {
            refuse(
                file.business_date.span().start,
                format!("business_date is {date:?}; give a date such as \"2026-11-30\""),
            )
        })?;
        if business_date >= last_date() {
            return Err(refuse(
                file.business_date.span().start,
                format!(
                    "business_date is {date:?}; log time ends before {}",
                    last_date()
                ),
            ));
        }
        if file.participant.is_empty() {
            return Err(refuse(
                0,
                "there is no participant; add [[participant]]".to_owned(),
            ));
        }
        let clearing_house = Bic::parse(file.clearing_house.as_bytes()).ok_or_else(|| {
            refuse(
                0,
                format!("clearing_house {:?} is not a BIC", file.clearing_house),
            )
        })?;
        if file.retention_days == 0 || file.page_len_payments == 0 {
            return Err(refuse(
                0,
                "retention_days and page_len_payments must be at least 1".to_owned(),
            ));
        }
        if file.participant.len() > PARTICIPANTS_MAX {
            return Err(refuse(
                0,
                format!("more than {PARTICIPANTS_MAX} participants"),
            ));
        }
        let mut seen = BTreeSet::new();
        let mut participants = Vec::new();
        for spanned in file.participant {
            let offset = spanned.span().start;
            let participant = check_participant(spanned.into_inner(), shards)
                .map_err(|what| refuse(offset, what))?;
            if !seen.insert(participant.bic) {
                return Err(refuse(
                    offset,
                    format!("{} stands here a second time", participant.bic),
                ));
            }
            if participant.bic == clearing_house {
                return Err(refuse(
                    offset,
                    format!("{clearing_house} is the clearing house's own code"),
                ));
            }
            participants.push(participant);
        }
        Ok(Self {
            business_date,
            shards,
            clearing_house,
            retention_days: file.retention_days,
            amount_max: file
                .amount_max_minor
                .map_or(Some(AmountMinor::MAX), AmountMinor::new)
                .ok_or_else(|| {
                    refuse(
                        0,
                        format!("amount_max_minor is above {}", AmountMinor::MAX.minor()),
                    )
                })?,
            page_len_payments: file.page_len_payments,
            gap_timeout_seconds: file.gap_timeout_seconds,
            participants,
        })
    }
}

fn check_participant(file: FileParticipant, shards: u16) -> Result<Participant, String> {
    let bic = Bic::parse(file.bic.as_bytes()).ok_or_else(|| {
        format!(
            "{:?} is not a BIC: give 8 or 11 capital letters and digits",
            file.bic
        )
    })?;
    if file.shard >= shards {
        return Err(format!(
            "{bic} has home shard {}, there are shards 0 to {}",
            file.shard,
            shards - 1
        ));
    }
    if file.name.is_empty() || file.name.len() > NAME_MAX_BYTES {
        return Err(format!("{bic} needs a name of 1 to {NAME_MAX_BYTES} bytes"));
    }
    let mut accounts: Vec<Account> = Vec::new();
    for account in file.account {
        let currency = Currency::parse(account.currency.as_bytes())
            .filter(|currency| currency.is_listed())
            .ok_or_else(|| format!("{bic}: {:?} is not an ISO 4217 currency", account.currency))?;
        if accounts.iter().any(|known| known.currency == currency) {
            return Err(format!("{bic} has a second account in {currency}"));
        }
        let amount = |field: &str, text: &str| {
            parse_amount(text.as_bytes(), currency.exponent()).map_err(|fault| {
                let why = match fault {
                    AmountFault::Empty => "is empty".to_owned(),
                    AmountFault::NotANumber => "is not a decimal number".to_owned(),
                    AmountFault::TooManyDecimals => {
                        format!(
                            "has more than the {} decimals of {currency}",
                            currency.exponent()
                        )
                    }
                    AmountFault::TooLarge => "has more than 18 digits".to_owned(),
                };
                format!("{bic}: {field} {text:?} {why}")
            })
        };
        accounts.push(Account {
            currency,
            opening_balance: amount("opening_balance", &account.opening_balance)?,
            credit_line: account
                .credit_line
                .map_or(Ok(AmountMinor::ZERO), |text| amount("credit_line", &text))?,
        });
    }
    if accounts.is_empty() {
        return Err(format!("{bic} has no account; add [[participant.account]]"));
    }
    Ok(Participant {
        bic,
        name: file.name,
        home: ShardId::new(file.shard),
        numbers_messages: file.sequence,
        refuse_whole: file.refuse_whole,
        net_unit: match file.net_unit {
            FileNetUnit::Payment => NetUnit::Payment,
            FileNetUnit::Package => NetUnit::Package,
        },
        accounts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"business_date = "2026-11-30"
shards = 4
[[participant]]
bic = "ALFADEFF"
name = "Alfa Bank"
shard = 3
[[participant.account]]
currency = "KWD"
opening_balance = "10.005"
"#;

    fn parse(text: &str) -> Result<Settings, String> {
        Settings::parse(text, Path::new("p.toml")).map_err(|error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            format!("{error}: {}", cause.unwrap_or_default())
        })
    }

    #[test]
    fn defaults_and_values() {
        let settings = parse(GOOD).unwrap();
        let alfa = &settings.participants[0];
        assert_eq!(alfa.bic.to_string(), "ALFADEFFXXX");
        assert_eq!(alfa.accounts[0].opening_balance.minor(), 10_005);
        assert_eq!(
            (settings.retention_days, alfa.net_unit),
            (5, NetUnit::Payment)
        );
    }

    #[test]
    fn faults_name_the_line() {
        for (from, to, expected) in [
            ("shards = 4", "shards = 0", "line 2: shards is 0"),
            ("2026-11-30", "2026-02-30", "line 1: business_date"),
            (
                "shard = 3",
                "shard = 4",
                "line 3: ALFADEFFXXX has home shard 4",
            ),
            ("\"ALFADEFF\"", "\"alfa\"", "line 3: \"alfa\" is not a BIC"),
            ("10.005", "10.0055", "more than the 3 decimals"),
            ("KWD", "ZZZ", "not an ISO 4217 currency"),
            (
                "name =",
                "nmae =",
                "line 5: unknown key `nmae`; the nearest is `name`",
            ),
        ] {
            let error = parse(&GOOD.replace(from, to)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let twice = format!("{GOOD}{}", GOOD.split_once("shards = 4\n").unwrap().1);
        assert!(
            parse(&twice)
                .unwrap_err()
                .contains("line 10: ALFADEFFXXX stands here a second time")
        );
    }
}
