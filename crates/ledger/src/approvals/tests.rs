use super::*;
use crate::directory::{AccountTerms, NetUnit, ParticipantTerms};
use crate::entry::{Entry, Genesis};
use crate::nodes::NodeRecord;
use crate::{AmountMinor, Bic, Currency, ShardId, Text};

const MINUTE_NS: u64 = 60_000_000_000;
const VALID_NS: u64 = 10 * MINUTE_NS;

/// A shard, with a clock that stands still unless it is moved.
struct Shard {
    ledger: Ledger,
    now_ns: u64,
}

fn person(name: &str, key: u128) -> Person {
    Person {
        name: name.to_owned(),
        key,
    }
}

fn olga() -> Person {
    person("olga", 1)
}

fn omar() -> Person {
    person("omar", 2)
}

fn bic() -> Bic {
    Bic::parse(b"ALFADEFFXXX").unwrap()
}

fn eur() -> Currency {
    Currency::parse(b"EUR").unwrap()
}

fn participant() -> AdminCommand {
    AdminCommand::AddParticipant(ParticipantTerms {
        bic: bic(),
        name: "Alfa".to_owned(),
        home: ShardId::new(0),
        numbers_messages: false,
        refuse_whole: false,
        net_unit: NetUnit::Payment,
    })
}

fn account() -> AdminCommand {
    AdminCommand::OpenAccount(AccountTerms {
        bic: bic(),
        currency: eur(),
        credit_line: AmountMinor::new(500).unwrap(),
    })
}

fn fund(reference: &str, minor: u64) -> AdminCommand {
    AdminCommand::Fund {
        reference: Text::new(reference).unwrap(),
        bic: bic(),
        currency: eur(),
        amount: AmountMinor::new(minor).unwrap(),
    }
}

impl Shard {
    /// Founded; `number` says which shard it is.
    fn new(number: u16) -> Self {
        let mut shard = Self {
            ledger: Ledger::new(),
            now_ns: MINUTE_NS,
        };
        let genesis = Genesis {
            cluster: 1,
            shard: ShardId::new(number),
            shards: 1 + number,
            hash_seed: 2,
            retention_days: 2,
            amount_max: AmountMinor::new(1_000_000).unwrap(),
            page_len_payments: 10,
            gap_timeout_ns: 1,
        };
        assert_eq!(shard.apply(Command::Genesis(genesis)), Reply::Done);
        shard
    }

    /// The same where acts take two persons.
    fn strict() -> Self {
        let mut shard = Self::new(0);
        let require = ApprovalCommand::Require { valid_ns: VALID_NS };
        assert_eq!(shard.approvals(require), Reply::Done);
        shard
    }

    fn apply(&mut self, command: Command) -> Reply {
        let entry = Entry {
            index: LogIndex::new(self.ledger.index.get() + 1),
            time: Timestamp::from_ns(self.now_ns),
            command,
        };
        self.ledger.apply(&entry).reply
    }

    fn approvals(&mut self, command: ApprovalCommand) -> Reply {
        self.apply(Command::Approvals(command))
    }

    fn ask(&mut self, by: Person, act: Act) -> Reply {
        self.approvals(ApprovalCommand::Ask { by, act, digest: 7 })
    }

    /// The number of a request that must be taken.
    fn asked(&mut self, by: Person, act: Act) -> u64 {
        match self.ask(by, act) {
            Reply::Asked { request } => request,
            other => panic!("{other:?}"),
        }
    }

    fn approve(&mut self, request: u64, by: Person) -> Reply {
        self.approvals(ApprovalCommand::Approve {
            request,
            digest: 7,
            by,
        })
    }

    fn balance(&self) -> Option<i128> {
        let number = self.ledger.directory().find(bic())?;
        Some(self.ledger.account(number, eur())?.balance_minor())
    }
}

fn refused(why: AdminRefusal) -> Reply {
    Reply::Refused(why)
}

#[test]
fn one_person_is_enough_until_two_are_asked_for() {
    let mut shard = Shard::new(0);
    assert_eq!(shard.apply(Command::Admin(participant())), Reply::Done);
    assert_eq!(
        shard.ask(olga(), Act::Admin(vec![account()])),
        refused(AdminRefusal::ApprovalNotNeeded)
    );
    let require = |valid_ns| ApprovalCommand::Require { valid_ns };
    assert_eq!(shard.approvals(require(VALID_NS)), Reply::Done);
    // Said again it changes nothing.
    assert_eq!(shard.approvals(require(1)), Reply::Done);
    assert_eq!(shard.ledger.approvals().valid_ns(), Some(VALID_NS));
    for act in [account(), fund("A", 5)] {
        assert_eq!(
            shard.apply(Command::Admin(act)),
            refused(AdminRefusal::NeedsApproval)
        );
    }
    let remove = Command::Nodes(NodeCommand::Remove { member: 1 });
    assert_eq!(shard.apply(remove), refused(AdminRefusal::NeedsApproval));
    // What is not in the table goes on with one.
    let day = AdminCommand::OpenDay {
        date: crate::BusinessDate::parse(b"2026-11-30").unwrap(),
    };
    assert_eq!(shard.apply(Command::Admin(day)), Reply::Done);
    assert_eq!(shard.balance(), None);
}

#[test]
fn two_persons_do_what_was_asked_for_and_once() {
    let mut shard = Shard::strict();
    let act = Act::Admin(vec![participant(), account(), fund("A", 250)]);
    let request = shard.asked(olga(), act.clone());
    // Asked again, after an answer was lost, it is the same request.
    assert_eq!(shard.asked(olga(), act.clone()), request);
    assert_eq!(shard.ledger.approvals().requests().count(), 1);
    assert_eq!(shard.balance(), None);
    assert_eq!(shard.approve(request, omar()), Reply::Done);
    assert_eq!(shard.balance(), Some(250));
    assert_eq!(shard.approve(request, omar()), Reply::Done, "said again");
    assert_eq!(shard.balance(), Some(250));
    let third = person("otto", 3);
    assert_eq!(
        shard.approve(request, third),
        refused(AdminRefusal::RequestDecided)
    );
    let kept = shard.ledger.approvals().get(request).unwrap();
    assert_eq!((&kept.act, &kept.by), (&None, &olga()));
    assert!(matches!(&kept.fate, Fate::Approved { by, refused: None, .. } if *by == omar()));
    // The same once more is another request, and what it does is looked at again.
    assert_eq!(
        shard.ask(olga(), act),
        refused(AdminRefusal::ParticipantExists)
    );
}

#[test]
fn one_person_is_not_two() {
    let mut shard = Shard::strict();
    let request = shard.asked(olga(), Act::Admin(vec![participant()]));
    let same = [
        olga(),
        // Another key of the same name, and the same key under another name.
        person("olga", 9),
        person("omar", 1),
    ];
    for by in same {
        assert_eq!(
            shard.approve(request, by),
            refused(AdminRefusal::SamePerson)
        );
    }
    assert_eq!(shard.ledger.directory().iter().count(), 0);
    assert_eq!(shard.approve(request, omar()), Reply::Done);
}

#[test]
fn an_approval_is_of_these_parameters_and_of_today() {
    let mut shard = Shard::strict();
    let request = shard.asked(olga(), Act::Admin(vec![participant()]));
    let other = ApprovalCommand::Approve {
        request,
        digest: 8,
        by: omar(),
    };
    assert_eq!(shard.approvals(other), refused(AdminRefusal::RequestOther));
    assert_eq!(
        shard.approve(request + 1, omar()),
        refused(AdminRefusal::RequestUnknown)
    );
    shard.now_ns += VALID_NS;
    assert_eq!(shard.approve(request, omar()), Reply::Done, "just in time");

    let late = shard.asked(olga(), Act::Admin(vec![account()]));
    shard.now_ns += VALID_NS + 1;
    assert_eq!(
        shard.approve(late, omar()),
        refused(AdminRefusal::RequestStale)
    );
    assert_eq!(shard.balance(), None);
    assert_eq!(shard.ledger.approvals().get(late).unwrap().act, None);
}

#[test]
fn what_changed_meanwhile_is_looked_at_when_it_is_approved() {
    let mut shard = Shard::strict();
    let all = Act::Admin(vec![participant(), account()]);
    let first = shard.asked(olga(), all.clone());
    let second = shard.asked(omar(), all);
    assert_eq!(shard.approve(second, olga()), Reply::Done);
    assert_eq!(
        shard.approve(first, omar()),
        refused(AdminRefusal::ParticipantExists)
    );
    // It is over: what was refused is not approved a second time.
    assert_eq!(
        shard.approve(first, person("otto", 3)),
        refused(AdminRefusal::RequestDecided)
    );
    // The first that is refused is the last.
    let act = Act::Admin(vec![fund("A", 1), fund("A", 2), fund("B", 4)]);
    let request = shard.asked(olga(), act);
    assert_eq!(
        shard.approve(request, omar()),
        refused(AdminRefusal::ReferenceUsed)
    );
    assert_eq!(shard.balance(), Some(1));
    let kept = shard.ledger.approvals().get(request).unwrap();
    let at = matches!(
        &kept.fate,
        Fate::Approved {
            refused: Some((1, _)),
            ..
        }
    );
    assert!(at, "{kept:?}");
}

#[test]
fn a_request_ends_without_the_act() {
    let mut shard = Shard::strict();
    let request = shard.asked(olga(), Act::Admin(vec![participant()]));
    let withdraw = |request, by| ApprovalCommand::Withdraw { request, by };
    assert_eq!(shard.approvals(withdraw(request, omar())), Reply::Done);
    assert_eq!(shard.approvals(withdraw(request, olga())), Reply::Done);
    assert_eq!(
        shard.approve(request, omar()),
        refused(AdminRefusal::RequestDecided)
    );
    let unknown = withdraw(request + 50, omar());
    assert_eq!(
        shard.approvals(unknown),
        refused(AdminRefusal::RequestUnknown)
    );
    let request = shard.asked(olga(), Act::Admin(vec![participant()]));
    assert_eq!(shard.approve(request, omar()), Reply::Done);
    assert_eq!(
        shard.approvals(withdraw(request, olga())),
        refused(AdminRefusal::RequestDecided)
    );
}

#[test]
fn nodes_come_and_go_by_two_persons() {
    let mut shard = Shard::strict();
    let node = |member: u64| NodeRecord {
        member,
        id: u128::from(member),
        name: format!("N{member}"),
        site: "A".to_owned(),
        peer: format!("n{member}:1"),
        client: format!("n{member}:2"),
        ..NodeRecord::default()
    };
    let found = NodeCommand::Found {
        nodes: vec![node(1), node(2)],
    };
    assert_eq!(shard.apply(Command::Nodes(found)), Reply::Done);
    let request = shard.asked(olga(), Act::Nodes(NodeCommand::Add { node: node(3) }));
    assert_eq!(shard.ledger.nodes().present().count(), 2);
    assert_eq!(shard.approve(request, omar()), Reply::Done);
    assert_eq!(shard.ledger.nodes().present().count(), 3);
    let remove = |member| Act::Nodes(NodeCommand::Remove { member });
    assert_eq!(
        shard.ask(olga(), remove(9)),
        refused(AdminRefusal::NodeUnknown),
        "said when it is asked for"
    );
    let drain = NodeCommand::Drain {
        member: 1,
        draining: true,
    };
    // One person may do it, so two are not asked.
    assert_eq!(
        shard.ask(olga(), Act::Nodes(drain.clone())),
        refused(AdminRefusal::RequestInvalid)
    );
    assert_eq!(shard.apply(Command::Nodes(drain)), Reply::Done);
}

#[test]
fn requests_are_bounded_and_what_is_no_request_is_refused() {
    let mut shard = Shard::strict();
    for bad in [
        Act::Admin(Vec::new()),
        Act::Admin(vec![AdminCommand::CloseDay]),
        Act::Admin(vec![fund("A", 1); ACT_COMMANDS_MAX + 1]),
    ] {
        assert_eq!(
            shard.ask(olga(), bad),
            refused(AdminRefusal::RequestInvalid)
        );
    }
    let nobody = [String::new(), "x".repeat(PERSON_MAX_BYTES + 1)];
    for name in nobody {
        assert_eq!(
            shard.ask(person(&name, 1), Act::Admin(vec![participant()])),
            refused(AdminRefusal::RequestInvalid)
        );
    }
    let many = |count: usize| Act::Admin(vec![participant(); count]);
    for count in 1..=PENDING_MAX {
        shard.asked(olga(), many(count));
    }
    assert_eq!(
        shard.ask(olga(), many(PENDING_MAX + 1)),
        refused(AdminRefusal::RequestsFull)
    );
    // Stale ones make room, and of the decided only the last are told.
    for round in 0..=(DECIDED_MAX / PENDING_MAX) {
        shard.now_ns += VALID_NS + 1;
        for count in 1..=PENDING_MAX {
            shard.asked(omar(), many(count + round));
        }
    }
    let kept = shard.ledger.approvals().requests().count();
    assert_eq!(kept, DECIDED_MAX + PENDING_MAX);
}

#[test]
fn only_shard_0_keeps_requests() {
    let mut shard = Shard::new(1);
    let require = ApprovalCommand::Require { valid_ns: VALID_NS };
    assert_eq!(
        shard.approvals(require),
        refused(AdminRefusal::NotCoordinator)
    );
}
