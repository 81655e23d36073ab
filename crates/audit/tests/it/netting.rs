//! A naive netting that makes certificates for the tests, in the rounds a cluster would run.

use clearspan_audit::{
    Account, CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate, CycleVerdict, Digest, Dropped,
    Finding, InputLine, LogPosition, Minor, NetsBy, Outcome, Participant, Round, Tally, Totals,
    verify_cycle, write_certificate,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(crate) const DATE: &str = "2026-03-02";

#[derive(Clone, Debug)]
pub(crate) struct Bank {
    pub(crate) name: &'static str,
    pub(crate) shard: u32,
    pub(crate) nets_by: NetsBy,
    pub(crate) balance: i128,
    pub(crate) credit_line: i128,
}

#[derive(Clone, Debug)]
pub(crate) struct Payment {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) amount: u64,
    pub(crate) unit: u64,
}

/// Banks with balances in one currency, and their payments: those of one sender in its queue order.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) banks: Vec<Bank>,
    pub(crate) payments: Vec<Payment>,
    /// What urgent payments do to the funds of a bank just before a round.
    pub(crate) urgent: Vec<(usize, usize, i128)>,
}

pub(crate) const NAMES: [&str; 6] = ["BANKA", "BANKB", "BANKC", "BANKD", "BANKE", "BANKF"];

/// Banks A, B, C… with these balances; payments as (from, to, amount).
pub(crate) fn case(balances: &[i128], payments: &[(usize, usize, u64)]) -> Case {
    let banks = balances
        .iter()
        .zip(NAMES)
        .zip(0_u32..)
        .map(|((&balance, name), at)| Bank {
            name,
            shard: at % 2,
            nets_by: NetsBy::Payment,
            balance,
            credit_line: 0,
        });
    let payments = payments
        .iter()
        .zip(1..)
        .map(|(&(from, to, amount), unit)| Payment {
            from,
            to,
            amount,
            unit,
        });
    Case {
        banks: banks.collect(),
        payments: payments.collect(),
        urgent: Vec::new(),
    }
}

/// A certificate and its lines, free to be tampered with before they are written.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) certificate: Certificate,
    pub(crate) lines: Vec<InputLine<'static>>,
}

impl Made {
    pub(crate) fn write(&self, dir: &Path) -> Certificate {
        if dir.exists() {
            fs::remove_dir_all(dir).expect("remove the last attempt");
        }
        write_certificate(dir, &self.certificate, self.lines.iter().cloned()).expect("write")
    }

    pub(crate) fn verify(&self) -> Result<CycleVerdict, Vec<Finding>> {
        let root = tempfile::tempdir().expect("a directory");
        let dir = root.path().join("cycle-0001");
        self.write(&dir);
        verify_cycle(&dir, None)
    }

    pub(crate) fn account(&mut self, name: &str) -> &mut Account {
        let participant = self
            .certificate
            .participants
            .get_mut(name)
            .expect("a participant");
        participant.accounts.get_mut("EUR").expect("an account")
    }

    /// What a forger does who knows the format: all sums and counts follow from the lines again.
    pub(crate) fn sum_again(&mut self) {
        let mut totals = Totals::default();
        let names: Vec<String> = self.certificate.participants.keys().cloned().collect();
        for name in names {
            let mut fresh = Account::default();
            for line in &self.lines {
                let settled = line.outcome == Outcome::Settled;
                if line.sender == name {
                    add(&mut fresh.set, line.amount_minor);
                    add(
                        if settled {
                            &mut fresh.settled
                        } else {
                            &mut fresh.dropped
                        },
                        line.amount_minor,
                    );
                }
                if line.receiver == name && settled {
                    fresh.received_count += 1;
                    fresh.in_minor =
                        Minor::from(fresh.in_minor.get() + i128::from(line.amount_minor));
                }
            }
            for (total, tally) in [
                (&mut totals.set, fresh.set),
                (&mut totals.settled, fresh.settled),
                (&mut totals.dropped, fresh.dropped),
            ] {
                total.count += tally.count;
                total.sum_minor = Minor::from(total.sum_minor.get() + tally.sum_minor.get());
            }
            let account = self.account(&name);
            let net = fresh.in_minor.get() - fresh.settled.sum_minor.get();
            *account = Account {
                opening_minor: account.opening_minor,
                credit_line_minor: account.credit_line_minor,
                available_minor: account.available_minor,
                out_minor: fresh.settled.sum_minor,
                net_minor: net.into(),
                closing_minor: (account.opening_minor.get() + net).into(),
                ..fresh
            };
        }
        self.certificate.totals = BTreeMap::from([("EUR".to_owned(), totals)]);
    }

    /// Settled counts in order of the banks.
    pub(crate) fn settled(&self) -> Vec<u64> {
        self.certificate
            .participants
            .values()
            .map(|participant| participant.accounts["EUR"].settled.count)
            .collect()
    }
}

fn add(tally: &mut Tally, amount: u64) {
    tally.count += 1;
    tally.sum_minor = Minor::from(tally.sum_minor.get() + i128::from(amount));
}

/// Index of the first payment that leaves: the greatest start of a unit whose removal leaves no shortfall.
fn keep(case: &Case, bank: usize, queue: &[usize], taken: usize, shortfall: i128) -> usize {
    (0..taken)
        .rev()
        .filter(|&at| {
            let unit = |at: usize| case.payments[queue[at]].unit;
            case.banks[bank].nets_by == NetsBy::Payment || at == 0 || unit(at) != unit(at - 1)
        })
        .find(|&at| {
            let sum: i128 = queue[at..taken]
                .iter()
                .map(|&payment| i128::from(case.payments[payment].amount))
                .sum();
            sum >= shortfall
        })
        .unwrap_or(0)
}

pub(crate) fn net(case: &Case) -> Made {
    let count = case.banks.len();
    let queues: Vec<Vec<usize>> = (0..count)
        .map(|bank| {
            (0..case.payments.len())
                .filter(|&payment| case.payments[payment].from == bank)
                .collect()
        })
        .collect();
    let mut taken: Vec<usize> = queues.iter().map(Vec::len).collect();
    let mut funds: Vec<i128> = case.banks.iter().map(|bank| bank.balance).collect();
    // A round reserves what it found; urgent payments use the rest.
    let mut reserved = vec![0_i128; count];
    let mut rounds = Vec::new();
    let mut flows;
    loop {
        let number = rounds.len() as u64 + 1;
        flows = vec![(0_i128, 0_i128); count];
        for (queue, &taken) in queues.iter().zip(&taken) {
            for payment in queue[..taken]
                .iter()
                .map(|&payment| &case.payments[payment])
            {
                flows[payment.from].0 += i128::from(payment.amount);
                flows[payment.to].1 += i128::from(payment.amount);
            }
        }
        for &(round, bank, change) in &case.urgent {
            if round as u64 == number {
                let free = funds[bank] + case.banks[bank].credit_line - reserved[bank];
                funds[bank] += change.max(-free);
            }
        }
        let mut drops = Vec::new();
        for (bank, &(out, incoming)) in flows.iter().enumerate() {
            let available = funds[bank] + case.banks[bank].credit_line;
            let shortfall = out - incoming - available;
            if shortfall <= 0 || taken[bank] == 0 {
                reserved[bank] = (out - incoming).max(0);
                continue;
            }
            let at = keep(case, bank, &queues[bank], taken[bank], shortfall);
            let gone = queues[bank][at..taken[bank]]
                .iter()
                .map(|&payment| i128::from(case.payments[payment].amount));
            let gone: i128 = gone.sum();
            reserved[bank] = (out - gone - incoming).max(0);
            drops.push(Dropped {
                participant: case.banks[bank].name.into(),
                currency: "EUR".into(),
                available_minor: available.into(),
                out_before_minor: out.into(),
                in_before_minor: incoming.into(),
                shortfall_minor: shortfall.into(),
                dropped_count: (taken[bank] - at) as u64,
                dropped_sum_minor: gone.into(),
            });
            taken[bank] = at;
        }
        let done = drops.is_empty();
        rounds.push(Round {
            round: number,
            drops,
        });
        if done {
            break;
        }
    }
    certify(case, &queues, &taken, &funds, &flows, rounds)
}

fn certify(
    case: &Case,
    queues: &[Vec<usize>],
    taken: &[usize],
    funds: &[i128],
    flows: &[(i128, i128)],
    rounds: Vec<Round>,
) -> Made {
    let tally = |payments: &[usize]| Tally {
        count: payments.len() as u64,
        sum_minor: payments
            .iter()
            .map(|&at| i128::from(case.payments[at].amount))
            .sum::<i128>()
            .into(),
    };
    let sum = |tallies: &mut dyn Iterator<Item = Tally>| {
        tallies.fold(Tally::default(), |sum, tally| Tally {
            count: sum.count + tally.count,
            sum_minor: Minor::from(sum.sum_minor.get() + tally.sum_minor.get()),
        })
    };
    let mut lines = Vec::new();
    let mut participants = BTreeMap::new();
    for (at, bank) in case.banks.iter().enumerate() {
        let (kept, dropped) = queues[at].split_at(taken[at]);
        let received = |payment: &usize| case.payments[*payment].to == at;
        let account = Account {
            opening_minor: funds[at].into(),
            out_minor: flows[at].0.into(),
            in_minor: flows[at].1.into(),
            net_minor: (flows[at].1 - flows[at].0).into(),
            closing_minor: (funds[at] + flows[at].1 - flows[at].0).into(),
            credit_line_minor: bank.credit_line.into(),
            available_minor: (funds[at] + bank.credit_line).into(),
            set: tally(&queues[at]),
            settled: tally(kept),
            dropped: tally(dropped),
            received_count: queues
                .iter()
                .zip(taken)
                .flat_map(|(queue, &taken)| &queue[..taken])
                .filter(|p| received(p))
                .count() as u64,
        };
        let accounts = BTreeMap::from([("EUR".to_owned(), account)]);
        let participant = Participant {
            shard: bank.shard,
            nets_by: bank.nets_by,
            accounts,
        };
        participants.insert(bank.name.to_owned(), participant);
        for (&payment, position) in queues[at].iter().zip(1..) {
            lines.push(InputLine {
                shard: bank.shard,
                sender: bank.name.into(),
                currency: "EUR".into(),
                position,
                unit: case.payments[payment].unit,
                id: format!("TX-{payment}").into(),
                receiver: case.banks[case.payments[payment].to].name.into(),
                amount_minor: case.payments[payment].amount,
                outcome: if position <= taken[at] as u64 {
                    Outcome::Settled
                } else {
                    Outcome::Dropped
                },
            });
        }
    }
    let of = |pick: fn(&Account) -> Tally| {
        sum(&mut participants
            .values()
            .map(|participant| pick(&participant.accounts["EUR"])))
    };
    let totals = Totals {
        set: of(|a| a.set),
        settled: of(|a| a.settled),
        dropped: of(|a| a.dropped),
    };
    let certificate = Certificate {
        format: CERTIFICATE_FORMAT.into(),
        version: CERTIFICATE_VERSION,
        cluster: "test".into(),
        business_date: DATE.into(),
        cycle: 1,
        currencies: BTreeMap::from([("EUR".into(), 2)]),
        cuts: BTreeMap::from([(0, 10), (1, 20)]),
        decided: LogPosition {
            shard: 0,
            index: 15,
        },
        posts: BTreeMap::from([(0, 16), (1, 24)]),
        inputs_blake3: Digest::default(),
        totals: BTreeMap::from([("EUR".into(), totals)]),
        participants,
        rounds,
        previous: None,
        digest: Digest::default(),
    };
    Made { certificate, lines }
}
