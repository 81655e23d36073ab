//! I1: money is conserved.

use std::collections::BTreeMap;

use crate::ending::Ending;
use crate::record::{Account, History, Told};
use crate::world::{Bank, CURRENCIES, OPENING_MINOR, Role, SHARDS};

/// At every read of all accounts a teller and its partner have what they began with; in the end everybody together has, on
/// every node and in every currency.
pub(super) fn is_conserved(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    for op in &history.ops {
        if let Told::Accounts(accounts) = &op.told {
            for home in 0..SHARDS {
                let found = closed_pair(accounts, home);
                if found.is_some_and(|sum| sum != 2 * OPENING_MINOR) {
                    faults.push(format!(
                        "I1: teller and partner of shard {home} have {found:?} together in {op:?}"
                    ));
                }
            }
        }
    }
    let expected = OPENING_MINOR * i128::try_from(Bank::all().count()).expect("few");
    for view in &ending.views {
        let mut sums: BTreeMap<&str, i128> = BTreeMap::new();
        for account in &view.accounts {
            *sums.entry(account.currency.as_str()).or_default() += account.minor;
        }
        for (currency, _) in CURRENCIES {
            let sum = sums.get(currency).copied().unwrap_or(0);
            if sum != expected {
                faults.push(format!(
                    "I1: {} holds {sum} {currency}, {expected} were put in",
                    view.node
                ));
            }
        }
    }
    faults
}

/// What a teller and its partner have together, where both were read.
fn closed_pair(accounts: &[Account], home: u16) -> Option<i128> {
    let of = |role| {
        let bank = Bank::new(role, home);
        accounts
            .iter()
            .find(|account| account.bank == bank && account.currency == "EUR")
            .map(|account| account.minor)
    };
    Some(of(Role::Teller)? + of(Role::Partner)?)
}

#[test]
fn a_broken_sum_is_found() {
    use super::sample::healthy;
    let (history, mut ending) = healthy();
    ending.views[1].accounts[0].minor += 1;
    assert_eq!(is_conserved(&history, &ending).len(), 1);

    let (mut history, ending) = healthy();
    for op in &mut history.ops {
        if let Told::Accounts(accounts) = &mut op.told
            && accounts.len() > 2
        {
            accounts[0].minor -= 1;
        }
    }
    assert_eq!(is_conserved(&history, &ending).len(), 1);
}
