//! Participants and their settlement accounts: invented names, weights, funds, and the file that lists them.

use super::amount::{Currency, decimal};
use super::message::element;
use super::rng::Rng;
use super::text::{BANK_KINDS, BANK_NAMES, BANK_PLACES};

/// One participant of the day.
pub(crate) struct Participant {
    pub(crate) bic: String,
    pub(crate) name: String,
    pub(crate) shard: u32,
    pub(crate) sequence: bool,
    pub(crate) refuse_whole: bool,
    pub(crate) net_by_package: bool,
    pub(crate) accounts: Vec<Account>,
}

/// One settlement account, in minor units.
pub(crate) struct Account {
    pub(crate) currency: &'static Currency,
    pub(crate) opening_minor: i128,
    pub(crate) credit_line_minor: i128,
}

impl Participant {
    /// The first four letters, which no other participant has.
    pub(crate) fn short(&self) -> &str {
        &self.bic[..4]
    }
}

/// `count` participants without accounts. The four first letters of a BIC are a numeral of base 26, so no two are equal.
pub(crate) fn invent(rng: &mut Rng, count: u32, shards: u32) -> Vec<Participant> {
    (0..count)
        .map(|index| {
            // 7 919 has no common factor with 26^4: a permutation of all four-letter words.
            let mut word = (u64::from(index) * 7_919 + 123_457) % 456_976;
            let mut letters = [b'A'; 4];
            for letter in &mut letters {
                *letter += u8::try_from(word % 26).expect("below 26");
                word /= 26;
            }
            let prefix: String = letters.iter().copied().map(char::from).collect();
            let name = format!("{} {} {prefix}", rng.pick(BANK_NAMES), rng.pick(BANK_KINDS));
            Participant {
                bic: format!("{prefix}{}XXX", rng.pick(BANK_PLACES)),
                name,
                shard: index % shards,
                sequence: false,
                refuse_whole: false,
                net_by_package: false,
                accounts: Vec::new(),
            }
        })
        .collect()
}

/// Draws participants by weight: the k-th has weight 1/(k+2), a Zipf law with a flattened head.
pub(crate) struct Weights {
    /// Running sums, one per participant.
    upto: Vec<u64>,
}

impl Weights {
    pub(crate) fn zipf(count: usize) -> Self {
        let mut sum = 0;
        let upto = (0..count)
            .map(|rank| {
                sum += 1_000_000_000 / (u64::try_from(rank).expect("a count fits 64 bits") + 2);
                sum
            })
            .collect();
        Self { upto }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        let total = *self.upto.last().expect("there are participants");
        let drawn = rng.below(total);
        self.upto.partition_point(|&upto| upto <= drawn)
    }

    /// Someone other than `not`; there are at least two.
    pub(crate) fn draw_other(&self, rng: &mut Rng, not: usize) -> usize {
        loop {
            let drawn = self.draw(rng);
            if drawn != not {
                return drawn;
            }
        }
    }
}

/// The text of `participants.toml`.
pub(crate) fn toml(business_date: &str, shards: u32, participants: &[Participant]) -> String {
    let mut out = format!("business_date = \"{business_date}\"\nshards = {shards}\n");
    for participant in participants {
        out.push_str(&format!(
            "\n[[participant]]\nbic = \"{}\"\nname = \"{}\"\nshard = {}\n",
            participant.bic, participant.name, participant.shard
        ));
        if participant.sequence {
            out.push_str("sequence = true\n");
        }
        if participant.refuse_whole {
            out.push_str("refuse_whole = true\n");
        }
        if participant.net_by_package {
            out.push_str("net_unit = \"package\"\n");
        }
        for account in &participant.accounts {
            let exponent = account.currency.exponent;
            out.push_str(&format!(
                "[[participant.account]]\ncurrency = \"{}\"\nopening_balance = \"{}\"\n",
                account.currency.code,
                decimal(account.opening_minor, exponent)
            ));
            if account.credit_line_minor != 0 {
                out.push_str(&format!(
                    "credit_line = \"{}\"\n",
                    decimal(account.credit_line_minor, exponent)
                ));
            }
        }
    }
    out
}

/// The agent element of an assigner or assignee.
pub(crate) fn assigned(out: &mut String, name: &str, bic: &str) {
    out.push_str(&format!("<{name}><Agt><FinInstnId>"));
    element(out, "BICFI", bic);
    out.push_str(&format!("</FinInstnId></Agt></{name}>"));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_participants_share_their_four_letters() {
        let made = invent(&mut Rng::new(1, 1), 5_000, 7);
        let short: BTreeSet<&str> = made.iter().map(Participant::short).collect();
        assert_eq!(short.len(), 5_000);
        assert!(made.iter().all(|participant| participant.bic.len() == 11));
    }

    #[test]
    fn the_first_participant_is_drawn_most() {
        let weights = Weights::zipf(10);
        let mut rng = Rng::new(2, 2);
        let mut drawn = [0_u32; 10];
        for _ in 0..10_000 {
            drawn[weights.draw(&mut rng)] += 1;
        }
        // Weights 1/2 to 1/11.
        assert!(
            drawn[0] > 2 * drawn[3] && drawn[3] > 2 * drawn[9],
            "{drawn:?}"
        );
        assert!((0..100).all(|_| weights.draw_other(&mut rng, 0) != 0));
    }
}
