//! Numbers at their ends, and settings at theirs.

use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{AdminCommand, Command, CycleCommand, Genesis};
use clearspan_ledger::message::{Class, MessageKind, OriginalPayment, Settlement, Submission};
use clearspan_ledger::stream::ItemBody;
use clearspan_ledger::{
    AdminRefusal, AmountMinor, CycleNumber, HELD_MAX_BYTES, HELD_MAX_MESSAGES, Ledger, PaymentId,
    PaymentNo, Reason, Reply, ShardId, Text,
};

use crate::bytes::{read, write};
use crate::cluster::{Cluster, genesis};
use crate::make::{date, gross, message, net, payment};
use crate::script::{amount, bic, eur};

fn shard(number: u16) -> ShardId {
    ShardId::new(number)
}

fn add(cluster: &mut Cluster, name: &str, home: u16, numbers_messages: bool, minor: u64) {
    cluster.expect_done(AdminCommand::AddParticipant(ParticipantTerms {
        bic: bic(name),
        name: String::new(),
        home: shard(home),
        numbers_messages,
        refuse_whole: false,
        net_unit: NetUnit::Payment,
    }));
    cluster.expect_done(AdminCommand::OpenAccount(AccountTerms {
        bic: bic(name),
        currency: eur(),
        credit_line: AmountMinor::ZERO,
    }));
    if minor > 0 {
        cluster.expect_done(AdminCommand::Fund {
            reference: Text::new(name).expect("short"),
            bic: bic(name),
            currency: eur(),
            amount: amount(minor),
        });
    }
}

fn numbered(number: u64) -> Submission {
    let key = format!("n{number}");
    let record = payment(&key, "B", 1, eur(), date(0));
    Submission {
        sequence: Some(number),
        ..net("A", &key, vec![record])
    }
}

#[test]
fn the_last_sequence_number_is_nobodys() {
    let mut cluster = Cluster::new(&genesis(1));
    add(&mut cluster, "A", 0, true, 0);
    add(&mut cluster, "B", 0, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    let skip = Command::SkipSequence {
        bic: bic("A"),
        next: u64::MAX - 1,
    };
    assert_eq!(cluster.apply(shard(0), skip), Reply::Done);
    let reply = cluster.apply(shard(0), Command::Submit(numbered(u64::MAX - 1)));
    assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
    for _ in 0..2 {
        let reply = cluster.apply(shard(0), Command::Submit(numbered(u64::MAX)));
        assert!(!matches!(reply, Reply::Taken { accepted: 1, .. }));
    }
    let skip = Command::SkipSequence {
        bic: bic("A"),
        next: u64::MAX,
    };
    let refused = Reply::Refused(AdminRefusal::SequenceNotAhead);
    assert_eq!(cluster.apply(shard(0), skip), refused);
}

#[test]
fn no_timeout_for_holes_reports_them_with_each_entry_and_goes_on() {
    let mut cluster = Cluster::new(&Genesis {
        gap_timeout_ns: 0,
        ..genesis(1)
    });
    add(&mut cluster, "A", 0, true, 0);
    add(&mut cluster, "B", 0, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    cluster.apply(shard(0), Command::Submit(numbered(2)));
    let participant = cluster.coordinator().directory().find(bic("A"));
    let participant = participant.expect("taken up");
    let next = |cluster: &Cluster| {
        let stream = cluster.coordinator().stream(participant);
        stream.map(clearspan_ledger::stream::Stream::next_number)
    };
    let before = next(&cluster).expect("output");
    cluster.tick();
    assert_eq!(next(&cluster), Some(before + 1));
    cluster.now_ns = u64::MAX;
    cluster.tick();
    assert_eq!(next(&cluster), Some(before + 2));
}

#[test]
fn a_full_store_of_held_messages_takes_no_more_and_empties_in_order() {
    let mut cluster = Cluster::new(&genesis(1));
    add(&mut cluster, "A", 0, true, 0);
    add(&mut cluster, "B", 0, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    let most = u64::try_from(HELD_MAX_MESSAGES).expect("small");
    for number in 2..most + 2 {
        let reply = cluster.apply(shard(0), Command::Submit(numbered(number)));
        assert!(matches!(
            reply,
            Reply::Held {
                missing_from: 1,
                missing_through: 1,
                ..
            }
        ));
    }
    let full = Reply::HeldFull { missing_from: 1 };
    let reply = cluster.apply(shard(0), Command::Submit(numbered(most + 2)));
    assert_eq!(reply, full);
    let reply = cluster.apply(shard(0), Command::Submit(numbered(1)));
    assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
    let participant = cluster.coordinator().directory().find(bic("A"));
    let queue = cluster.coordinator().queue(participant.expect("taken up"));
    assert_eq!(queue.len(), HELD_MAX_MESSAGES + 1);
    let reply = cluster.apply(shard(0), Command::Submit(numbered(most + 2)));
    assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
}

#[test]
fn held_messages_have_a_maximum_in_bytes() {
    let mut cluster = Cluster::new(&genesis(1));
    add(&mut cluster, "A", 0, true, 0);
    add(&mut cluster, "B", 0, false, 0);
    let half = usize::try_from(HELD_MAX_BYTES / 2 + 1).expect("fits memory");
    let heap = bytes::Bytes::from(vec![0; half]);
    for day in 0..2 {
        cluster.expect_done(AdminCommand::OpenDay { date: date(day) });
        let large = |number| Submission {
            heap: heap.clone(),
            digest: u128::from(day),
            ..numbered(number)
        };
        let reply = cluster.apply(shard(0), Command::Submit(large(2)));
        assert!(matches!(reply, Reply::Held { .. }), "{reply:?}");
        let reply = cluster.apply(shard(0), Command::Submit(large(3)));
        assert_eq!(reply, Reply::HeldFull { missing_from: 1 });
        let small = Submission {
            digest: u128::from(day),
            ..numbered(4)
        };
        let reply = cluster.apply(shard(0), Command::Submit(small));
        assert!(matches!(reply, Reply::Held { .. }), "small ones still fit");
        cluster.expect_done(AdminCommand::CloseDay);
        cluster.pump();
    }
}

#[test]
fn amounts_of_18_digits_add_up_without_overflow() {
    for shards in [1, 3] {
        let mut cluster = Cluster::new(&genesis(shards));
        let most = AmountMinor::MAX.minor();
        for (home, name) in (0..).zip(["A", "B", "C"]) {
            add(&mut cluster, name, home % shards, false, 0);
        }
        for at in 0..40 {
            cluster.expect_done(AdminCommand::Fund {
                reference: Text::new(&format!("F{at}")).expect("short"),
                bic: bic("A"),
                currency: eur(),
                amount: AmountMinor::MAX,
            });
        }
        cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
        cluster.pump();
        let home = cluster.home(bic("A"));
        let all = i128::from(most) * 40;
        assert_eq!(cluster.balance(bic("A"), eur()), all);
        let records = (0..25)
            .map(|at| payment(&format!("g{at}"), "B", most, eur(), date(0)))
            .collect();
        let submission = gross("A", "g", Class::Urgent, false, records, Vec::new());
        let reply = cluster.apply(home, Command::Submit(submission));
        assert!(matches!(reply, Reply::Taken { accepted: 25, .. }));
        let records = (0..30)
            .map(|at| payment(&format!("n{at}"), "C", most, eur(), date(0)))
            .collect();
        cluster.apply(home, Command::Submit(net("A", "n", records)));
        cluster.pump();
        assert_eq!(cluster.cycle(CycleCommand::Open), Reply::Done);
        cluster.pump();
        assert_eq!(cluster.balance(bic("A"), eur()), 0);
        assert_eq!(cluster.balance(bic("B"), eur()), i128::from(most) * 25);
        assert_eq!(cluster.balance(bic("C"), eur()), i128::from(most) * 15);
        cluster.expect_done(AdminCommand::CloseDay);
        cluster.pump();
    }
}

#[test]
fn one_payment_has_its_largest_amount() {
    let mut cluster = Cluster::new(&Genesis {
        amount_max: amount(100),
        ..genesis(1)
    });
    add(&mut cluster, "A", 0, false, 1000);
    add(&mut cluster, "B", 0, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    let records = vec![
        payment("p1", "B", 100, eur(), date(0)),
        payment("p2", "B", 101, eur(), date(0)),
    ];
    let reply = cluster.apply(shard(0), Command::Submit(net("A", "m", records)));
    let Reply::Taken {
        message,
        accepted: 1,
        refused: 1,
        ..
    } = reply
    else {
        panic!("{reply:?}");
    };
    let reasons: Vec<_> = cluster
        .coordinator()
        .payments_of(message)
        .map(|view| view.reason)
        .collect();
    assert_eq!(reasons, [None, Some(Reason::AmountTooLarge)]);
}

/// The answer to a return's claim may come when the next day is open already, even where one day is all that is asked to
/// be kept.
#[test]
fn a_verdict_may_come_a_day_late() {
    let mut cluster = Cluster::new(&Genesis {
        retention_days: 1,
        ..genesis(3)
    });
    add(&mut cluster, "A", 1, false, 10);
    add(&mut cluster, "B", 2, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    cluster.pump();
    let record = payment("p", "B", 10, eur(), date(0));
    let original = record.id;
    let paid = gross("A", "p", Class::Urgent, false, vec![record], Vec::new());
    cluster.apply(shard(1), Command::Submit(paid));
    cluster.pump();
    let returned = Submission {
        originals: vec![(
            0,
            OriginalPayment {
                id: original,
                reason: *b"AC04",
            },
        )],
        ..message(
            MessageKind::Return,
            "B",
            "r",
            Settlement::Gross {
                class: Class::Normal,
                settle_or_refuse: false,
            },
            vec![payment("r", "A", 4, eur(), date(0))],
        )
    };
    // The originals' shard ends its day before it hears of the claim, so its answer goes behind its end of day.
    cluster.expect_done(AdminCommand::CloseDay);
    cluster.deliver(shard(0), shard(1), usize::MAX);
    let reply = cluster.apply(shard(2), Command::Submit(returned));
    assert!(matches!(reply, Reply::Taken { accepted: 1, .. }));
    cluster.deliver(shard(2), shard(1), usize::MAX);
    let (_, waiting) = cluster.in_transit(shard(1), shard(2));
    assert_eq!(waiting.len(), 2, "the end of day, then the verdict");
    cluster.deliver(shard(1), shard(2), 1);
    // Everything else goes on until the day is closed everywhere and the next one is open.
    for _ in 0..8 {
        for (from, to) in cluster.busy() {
            if (from, to) != (shard(1), shard(2)) {
                cluster.deliver(from, to, usize::MAX);
            }
        }
    }
    assert_eq!(cluster.coordinator().cluster_day(), None);
    cluster.expect_done(AdminCommand::OpenDay { date: date(1) });
    cluster.deliver(shard(0), shard(2), usize::MAX);
    cluster.pump();
    assert_eq!(cluster.balance(bic("A"), eur()), 0);
    assert_eq!(cluster.balance(bic("B"), eur()), 10);
    // The claim was given back.
    let original = cluster.ledger(shard(1)).payments_with_id(original);
    assert_eq!(original[0].returned, AmountMinor::ZERO);
}

#[test]
fn what_is_beyond_retention_is_forgotten_and_the_rest_is_not() {
    let mut cluster = Cluster::new(&Genesis {
        retention_days: 2,
        ..genesis(2)
    });
    add(&mut cluster, "A", 0, false, 1000);
    add(&mut cluster, "B", 1, false, 0);
    let participant = |cluster: &Cluster| {
        let found = cluster.coordinator().directory().find(bic("A"));
        found.expect("taken up")
    };
    let mut first_numbers = Vec::new();
    for day in 0..5 {
        cluster.expect_done(AdminCommand::OpenDay { date: date(day) });
        cluster.pump();
        let ledger = cluster.coordinator();
        let stream = ledger.stream(participant(&cluster)).expect("output");
        let oldest = stream.iter().next().expect("something is kept");
        if day < 2 {
            assert_eq!(oldest.number, 1);
        } else {
            // Output of the last two days is there, and what is older is gone.
            assert_eq!(
                oldest.number,
                first_numbers[usize::try_from(day).expect("small") - 1]
            );
        }
        assert_eq!(stream.get(oldest.number - 1), None);
        first_numbers.push(stream.next_number());
        let key = format!("p{day}");
        let record = payment(&key, "B", 1, eur(), date(day));
        cluster.apply(shard(0), Command::Submit(net("A", &key, vec![record])));
        cluster.cycle(CycleCommand::Open);
        cluster.pump();
        cluster.expect_done(AdminCommand::CloseDay);
        cluster.pump();
        for ledger in &cluster.ledgers {
            for number in 1..=day + 1 {
                let record = ledger.cycle(CycleNumber::new(number));
                assert_eq!(record.is_some(), number >= day, "{number} on {day}");
            }
        }
        let kept = cluster.coordinator().cycle_summaries().count();
        assert_eq!(kept, usize::try_from(day + 1).expect("small").min(2));
        for earlier in 0..=day {
            let id = Text::new(&format!("p{earlier}")).expect("short");
            let found = cluster
                .coordinator()
                .find_message(participant(&cluster), &id);
            assert_eq!(found.is_some(), earlier + 1 >= day, "{earlier} on {day}");
        }
    }
    assert_eq!(cluster.balance(bic("B"), eur()), 5);
}

#[test]
fn operators_acts_are_checked_in_one_place() {
    let mut cluster = Cluster::new(&genesis(2));
    add(&mut cluster, "A", 0, false, 0);
    let terms = |name: &str, home: u16, len: usize| {
        AdminCommand::AddParticipant(ParticipantTerms {
            bic: bic(name),
            name: "N".repeat(len),
            home: shard(home),
            numbers_messages: false,
            refuse_whole: false,
            net_unit: NetUnit::Payment,
        })
    };
    let fund = |reference: &str, name: &str| AdminCommand::Fund {
        reference: Text::new(reference).expect("short"),
        bic: bic(name),
        currency: eur(),
        amount: amount(5),
    };
    cluster.expect_refused(terms("A", 1, 0), AdminRefusal::ParticipantExists);
    cluster.expect_refused(terms("B", 2, 0), AdminRefusal::ShardUnknown);
    cluster.expect_refused(terms("B", 1, 141), AdminRefusal::TooMany);
    cluster.expect_refused(fund("1", "Z"), AdminRefusal::ParticipantUnknown);
    cluster.expect_done(fund("1", "A"));
    cluster.expect_refused(fund("1", "A"), AdminRefusal::ReferenceUsed);
    cluster.expect_done(terms("B", 1, 140));
    cluster.expect_refused(fund("2", "B"), AdminRefusal::AccountMissing);
    cluster.expect_refused(AdminCommand::CloseDay, AdminRefusal::DayNotOpen);
    cluster.expect_done(AdminCommand::OpenDay { date: date(3) });
    let open = AdminCommand::OpenDay { date: date(4) };
    cluster.expect_refused(open.clone(), AdminRefusal::DayOpen);
    cluster.expect_done(AdminCommand::CloseDay);
    cluster.expect_refused(open.clone(), AdminRefusal::DayOpen); // not closed everywhere yet
    cluster.pump();
    let again = AdminCommand::OpenDay { date: date(3) };
    cluster.expect_refused(again, AdminRefusal::DateNotLater);
    cluster.expect_done(open);
    // The other shards take none of it.
    for command in [
        Command::Admin(AdminCommand::CloseDay),
        Command::Cycle(CycleCommand::Open),
    ] {
        let reply = cluster.apply(shard(1), command);
        assert_eq!(reply, Reply::Refused(AdminRefusal::NotCoordinator));
    }
    assert_eq!(cluster.balance(bic("A"), eur()), 5);
}

#[test]
fn a_message_at_another_shard_is_sent_home() {
    let mut cluster = Cluster::new(&genesis(2));
    add(&mut cluster, "A", 1, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    cluster.pump();
    let submission = net("A", "m", vec![payment("p", "A", 1, eur(), date(0))]);
    let reply = cluster.apply(shard(0), Command::Submit(submission));
    assert_eq!(reply, Reply::NotHome { home: shard(1) });
    let skip = Command::SkipSequence {
        bic: bic("A"),
        next: 9,
    };
    let home = Reply::NotHome { home: shard(1) };
    assert_eq!(cluster.apply(shard(0), skip), home);
}

#[test]
fn money_put_on_an_account_between_two_days_stays_with_the_later_one() {
    let mut cluster = Cluster::new(&Genesis {
        retention_days: 1,
        ..genesis(2)
    });
    add(&mut cluster, "A", 1, false, 1000);
    for day in 0..4 {
        cluster.expect_done(AdminCommand::OpenDay { date: date(day) });
        cluster.pump();
        cluster.expect_done(AdminCommand::CloseDay);
        cluster.pump();
        let ledger = cluster.ledger(shard(1));
        let participant = ledger.directory().find(bic("A")).expect("taken up");
        let stream = ledger.stream(participant).expect("output");
        let statement = stream.iter().find_map(|item| match &item.body {
            ItemBody::Statement(statement) if statement.date == date(day) => Some(**statement),
            _ => None,
        });
        let statement = statement.expect("the day has a statement");
        // What the statement accounts for is still there to be listed.
        let funded: u64 = stream
            .range(statement.first_number, statement.end_number)
            .map(|item| match &item.body {
                ItemBody::Funded { amount, .. } => amount.minor(),
                _ => 0,
            })
            .sum();
        assert_eq!(u128::from(funded), statement.credits_minor, "day {day}");
        cluster.expect_done(AdminCommand::Fund {
            reference: Text::new(&format!("between-{day}")).expect("short"),
            bic: bic("A"),
            currency: eur(),
            amount: amount(7),
        });
        cluster.pump();
    }
}

#[test]
fn a_movement_made_before_the_first_day_is_not_made_again_after_it() {
    let mut cluster = Cluster::new(&genesis(2));
    add(&mut cluster, "A", 1, false, 1000);
    let again = AdminCommand::Fund {
        reference: Text::new("A").expect("short"),
        bic: bic("A"),
        currency: eur(),
        amount: amount(1000),
    };
    for day in 0..3 {
        cluster.expect_refused(again.clone(), AdminRefusal::ReferenceUsed);
        cluster.expect_done(AdminCommand::OpenDay { date: date(day) });
        cluster.pump();
        cluster.expect_refused(again.clone(), AdminRefusal::ReferenceUsed);
        cluster.expect_done(AdminCommand::CloseDay);
        cluster.pump();
    }
    assert_eq!(cluster.balance(bic("A"), eur()), 1000);
}

#[test]
fn one_key_and_one_content_used_over_and_over_stay_findable() {
    let mut cluster = Cluster::new(&genesis(1));
    for name in ["A", "B", "C"] {
        add(&mut cluster, name, 0, false, 0);
    }
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    let one = |key: &str, minor| {
        let mut record = payment(key, "C", minor, eur(), date(0));
        record.content_digest = 7;
        record
    };
    // Of each sender: refused twice, accepted, refused as a duplicate; then the same content under another key.
    for sender in ["A", "B"] {
        for (at, (key, minor)) in [("k", 0), ("k", 0), ("k", 5), ("k", 5), (sender, 5)]
            .into_iter()
            .enumerate()
        {
            let message = net(sender, &format!("{sender}{at}"), vec![one(key, minor)]);
            cluster.apply(shard(0), Command::Submit(message));
        }
    }
    let ledger = cluster.ledger(shard(0));
    let key = PaymentId::of_transaction("k");
    let restored: Ledger = read(&write(ledger)).expect("it reads back");
    for ledger in [ledger, &restored] {
        let all = ledger.payments_with_id(key);
        let statuses: Vec<_> = all.iter().map(|view| view.status).collect();
        use PaymentStatus::{Netting, Refused};
        let each = [Refused, Refused, Netting, Refused];
        assert_eq!(statuses, [each, each].concat());
        for (sender, base) in [("A", 0), ("B", 5)] {
            let sender = ledger.directory().find(bic(sender)).expect("there");
            let accepted = PaymentNo::new(base + 2);
            assert_eq!(ledger.find_payment(sender, key), Some(accepted));
            let again = ledger.payment(PaymentNo::new(base + 4)).expect("there");
            assert_eq!(again.same_content_as, Some(accepted));
            assert_eq!(
                ledger.payment(accepted).expect("there").same_content_as,
                None
            );
        }
    }
}

/// A payment sent again on a later day is refused for its date; that must not hide the one that was settled.
#[test]
fn a_refused_payment_of_a_later_day_hides_nothing() {
    let mut cluster = Cluster::new(&Genesis {
        retention_days: 3,
        ..genesis(2)
    });
    add(&mut cluster, "A", 0, false, 100);
    add(&mut cluster, "B", 1, false, 0);
    cluster.expect_done(AdminCommand::OpenDay { date: date(0) });
    cluster.pump();
    let record = payment("p", "B", 100, eur(), date(0));
    let original = record.id;
    let sent = |key: &str| gross("A", key, Class::Urgent, false, vec![record], Vec::new());
    cluster.apply(shard(0), Command::Submit(sent("first")));
    cluster.pump();
    cluster.expect_done(AdminCommand::CloseDay);
    cluster.pump();
    cluster.expect_done(AdminCommand::OpenDay { date: date(1) });
    cluster.pump();
    let reply = cluster.apply(shard(0), Command::Submit(sent("second")));
    assert!(
        matches!(
            reply,
            Reply::Taken {
                accepted: 0,
                refused: 1,
                ..
            }
        ),
        "{reply:?}"
    );
    let returned = Submission {
        originals: vec![(
            0,
            OriginalPayment {
                id: original,
                reason: *b"AC04",
            },
        )],
        ..message(
            MessageKind::Return,
            "B",
            "r",
            Settlement::Net,
            vec![payment("r", "A", 100, eur(), date(1))],
        )
    };
    cluster.apply(shard(1), Command::Submit(returned));
    cluster.pump();
    assert_eq!(cluster.balance(bic("A"), eur()), 100);
}
