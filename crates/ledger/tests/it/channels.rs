//! Channels between shards: exactly once, in order, whatever comes twice, late, too early or never.

use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command};
use clearspan_ledger::message::Class;
use clearspan_ledger::{AmountMinor, Reply, ShardId, Text};

use crate::cluster::{Cluster, genesis};
use crate::make::{date, gross, payment};
use crate::script::{amount, bic, eur};

fn shard(number: u16) -> ShardId {
    ShardId::new(number)
}

/// One bank per shard, each with 10.
fn banks(names: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(&genesis(u16::try_from(names.len()).expect("few")));
    for (home, name) in (0..).zip(names) {
        add(&mut cluster, name, home);
    }
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    cluster
}

fn add(cluster: &mut Cluster, name: &str, home: u16) {
    cluster.expect_done(AdminCommand::AddParticipant(ParticipantTerms {
        bic: bic(name),
        name: String::new(),
        home: shard(home),
        numbers_messages: false,
        refuse_whole: false,
        net_unit: NetUnit::Payment,
    }));
    cluster.expect_done(AdminCommand::OpenAccount(AccountTerms {
        bic: bic(name),
        currency: eur(),
        credit_line: AmountMinor::ZERO,
    }));
    cluster.expect_done(AdminCommand::Fund {
        reference: Text::new(name).expect("short"),
        bic: bic(name),
        currency: eur(),
        amount: amount(10),
    });
}

fn pay(cluster: &mut Cluster, from: &str, to: &str, key: &str, minor: u64) {
    let record = payment(key, to, minor, eur(), date(0));
    let message = gross(from, key, Class::Urgent, false, vec![record], Vec::new());
    let home = cluster.home(message.sender);
    let reply = cluster.apply(home, Command::Submit(message));
    assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
}

#[test]
fn what_comes_again_changes_nothing() {
    let mut cluster = banks(&["A", "B"]);
    cluster.pump();
    pay(&mut cluster, "A", "B", "p1", 1);
    pay(&mut cluster, "A", "B", "p2", 2);
    let (first, messages) = cluster.in_transit(shard(0), shard(1));
    assert_eq!(messages.len(), 2);
    cluster.deliver(shard(0), shard(1), usize::MAX);
    assert_eq!(cluster.balance(bic("B"), eur()), 13);
    for (at, len) in [(0, 1), (0, 2), (1, 1)] {
        let again = Command::Deliver {
            from: shard(0),
            first: first + at,
            messages: messages[usize::try_from(at).expect("small")..][..len].to_vec(),
        };
        cluster.apply(shard(1), again);
        assert_eq!(cluster.balance(bic("B"), eur()), 13);
    }
    // Confirmed twice, and late.
    cluster.confirm(shard(0), shard(1));
    let kept = cluster.ledger(shard(0)).outbound_range(shard(1));
    assert_eq!(kept, (first + 2, first + 2));
    for through in [0, 1, first + 1] {
        let to = shard(1);
        cluster.apply(shard(0), Command::Delivered { to, through });
        assert_eq!(cluster.ledger(shard(0)).outbound_range(to), kept);
    }
}

#[test]
fn a_gap_waits_and_nothing_behind_it_is_applied() {
    let mut cluster = banks(&["A", "B"]);
    cluster.pump();
    for key in ["p1", "p2", "p3"] {
        pay(&mut cluster, "A", "B", key, 1);
    }
    let (first, messages) = cluster.in_transit(shard(0), shard(1));
    cluster.apply(
        shard(1),
        Command::Deliver {
            from: shard(0),
            first: first + 1,
            messages: messages[1..].to_vec(),
        },
    );
    assert_eq!(cluster.balance(bic("B"), eur()), 10);
    cluster.deliver(shard(0), shard(1), 2);
    assert_eq!(cluster.balance(bic("B"), eur()), 12);
    cluster.pump();
    assert_eq!(cluster.balance(bic("B"), eur()), 13);
}

/// The coordinator's word about a new account and a credit for it come by different channels.
#[test]
fn a_credit_that_overtakes_its_account_waits_for_it() {
    let mut cluster = banks(&["A", "B", "C"]);
    cluster.pump();
    add(&mut cluster, "N", 2);
    cluster.deliver(shard(0), shard(1), usize::MAX);
    pay(&mut cluster, "B", "N", "p1", 3);
    pay(&mut cluster, "B", "C", "p2", 4);
    let next = cluster.ledger(shard(2)).inbound_next(shard(1));
    cluster.deliver(shard(1), shard(2), usize::MAX);
    assert_eq!(cluster.ledger(shard(2)).inbound_next(shard(1)), next);
    // The participant is known, its account is not.
    cluster.deliver(shard(0), shard(2), 1);
    cluster.deliver(shard(1), shard(2), usize::MAX);
    assert_eq!(cluster.ledger(shard(2)).inbound_next(shard(1)), next);
    assert_eq!(cluster.balance(bic("C"), eur()), 10);
    cluster.pump();
    assert_eq!(cluster.balance(bic("N"), eur()), 13);
    assert_eq!(cluster.balance(bic("C"), eur()), 14);
}

#[test]
fn numbers_at_their_end_and_unknown_shards_change_nothing() {
    let mut cluster = banks(&["A", "B"]);
    pay(&mut cluster, "A", "B", "p1", 1);
    let (_, messages) = cluster.in_transit(shard(0), shard(1));
    for (from, first) in [
        (shard(0), u64::MAX),
        (shard(0), u64::MAX - 1),
        (shard(u16::MAX), 1),
    ] {
        let messages = messages.clone();
        let expected = cluster.ledger(shard(1)).inbound_next(shard(0));
        cluster.apply(
            shard(1),
            Command::Deliver {
                from,
                first,
                messages,
            },
        );
        assert_eq!(cluster.ledger(shard(1)).inbound_next(shard(0)), expected);
    }
    let to = shard(u16::MAX);
    cluster.apply(shard(0), Command::Delivered { to, through: 1 });
    cluster.pump();
    assert_eq!(cluster.balance(bic("B"), eur()), 11);
}

#[test]
fn nobody_can_have_what_was_never_sent() {
    let mut cluster = banks(&["A", "B"]);
    cluster.pump();
    pay(&mut cluster, "A", "B", "p1", 1);
    let to = shard(1);
    let (kept, end) = cluster.ledger(shard(0)).outbound_range(to);
    for through in [end, end + 1, u64::MAX] {
        cluster.apply(shard(0), Command::Delivered { to, through });
        assert_eq!(cluster.ledger(shard(0)).outbound_range(to), (kept, end));
    }
    cluster.pump();
    assert_eq!(cluster.balance(bic("B"), eur()), 11);
}
