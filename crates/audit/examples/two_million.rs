//! Makes a cycle of two million payments among 500 participants, writes its certificate and times the verifier.
//!
//!     cargo run --release -p clearspan-audit --example two_million

use clearspan_audit::{
    Account, CERTIFICATE_FORMAT, CERTIFICATE_VERSION, Certificate, Digest, Dropped, InputLine,
    LogPosition, Minor, NetsBy, Outcome, Participant, Round, Tally, Totals, verify_cycle,
    write_certificate,
};
use std::collections::BTreeMap;
use std::time::Duration;

const PARTICIPANTS: usize = 500;
const PAYMENTS_EACH: usize = 4_000;

struct Payment {
    to: usize,
    amount: u64,
}

/// A fixed sequence of numbers; the same cycle on every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[expect(clippy::disallowed_methods, reason = "an example that measures")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed())
}

fn name(participant: usize) -> String {
    format!("BANK{participant:04}")
}

fn main() {
    let mut sequence = Sequence(1);
    let mut pick = |bound: usize| sequence.below(bound as u64);
    let queues: Vec<Vec<Payment>> = (0..PARTICIPANTS)
        .map(|from| {
            let payment = |_| {
                let step = usize::try_from(pick(PARTICIPANTS - 1)).unwrap_or_default() + 1;
                Payment {
                    to: (from + step) % PARTICIPANTS,
                    amount: pick(1_000_000) + 1,
                }
            };
            (0..PAYMENTS_EACH).map(payment).collect()
        })
        .collect();
    // Little money, so that a good part of the payments cannot settle.
    let balance: i128 = 20_000_000;
    let (certificate, taken) = net(&queues, balance);
    let lines = queues.iter().enumerate().flat_map(|(from, queue)| {
        let taken = taken[from];
        queue
            .iter()
            .enumerate()
            .map(move |(at, payment)| InputLine {
                shard: shard(from),
                sender: name(from).into(),
                currency: "EUR".into(),
                position: at as u64 + 1,
                unit: at as u64 / 500 + 1,
                id: format!("{from:08x}-0000-4000-8000-{at:012x}").into(),
                receiver: name(payment.to).into(),
                amount_minor: payment.amount,
                outcome: if at < taken {
                    Outcome::Settled
                } else {
                    Outcome::Dropped
                },
            })
    });
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("cycle-0001");
    let (sealed, write) = timed(|| write_certificate(&dir, &certificate, lines).expect("write"));
    let len = std::fs::metadata(dir.join("inputs.csv"))
        .expect("inputs")
        .len();
    let (verdict, verify) = timed(|| verify_cycle(&dir, None).expect("a sound certificate"));
    assert_eq!(verdict.digest, sealed.digest);
    let totals = &verdict.totals["EUR"];
    println!(
        "payments {} settled {} rounds {}",
        totals.set.count, totals.settled.count, verdict.rounds
    );
    println!(
        "inputs.csv {} MB, write {:.2} s, verify {:.2} s",
        len / 1_000_000,
        write.as_secs_f64(),
        verify.as_secs_f64()
    );
}

fn shard(participant: usize) -> u32 {
    u32::from(participant % 2 == 1)
}

fn sum(payments: &[Payment]) -> i128 {
    payments
        .iter()
        .map(|payment| i128::from(payment.amount))
        .sum()
}

fn net(queues: &[Vec<Payment>], balance: i128) -> (Certificate, Vec<usize>) {
    let mut taken: Vec<usize> = queues.iter().map(Vec::len).collect();
    let mut incoming = vec![0_i128; queues.len()];
    for payment in queues.iter().flatten() {
        incoming[payment.to] += i128::from(payment.amount);
    }
    let mut rounds: Vec<Round> = Vec::new();
    loop {
        let (mut drops, before) = (Vec::new(), incoming.clone());
        for (from, queue) in queues.iter().enumerate() {
            let out = sum(&queue[..taken[from]]);
            let shortfall = out - before[from] - balance;
            let (mut dropped, mut at) = (0, taken[from]);
            while dropped < shortfall && at > 0 {
                at -= 1;
                dropped += i128::from(queue[at].amount);
                incoming[queue[at].to] -= i128::from(queue[at].amount);
            }
            if dropped > 0 {
                drops.push(Dropped {
                    participant: name(from),
                    currency: "EUR".into(),
                    available_minor: balance.into(),
                    out_before_minor: out.into(),
                    in_before_minor: before[from].into(),
                    shortfall_minor: shortfall.into(),
                    dropped_count: (taken[from] - at) as u64,
                    dropped_sum_minor: dropped.into(),
                });
                taken[from] = at;
            }
        }
        let done = drops.is_empty();
        rounds.push(Round {
            round: rounds.len() as u64 + 1,
            drops,
        });
        if done {
            break;
        }
    }
    let tally = |payments: &[Payment]| Tally {
        count: payments.len() as u64,
        sum_minor: sum(payments).into(),
    };
    let mut received = vec![0_u64; queues.len()];
    for payment in queues
        .iter()
        .zip(&taken)
        .flat_map(|(queue, &taken)| &queue[..taken])
    {
        received[payment.to] += 1;
    }
    let mut totals = Totals::default();
    let mut participants = BTreeMap::new();
    for (from, queue) in queues.iter().enumerate() {
        let (settled, dropped) = queue.split_at(taken[from]);
        let account = Account {
            opening_minor: balance.into(),
            out_minor: sum(settled).into(),
            in_minor: incoming[from].into(),
            net_minor: (incoming[from] - sum(settled)).into(),
            closing_minor: (balance + incoming[from] - sum(settled)).into(),
            credit_line_minor: Minor::ZERO,
            available_minor: balance.into(),
            set: tally(queue),
            settled: tally(settled),
            dropped: tally(dropped),
            received_count: received[from],
        };
        for (total, tally) in [
            (&mut totals.set, account.set),
            (&mut totals.settled, account.settled),
            (&mut totals.dropped, account.dropped),
        ] {
            total.count += tally.count;
            total.sum_minor = Minor::from(total.sum_minor.get() + tally.sum_minor.get());
        }
        let accounts = BTreeMap::from([("EUR".to_owned(), account)]);
        participants.insert(
            name(from),
            Participant {
                shard: shard(from),
                nets_by: NetsBy::Payment,
                accounts,
            },
        );
    }
    let certificate = Certificate {
        format: CERTIFICATE_FORMAT.into(),
        version: CERTIFICATE_VERSION,
        cluster: "example".into(),
        business_date: "2026-03-02".into(),
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
    (certificate, taken)
}
