//! One value of everything that an entry can hold, and a small history of two shards.

use bytes::Bytes;
use clearspan_codec::package;
use clearspan_ledger::approvals::{Act, ApprovalCommand, Person};
use clearspan_ledger::directory::{AccountTerms, NetUnit, ParticipantTerms};
use clearspan_ledger::entry::{
    AdminCommand, Available, ChannelMessage, Command, CreditAdvice, CycleCommand, Drop, Entry,
    Flow, Genesis, Incoming, NetResult, RecallNotice, ReturnClaim, Verdict,
};
use clearspan_ledger::message::{
    Class, MessageKind, OriginalPayment, PaymentRecord, Settlement, SettlementTimes, Submission,
};
use clearspan_ledger::nodes::{NodeCommand, NodeRecord, NodeState};
use clearspan_ledger::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, Ledger, LogIndex, MessageNo,
    ParticipantId, PaymentId, PaymentNo, PaymentRef, Reason, ReasonSet, ShardId, Text, Timestamp,
};

pub(crate) const TIME: Timestamp = Timestamp::from_ns(1_796_025_600_000_000_000);
const EUR: &str = "EUR";
const ALFA: &str = "ALFADEFFXXX";
const BRAV: &str = "BRAVFRPPXXX";

fn bic(code: &str) -> Bic {
    Bic::parse(code.as_bytes()).expect("a BIC")
}

fn currency(code: &str) -> Currency {
    Currency::parse(code.as_bytes()).expect("a currency")
}

fn amount(minor: u64) -> AmountMinor {
    AmountMinor::new(minor).expect("an amount")
}

fn text(text: &str) -> Text {
    Text::new(text).expect("short")
}

fn date() -> BusinessDate {
    BusinessDate::from_ymd(2026, 11, 30).expect("a date")
}

fn at(seconds: u64) -> Timestamp {
    TIME.plus_ns(seconds * 1_000_000_000)
}

pub(crate) fn genesis(shard: u16) -> Genesis {
    Genesis {
        cluster: 0x0102_0304_0506_0708_090A_0B0C_0D0E_0F10,
        shard: ShardId::new(shard),
        shards: 2,
        hash_seed: 0x1112_1314_1516_1718_191A_1B1C_1D1E_1F20,
        retention_days: 5,
        amount_max: AmountMinor::MAX,
        page_len_payments: 1000,
        gap_timeout_ns: 300_000_000_000,
    }
}

fn payment(key: &str, receiver: &str, minor: u64) -> PaymentRecord {
    PaymentRecord {
        id: PaymentId::of_transaction(key),
        content_digest: 0x2122_2324_2526_2728 ^ minor,
        amount: amount(minor),
        currency: currency(EUR),
        receiver: Some(bic(receiver)),
        date: Some(date()),
        faults: ReasonSet::EMPTY,
        body_offset: 100,
        body_len: 800,
    }
}

fn message(
    sender: &str,
    id: &str,
    settlement: Settlement,
    payments: Vec<PaymentRecord>,
) -> Submission {
    Submission {
        kind: MessageKind::CustomerTransfer,
        version: 8,
        sender: bic(sender),
        message_id: text(id),
        digest: 0x3132_3334_3536_3738_393A_3B3C_3D3E_3F40 ^ id.len() as u128,
        sequence: None,
        settlement,
        faults: ReasonSet::EMPTY,
        payments,
        times: Vec::new(),
        originals: Vec::new(),
        heap: clearspan_codec::heap::pack(b"heap"),
    }
}

fn package() -> Submission {
    let uetr = PaymentId::parse_uetr(b"8a562c67-ca16-48ba-b074-65581be6f001").expect("a UETR");
    Submission {
        sequence: Some(7),
        ..message(
            ALFA,
            "ALFA-20261130-7",
            Settlement::Net,
            vec![
                PaymentRecord {
                    id: uetr,
                    ..payment("", BRAV, 12_345)
                },
                // Everything unreadable.
                PaymentRecord {
                    currency: Currency::NONE,
                    receiver: None,
                    date: None,
                    faults: ReasonSet::from(Reason::CurrencyInvalid)
                        .union(Reason::ReceiverInvalid.into())
                        .union(Reason::DateInvalid.into()),
                    ..payment("TX-2", BRAV, 0)
                },
            ],
        )
    }
}

fn urgent() -> Submission {
    let times = SettlementTimes {
        earliest: Some(at(60)),
        latest: None,
        reject: Some(at(3600)),
    };
    Submission {
        kind: MessageKind::CoverTransfer,
        times: vec![(0, times)],
        ..message(
            ALFA,
            "ALFA-U1",
            Settlement::Gross {
                class: Class::Urgent,
                settle_or_refuse: true,
            },
            vec![payment("U-1", BRAV, 1_000_000)],
        )
    }
}

fn return_of(original: &str, minor: u64) -> Submission {
    let id = PaymentId::of_transaction(original);
    Submission {
        kind: MessageKind::Return,
        version: 9,
        originals: vec![(
            0,
            OriginalPayment {
                id,
                reason: *b"AC04",
            },
        )],
        ..message(
            BRAV,
            "BRAV-R1",
            Settlement::Gross {
                class: Class::High,
                settle_or_refuse: false,
            },
            vec![payment("R-1", ALFA, minor)],
        )
    }
}

fn cancellation() -> Submission {
    let id = PaymentId::of_transaction("U-1");
    Submission {
        kind: MessageKind::Cancellation,
        originals: vec![(
            0,
            OriginalPayment {
                id,
                reason: *b"DUPL",
            },
        )],
        ..message(
            ALFA,
            "ALFA-C1",
            Settlement::Net,
            vec![payment("U-1", BRAV, 0)],
        )
    }
}

fn refused() -> Submission {
    Submission {
        faults: ReasonSet::from(Reason::ControlSumMismatch).union(Reason::CountMismatch.into()),
        heap: Bytes::new(),
        ..message(ALFA, "ALFA-F1", Settlement::Net, Vec::new())
    }
}

fn person(name: &str) -> Person {
    Person {
        name: name.to_owned(),
        key: 0xB0B0,
    }
}

pub(crate) fn node(number: u64) -> NodeRecord {
    NodeRecord {
        member: number,
        id: 0xA0 + u128::from(number),
        name: format!("A{number}"),
        site: "A".to_owned(),
        witness: number == 2,
        peer: format!("10.0.0.{number}:7101"),
        client: format!("10.0.0.{number}:7201"),
        http: (number == 1).then(|| "10.0.0.1:7301".to_owned()),
        state: NodeState::Active,
        replaces: (number == 2).then_some(1),
    }
}

/// Every command, and every message between shards inside the command that delivers it.
pub(crate) fn commands() -> Vec<(String, Command)> {
    let alfa = ParticipantTerms {
        bic: bic(ALFA),
        name: "Alfa Bank".to_owned(),
        home: ShardId::new(1),
        numbers_messages: true,
        refuse_whole: false,
        net_unit: NetUnit::Package,
    };
    let account = AccountTerms {
        bic: bic(ALFA),
        currency: currency(EUR),
        credit_line: amount(25_000_000),
    };
    let fund = AdminCommand::Fund {
        reference: text("OPENING-ALFADEFFXXX-EUR"),
        bic: bic(ALFA),
        currency: currency(EUR),
        amount: amount(100_000_000),
    };
    let mut commands = vec![
        ("genesis", Command::Genesis(genesis(1))),
        (
            "admin-add-participant",
            Command::Admin(AdminCommand::AddParticipant(alfa.clone())),
        ),
        (
            "admin-open-account",
            Command::Admin(AdminCommand::OpenAccount(account)),
        ),
        ("admin-fund", Command::Admin(fund)),
        (
            "admin-open-day",
            Command::Admin(AdminCommand::OpenDay { date: date() }),
        ),
        (
            "admin-cut-off",
            Command::Admin(AdminCommand::CutOff {
                kind: MessageKind::Return,
            }),
        ),
        ("admin-close-day", Command::Admin(AdminCommand::CloseDay)),
        (
            "nodes-found",
            Command::Nodes(NodeCommand::Found {
                nodes: vec![node(1)],
            }),
        ),
        (
            "nodes-add",
            Command::Nodes(NodeCommand::Add { node: node(2) }),
        ),
        (
            "nodes-remove",
            Command::Nodes(NodeCommand::Remove { member: 2 }),
        ),
        (
            "nodes-drain",
            Command::Nodes(NodeCommand::Drain {
                member: 1,
                draining: true,
            }),
        ),
        (
            "nodes-move-leader",
            Command::Nodes(NodeCommand::MoveLeader {
                shard: ShardId::new(1),
                member: Some(1),
            }),
        ),
        (
            "approvals-require",
            Command::Approvals(ApprovalCommand::Require {
                valid_ns: 3_600_000_000_000,
            }),
        ),
        (
            "approvals-ask-admin",
            Command::Approvals(ApprovalCommand::Ask {
                by: person("olga"),
                act: Act::Admin(vec![
                    AdminCommand::Fund {
                        reference: text("TOP-UP-1"),
                        bic: bic(ALFA),
                        currency: currency(EUR),
                        amount: amount(5),
                    },
                    AdminCommand::AddParticipant(alfa.clone()),
                    AdminCommand::OpenAccount(account),
                ]),
                digest: 0x3fa9_c2d1_e0b4_4a5c,
            }),
        ),
        (
            "approvals-ask-nodes",
            Command::Approvals(ApprovalCommand::Ask {
                by: person("olga"),
                act: Act::Nodes(NodeCommand::Remove { member: 2 }),
                digest: 1,
            }),
        ),
        (
            "approvals-approve",
            Command::Approvals(ApprovalCommand::Approve {
                request: 812,
                digest: 0x3fa9_c2d1_e0b4_4a5c,
                by: person("omar"),
            }),
        ),
        (
            "approvals-withdraw",
            Command::Approvals(ApprovalCommand::Withdraw {
                request: 812,
                by: person("omar"),
            }),
        ),
        ("cycle-open", Command::Cycle(CycleCommand::Open)),
        ("cycle-abandon", Command::Cycle(CycleCommand::Abandon)),
        ("submit-package", Command::Submit(package())),
        ("submit-urgent", Command::Submit(urgent())),
        ("submit-return", Command::Submit(return_of("U-1", 400))),
        ("submit-cancellation", Command::Submit(cancellation())),
        ("submit-refused-whole", Command::Submit(refused())),
        (
            "skip-sequence",
            Command::SkipSequence {
                bic: bic(ALFA),
                next: 9,
            },
        ),
        (
            "acknowledge-receipts",
            Command::AcknowledgeReceipts {
                bic: bic(ALFA),
                through: 42,
            },
        ),
        (
            "delivered",
            Command::Delivered {
                to: ShardId::new(1),
                through: 17,
            },
        ),
        ("tick", Command::Tick),
    ]
    .into_iter()
    .map(|(name, command)| (name.to_owned(), command))
    .collect::<Vec<_>>();
    for (name, message) in channel_messages(alfa) {
        let command = Command::Deliver {
            from: ShardId::new(1),
            first: 18,
            messages: vec![message],
        };
        commands.push((format!("deliver-{name}"), command));
    }
    commands
}

fn channel_messages(alfa: ParticipantTerms) -> Vec<(&'static str, ChannelMessage)> {
    let (cycle, participant, currency) =
        (CycleNumber::new(3), ParticipantId::new(1), currency(EUR));
    let payment = PaymentRef {
        shard: ShardId::new(1),
        payment: PaymentNo::new(77),
    };
    let incoming = vec![Incoming {
        participant,
        currency,
        minor: 1 << 70,
        count: 3,
    }];
    let advice = CreditAdvice {
        payment,
        message: MessageNo::new(5),
        sender: participant,
        receiver: ParticipantId::new(2),
        currency,
        amount: amount(400),
    };
    let flow = Flow {
        participant,
        currency,
        out_minor: 23,
        out_count: 2,
        in_minor: 8,
        in_count: 1,
    };
    let drop = Drop {
        round: 1,
        participant,
        currency,
        available_minor: -2,
        in_minor: 8,
        out_minor: 15,
        count: 1,
        minor: 5,
    };
    let result = NetResult {
        participant,
        currency,
        opening_minor: 2,
        out_minor: 10,
        out_count: 1,
        in_minor: 8,
        in_count: 1,
        closing_minor: 0,
        credit_line: AmountMinor::ZERO,
        dropped_count: 1,
        dropped_minor: 5,
    };
    let claim = ChannelMessage::ReturnClaim(ReturnClaim {
        claim: PaymentNo::new(9),
        returner: participant,
        original_sender: ParticipantId::new(2),
        original: PaymentId::of_transaction("U-1"),
        amount: amount(400),
        currency,
    });
    let recall = RecallNotice {
        original: payment,
        sender: participant,
        receiver: ParticipantId::new(2),
        request: MessageNo::new(6),
        position: 0,
    };
    let available = vec![Available {
        participant,
        currency,
        minor: -2,
    }];
    vec![
        (
            "admin",
            ChannelMessage::Admin(AdminCommand::AddParticipant(alfa)),
        ),
        ("credit", ChannelMessage::Credit(advice)),
        ("cut", ChannelMessage::Cut { cycle }),
        (
            "cut-sums",
            ChannelMessage::CutSums {
                cycle,
                cut: LogIndex::new(10),
                sums: vec![flow],
            },
        ),
        (
            "reserve",
            ChannelMessage::Reserve {
                cycle,
                round: 1,
                incoming: incoming.clone(),
            },
        ),
        (
            "reserved",
            ChannelMessage::Reserved {
                cycle,
                round: 1,
                available,
                drops: vec![drop],
                reductions: incoming.clone(),
            },
        ),
        (
            "decide",
            ChannelMessage::Decide {
                cycle,
                decided: LogIndex::new(15),
            },
        ),
        (
            "posted",
            ChannelMessage::Posted {
                cycle,
                posted: LogIndex::new(16),
                results: vec![result],
            },
        ),
        (
            "end",
            ChannelMessage::End {
                cycle,
                abandoned: true,
            },
        ),
        (
            "cycle-credits",
            ChannelMessage::CycleCredits {
                cycle,
                credits: incoming,
            },
        ),
        ("return-claim", claim),
        (
            "return-verdict-granted",
            ChannelMessage::ReturnVerdict {
                claim: PaymentNo::new(9),
                verdict: Verdict::Granted { original: payment },
            },
        ),
        (
            "return-verdict-refused",
            ChannelMessage::ReturnVerdict {
                claim: PaymentNo::new(9),
                verdict: Verdict::Refused {
                    reason: Reason::ReturnExceeds,
                },
            },
        ),
        (
            "return-released",
            ChannelMessage::ReturnReleased {
                original: payment,
                amount: amount(400),
            },
        ),
        ("recall", ChannelMessage::Recall(recall)),
        ("day-end", ChannelMessage::DayEnd { date: date() }),
        ("day-closed", ChannelMessage::DayClosed { date: date() }),
    ]
}

/// Two shards; every entry goes through its bytes, as it would through a log.
pub(crate) struct Shards {
    pub(crate) ledgers: [Ledger; 2],
    seconds: u64,
}

impl Shards {
    fn apply(&mut self, shard: u16, command: &Command) {
        self.seconds += 1;
        let bytes = clearspan_codec::entry::encode(at(self.seconds), command);
        let (time, command) = clearspan_codec::entry::decode(bytes).expect("an entry");
        let ledger = &mut self.ledgers[usize::from(shard)];
        let index = ledger.position().0.next();
        ledger.apply(&Entry {
            index,
            time,
            command,
        });
    }

    fn admin(&mut self, command: AdminCommand) {
        self.apply(0, &Command::Admin(command));
        self.pump();
    }

    /// Delivers one message of one channel; whether there was one.
    fn deliver_one(&mut self) -> bool {
        for from in 0..2 {
            for to in 0..2 {
                let (sender, receiver) = (ShardId::new(from), ShardId::new(to));
                let next = self.ledgers[usize::from(to)].inbound_next(sender);
                if self.ledgers[usize::from(from)].outbound_range(receiver).1 > next {
                    let (first, messages) =
                        self.ledgers[usize::from(from)].outbound(receiver, next, 1);
                    self.apply(
                        to,
                        &Command::Deliver {
                            from: sender,
                            first,
                            messages,
                        },
                    );
                    self.apply(
                        from,
                        &Command::Delivered {
                            to: receiver,
                            through: next,
                        },
                    );
                    return true;
                }
            }
        }
        false
    }

    fn pump(&mut self) {
        while self.deliver_one() {}
    }

    fn submit(&mut self, shard: u16, submission: Submission) {
        self.apply(shard, &Command::Submit(submission));
    }

    /// Two banks with a netting package each, a settled and a queued urgent payment, a message that waits for its turn,
    /// and a cycle that has begun: nothing of the state's parts is empty that could be full.
    pub(crate) fn at_midday() -> Self {
        let mut shards = Self {
            ledgers: [Ledger::new(), Ledger::new()],
            seconds: 0,
        };
        for shard in 0..2 {
            shards.apply(shard, &Command::Genesis(genesis(shard)));
        }
        for (at, (code, numbers)) in (0_u16..).zip([(ALFA, false), (BRAV, true)]) {
            shards.admin(AdminCommand::AddParticipant(ParticipantTerms {
                bic: bic(code),
                name: code.to_owned(),
                home: ShardId::new(at),
                numbers_messages: numbers,
                refuse_whole: false,
                net_unit: NetUnit::Payment,
            }));
            shards.admin(AdminCommand::OpenAccount(AccountTerms {
                bic: bic(code),
                currency: currency(EUR),
                credit_line: amount(50),
            }));
            shards.admin(AdminCommand::Fund {
                reference: text(code),
                bic: bic(code),
                currency: currency(EUR),
                amount: amount(1000),
            });
        }
        shards.admin(AdminCommand::OpenDay { date: date() });
        let gross = Settlement::Gross {
            class: Class::Urgent,
            settle_or_refuse: false,
        };
        shards.submit(
            0,
            message(ALFA, "A-1", gross, vec![payment("A-1", BRAV, 600)]),
        );
        let later = SettlementTimes {
            reject: Some(at(100_000)),
            ..SettlementTimes::default()
        };
        shards.submit(
            0,
            Submission {
                times: vec![(0, later)],
                ..message(ALFA, "A-2", gross, vec![payment("A-2", BRAV, 900)])
            },
        );
        let bad = PaymentRecord {
            faults: Reason::AmountInvalid.into(),
            ..payment("A-3.2", BRAV, 0)
        };
        shards.submit(
            0,
            message(
                ALFA,
                "A-3",
                Settlement::Net,
                vec![payment("A-3.1", BRAV, 70), bad],
            ),
        );
        shards.submit(0, refused());
        let net = |number: u64, minor| Submission {
            sequence: Some(number),
            ..message(
                BRAV,
                &format!("B-{number}"),
                Settlement::Net,
                vec![payment(&format!("B-{number}"), ALFA, minor)],
            )
        };
        shards.submit(1, net(1, 30));
        shards.submit(1, net(3, 40));
        shards.pump();
        shards.apply(0, &Command::Cycle(CycleCommand::Open));
        // Far enough for both shards to have their sets, not for a decision.
        for _ in 0..3 {
            shards.deliver_one();
        }
        shards
    }

    /// The same after the cycle, a return, a recall, and the day's end.
    pub(crate) fn at_the_end() -> Self {
        let mut shards = Self::at_midday();
        shards.pump();
        let returned = Submission {
            sequence: Some(2),
            ..return_of("A-1", 100)
        };
        shards.submit(1, returned);
        shards.pump();
        shards.submit(
            0,
            Submission {
                payments: vec![payment("A-1", BRAV, 0)],
                originals: vec![(
                    0,
                    OriginalPayment {
                        id: PaymentId::of_transaction("A-1"),
                        reason: *b"TECH",
                    },
                )],
                ..cancellation()
            },
        );
        shards.pump();
        shards.admin(AdminCommand::CloseDay);
        shards
    }
}

/// One compact package of each kind, net with text and gross without.
pub(crate) fn packages() -> Vec<(&'static str, Vec<u8>)> {
    let head = package::Head {
        kind: MessageKind::CustomerTransfer,
        sender: bic(ALFA),
        message_id: text("ALFA-20261130-1"),
        settlement: Settlement::Net,
        currency: currency(EUR),
        date: date(),
    };
    let uetr = |text: &str| PaymentId::parse_uetr(text.as_bytes()).expect("a UETR");
    let fields = b"\x02\x05\x00E2E-1\x09\x03\x00abc";
    let first = package::Payment {
        id: uetr("8a562c67-ca16-48ba-b074-65581be6f001"),
        receiver: bic(BRAV),
        amount: amount(12_345),
        fields,
    };
    let second = package::Payment {
        id: uetr("8a562c67-ca16-48ba-b074-65581be6f002"),
        amount: amount(1),
        fields: b"",
        ..first
    };
    let gross = package::Head {
        kind: MessageKind::BankTransfer,
        message_id: text("ALFA-20261130-2"),
        settlement: Settlement::Gross {
            class: Class::High,
            settle_or_refuse: true,
        },
        ..head
    };
    vec![
        ("customer", package::encode(&head, &[first, second])),
        ("bank-gross", package::encode(&gross, &[second])),
        ("empty", package::encode(&head, &[])),
    ]
}
