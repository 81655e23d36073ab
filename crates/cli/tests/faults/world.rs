//! Who takes part: four kinds of bank in each shard, each kind with a use of its own to the checks.

use std::fmt::Write as _;

use serde::Serialize;

pub(crate) const SHARDS: u16 = 4;
pub(crate) const DATE: &str = "2026-11-30";
/// Of every account, in minor units: no payment of a run ever waits for funds.
pub(crate) const OPENING_MINOR: i128 = 100_000_000_000;
/// Currencies with the decimals of their minor units.
pub(crate) const CURRENCIES: [(&str, usize); 2] = [("EUR", 2), ("JPY", 0)];

/// What a bank is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) enum Role {
    /// Pays urgently to its partner, and to nobody else; nobody pays it. Its balance says how many payments were made.
    Teller,
    /// Is paid by its shard's teller alone: the two together always have the same.
    Partner,
    /// Sends packages for netting, cancels some of it.
    Netter,
    /// Pays urgently to banks of other shards.
    Crosser,
}

const ROLES: [(Role, &str); 4] = [
    (Role::Teller, "TELL"),
    (Role::Partner, "PART"),
    (Role::Netter, "NETT"),
    (Role::Crosser, "CROS"),
];

/// A participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Bank {
    pub(crate) role: Role,
    /// Its home shard.
    pub(crate) home: u16,
}

impl Bank {
    pub(crate) const fn new(role: Role, home: u16) -> Self {
        Self { role, home }
    }

    /// All of them, always in the same order.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        ROLES
            .into_iter()
            .flat_map(|(role, _)| (0..SHARDS).map(move |home| Self { role, home }))
    }

    pub(crate) fn bic(self) -> String {
        let stem = ROLES
            .iter()
            .find(|(role, _)| *role == self.role)
            .map_or("", |(_, stem)| stem);
        let letter = char::from(b'A' + u8::try_from(self.home).expect("few shards"));
        format!("{stem}DE{letter}{letter}XXX")
    }

    pub(crate) fn find(bic: &str) -> Option<Self> {
        Self::all().find(|bank| bank.bic() == bic)
    }
}

/// An amount as messages give it.
pub(crate) fn decimal(currency: &str, minor: u64) -> String {
    match CURRENCIES.iter().find(|(code, _)| *code == currency) {
        Some((_, 2)) => format!("{}.{:02}", minor / 100, minor % 100),
        _ => minor.to_string(),
    }
}

/// `participants.toml`.
pub(crate) fn settings() -> String {
    let mut toml = format!("business_date = \"{DATE}\"\nshards = {SHARDS}\n");
    for bank in Bank::all() {
        let (bic, home) = (bank.bic(), bank.home);
        let _ = write!(
            toml,
            "\n[[participant]]\nbic = \"{bic}\"\nname = \"{bic}\"\nshard = {home}\n"
        );
        for (currency, _) in CURRENCIES {
            let opening = decimal(
                currency,
                u64::try_from(OPENING_MINOR).expect("it is positive"),
            );
            let _ = write!(
                toml,
                "[[participant.account]]\ncurrency = \"{currency}\"\nopening_balance = \"{opening}\"\n"
            );
        }
    }
    toml
}
