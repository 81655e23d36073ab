//! What holds of every settled cycle: receipts, the cycle's results and the ledgers' movements agree (rules R18 and R23).

use std::collections::BTreeMap;

use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{Currency, CycleNumber, ParticipantId};

use crate::cluster::Cluster;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    out_minor: u128,
    out_count: u32,
    in_minor: u128,
    in_count: u32,
    dropped_minor: u128,
    dropped_count: u32,
}

type Table = BTreeMap<(ParticipantId, Currency), Sums>;

/// Counts a cycle three ways, payment by payment, receipt by receipt, and as its certificate says.
pub(crate) fn check_cycle(cluster: &Cluster, cycle: CycleNumber) {
    let summary = cluster
        .coordinator()
        .cycle_summary(cycle)
        .expect("an ended cycle");
    assert!(!summary.abandoned);
    let mut stated = Table::new();
    for result in &summary.results {
        let net = signed(result.in_minor) - signed(result.out_minor);
        assert_eq!(result.closing_minor, result.opening_minor + net);
        assert!(result.closing_minor >= -result.credit_line.signed());
        let sums = Sums {
            out_minor: result.out_minor,
            out_count: result.out_count,
            in_minor: result.in_minor,
            in_count: result.in_count,
            dropped_minor: result.dropped_minor,
            dropped_count: result.dropped_count,
        };
        let twice = stated.insert((result.participant, result.currency), sums);
        assert_eq!(twice, None, "one result per participant and currency");
    }

    let mut by_payment = Table::new();
    let mut set_count = 0;
    let mut netted_settled: BTreeMap<ParticipantId, u32> = BTreeMap::new();
    let mut netted_dropped: BTreeMap<ParticipantId, u32> = BTreeMap::new();
    for ledger in &cluster.ledgers {
        let credits = ledger.cycle_credits(cycle);
        let mut bucketed = 0;
        for (payment, settled) in ledger.cycle_set(cycle) {
            set_count += 1;
            let minor = u128::from(payment.amount.minor());
            let sums = by_payment
                .entry((payment.sender, payment.currency))
                .or_default();
            if settled {
                sums.out_minor += minor;
                sums.out_count += 1;
                *netted_settled.entry(payment.sender).or_default() += 1;
                let sums = by_payment
                    .entry((payment.receiver, payment.currency))
                    .or_default();
                sums.in_minor += minor;
                sums.in_count += 1;
                let place = ledger
                    .directory()
                    .currencies()
                    .iter()
                    .position(|&currency| currency == payment.currency)
                    .expect("a served currency");
                assert!(
                    credits
                        .of(payment.receiver, place)
                        .contains(&payment.payment)
                );
                bucketed += 1;
            } else {
                sums.dropped_minor += minor;
                sums.dropped_count += 1;
                *netted_dropped.entry(payment.sender).or_default() += 1;
                // Who would have received it is part of the result too, with nothing.
                by_payment
                    .entry((payment.receiver, payment.currency))
                    .or_default();
            }
        }
        let buckets: usize = ledger
            .directory()
            .iter()
            .map(|(participant, _)| {
                (0..ledger.directory().currencies().len())
                    .map(|place| credits.of(participant, place).len())
                    .sum::<usize>()
            })
            .sum();
        assert_eq!(buckets, bucketed, "each settled payment is in one bucket");
        let own = ledger.cycle(cycle).expect("posted in every shard");
        assert_eq!(summary.posts.len(), cluster.ledgers.len());
        assert_eq!(own.date, summary.date);
        assert_eq!(own.decided, summary.decided);
        for result in &own.results {
            assert!(summary.results.contains(result));
        }
    }
    assert_eq!(by_payment, stated, "payments and results");
    assert_eq!(set_count, summary.set_count);

    // A certificate's drops come to what the results say.
    let mut dropped: BTreeMap<(ParticipantId, Currency), (u128, u32)> = BTreeMap::new();
    for drop in &summary.drops {
        let sums = dropped
            .entry((drop.participant, drop.currency))
            .or_default();
        sums.0 += drop.minor;
        sums.1 += drop.count;
        assert!(
            drop.round < summary.rounds,
            "the last round dropped nothing"
        );
        assert!(
            signed(drop.out_minor) - signed(drop.in_minor) > drop.available_minor,
            "a deficit stands behind each drop"
        );
    }
    for (key, sums) in &stated {
        let (minor, count) = dropped.remove(key).unwrap_or_default();
        assert_eq!((sums.dropped_minor, sums.dropped_count), (minor, count));
    }
    assert!(dropped.is_empty());

    // Receipts: what was netted, what was received, one net result.
    let mut credits = Table::new();
    for ledger in &cluster.ledgers {
        for (participant, _) in ledger.directory().iter() {
            let (mut settled, mut lost, mut results) = (0, 0, 0);
            let items = ledger.stream(participant).into_iter();
            for item in items.flat_map(|stream| stream.iter()) {
                match item.body {
                    ItemBody::Netted {
                        cycle: of,
                        settled: more,
                        dropped,
                        ..
                    } if of == cycle => {
                        settled += more;
                        lost += dropped;
                    }
                    ItemBody::NetResult { cycle: of } if of == cycle => results += 1,
                    ItemBody::NetCredits {
                        cycle: of,
                        currency,
                        count,
                        minor,
                        ..
                    } if of == cycle => {
                        let sums = credits.entry((participant, currency)).or_default();
                        sums.in_minor += minor;
                        sums.in_count += count;
                    }
                    _ => {}
                }
            }
            if ledger.stream(participant).is_none() {
                continue;
            }
            let expected = netted_settled.get(&participant).copied().unwrap_or(0);
            assert_eq!(settled, expected, "receipts of what settled");
            let expected = netted_dropped.get(&participant).copied().unwrap_or(0);
            assert_eq!(lost, expected, "receipts of what was dropped");
            let took_part = stated.keys().any(|(who, _)| *who == participant);
            assert_eq!(results, u32::from(took_part), "one net movement");
        }
    }
    for ((participant, currency), sums) in &stated {
        let received = credits
            .remove(&(*participant, *currency))
            .unwrap_or_default();
        assert_eq!(received.in_minor, sums.in_minor);
        assert_eq!(received.in_count, sums.in_count);
    }
    assert!(credits.is_empty());
}

fn signed(minor: u128) -> i128 {
    i128::try_from(minor).expect("test sums are small")
}
