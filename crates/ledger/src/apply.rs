//! The one door of the state machine.

use crate::directory::AccountPlace;
use crate::entry::{ChannelMessage, Command, Entry, Genesis};
use crate::layout::layout;
use crate::message::Submission;
use crate::state::{DayState, Ledger, Outbound};
use crate::stream::ItemBody;
use crate::{Bic, LogIndex, MessageNo, Reason, ShardId};

/// What an entry brought about, for whoever proposed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The entry.
    pub index: LogIndex,
    /// The answer.
    pub reply: Reply,
    /// Messages that waited for a missing number and were taken in by this entry: their packages are to be stored now.
    pub released: Vec<(MessageNo, Submission)>,
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Done; there is nothing to say.
    Done,
    /// A message was taken in, which includes one refused with a stored answer.
    Taken {
        /// Its number.
        message: MessageNo,
        /// The output number of the answer.
        answer: u64,
        /// Payments (or requests) accepted.
        accepted: u32,
        /// Payments (or requests) refused.
        refused: u32,
    },
    /// The same message was taken in before: the stored answer stands, nothing changed.
    Repeat {
        /// Its number.
        message: MessageNo,
        /// The output number of the answer.
        answer: u64,
    },
    /// A numbered message came before its turn and waits for those missing.
    Held {
        /// The output number of the notice; zero when it was held before.
        answer: u64,
        /// The first missing number.
        missing_from: u64,
        /// The last missing number.
        missing_through: u64,
    },
    /// Nothing was stored; the sender may correct it or try again.
    NotTaken {
        /// Why.
        reason: Reason,
    },
    /// Nothing was stored: too many messages wait for a missing number already.
    HeldFull {
        /// The first missing number.
        missing_from: u64,
    },
    /// Nothing was stored: the sender's home is another shard.
    NotHome {
        /// That shard.
        home: ShardId,
    },
    /// An operator's act was refused.
    Refused(AdminRefusal),
    /// An act that takes two persons waits for the second.
    Asked {
        /// The request's number.
        request: u64,
    },
}

// What the entry released is for the node that applied it, not for who asked.
layout!(struct Outcome { index, reply; released });
layout!(enum Reply {
    0 => Done, 1 => Taken { message, answer, accepted, refused }, 2 => Repeat { message, answer },
    3 => Held { answer, missing_from, missing_through }, 4 => NotTaken { reason }, 5 => HeldFull { missing_from },
    6 => NotHome { home }, 7 => Refused(refusal), 8 => Asked { request }
});

/// Why an operator's act was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminRefusal {
    /// Only shard 0 takes acts for the whole cluster.
    NotCoordinator,
    /// The cluster has been set up before.
    GenesisTwice,
    /// Genesis names a shard or numbers that make no cluster.
    GenesisInvalid,
    /// No genesis yet.
    NoGenesis,
    /// A participant has this code already.
    ParticipantExists,
    /// There is no such participant.
    ParticipantUnknown,
    /// The home shard does not exist.
    ShardUnknown,
    /// The participant has an account in this currency already.
    AccountExists,
    /// The participant has no account in this currency.
    AccountMissing,
    /// ISO 4217 lists no such currency.
    CurrencyUnknown,
    /// The directory is full, or a name is too long.
    TooMany,
    /// A movement under this reference was made before.
    ReferenceUsed,
    /// A business day is open already.
    DayOpen,
    /// No business day is open.
    DayNotOpen,
    /// The date is not later than that of the last business day.
    DateNotLater,
    /// A cycle is running.
    CycleRunning,
    /// No cycle is running, or it is decided already.
    NoCycle,
    /// The participant does not number its messages, or this number is not ahead.
    SequenceNotAhead,
    /// No node has this number, or it was removed.
    NodeUnknown,
    /// Another node has this name or one of these addresses.
    NodeExists,
    /// A name or address is missing or too long, or a witness shall take a data node's place, or the other way round.
    NodeInvalid,
    /// Nobody would be left to lead.
    LastNode,
    /// The act takes two persons: it is to be asked for and approved by another.
    NeedsApproval,
    /// One person is enough in this cluster.
    ApprovalNotNeeded,
    /// The request names nobody, nothing, too much, or what one person may do.
    RequestInvalid,
    /// No request has this number, or it was decided long ago.
    RequestUnknown,
    /// The request was approved or withdrawn before.
    RequestDecided,
    /// Nobody approved the request in time.
    RequestStale,
    /// Who asked cannot approve: it is the same name or the same key.
    SamePerson,
    /// The request's act is another than the one that was looked at.
    RequestOther,
    /// As many requests wait as may.
    RequestsFull,
}

layout!(enum AdminRefusal {
    0 => NotCoordinator, 1 => GenesisTwice, 2 => GenesisInvalid, 3 => NoGenesis, 4 => ParticipantExists,
    5 => ParticipantUnknown, 6 => ShardUnknown, 7 => AccountExists, 8 => AccountMissing, 9 => CurrencyUnknown,
    10 => TooMany, 11 => ReferenceUsed, 12 => DayOpen, 13 => DayNotOpen, 14 => DateNotLater, 15 => CycleRunning,
    16 => NoCycle, 17 => SequenceNotAhead, 18 => NodeUnknown, 19 => NodeExists, 20 => NodeInvalid, 21 => LastNode,
    22 => NeedsApproval, 23 => ApprovalNotNeeded, 24 => RequestInvalid, 25 => RequestUnknown, 26 => RequestDecided,
    27 => RequestStale, 28 => SamePerson, 29 => RequestOther, 30 => RequestsFull
});

/// The full sums are compared with the running ones this often, in entries.
const FULL_CHECK_INTERVAL_ENTRIES: u64 = 1024;

impl Ledger {
    /// A ledger before its first entry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies the next committed entry. It cannot fail: what is wrong with a command is part of its outcome, the same on
    /// every replica.
    ///
    /// # Panics
    /// When entries are not given in order without a gap, and when money was made or lost or an account fell below its
    /// floor: a replica that might be wrong stops.
    pub fn apply(&mut self, entry: &Entry) -> Outcome {
        assert_eq!(
            entry.index,
            self.index.next(),
            "entries are applied in order, each once"
        );
        self.index = entry.index;
        // Leaders' clocks differ; log time never runs backwards.
        self.now = self.now.max(entry.time);
        self.digest.fold(entry.index.get());
        self.digest.fold(self.now.ns());
        let reply = match &entry.command {
            Command::Genesis(genesis) => self.found(genesis),
            _ if self.genesis.is_none() => Reply::Refused(AdminRefusal::NoGenesis),
            command => {
                self.run_timers();
                self.dispatch(command)
            }
        };
        self.check_conservation();
        if entry
            .index
            .get()
            .is_multiple_of(FULL_CHECK_INTERVAL_ENTRIES)
        {
            self.check_full_sums();
        }
        Outcome {
            index: entry.index,
            reply,
            released: std::mem::take(&mut self.released),
        }
    }

    fn dispatch(&mut self, command: &Command) -> Reply {
        if self.lacks_approval(command) {
            return Reply::Refused(AdminRefusal::NeedsApproval);
        }
        match command {
            Command::Genesis(_) | Command::Tick => Reply::Done,
            Command::Admin(command) => self.admin(command),
            Command::Cycle(command) => self.cycle_command(*command),
            Command::Nodes(command) => self.change_nodes(command),
            Command::Approvals(command) => self.approval_command(command),
            Command::Submit(submission) => self.submit(submission),
            Command::SkipSequence { bic, next } => self.skip_sequence(*bic, *next),
            Command::AcknowledgeReceipts { bic, through } => self.acknowledge(*bic, *through),
            Command::Deliver {
                from,
                first,
                messages,
            } => self.deliver(*from, *first, messages),
            Command::Delivered { to, through } => self.delivered(*to, *through),
        }
    }

    fn found(&mut self, genesis: &Genesis) -> Reply {
        if self.genesis.is_some() {
            return Reply::Refused(AdminRefusal::GenesisTwice);
        }
        if genesis.shards == 0
            || genesis.shard.get() >= genesis.shards
            || genesis.page_len_payments == 0
        {
            return Reply::Refused(AdminRefusal::GenesisInvalid);
        }
        self.inbound = vec![1; usize::from(genesis.shards)];
        self.outbound = vec![
            Outbound {
                first: 1,
                ..Outbound::default()
            };
            usize::from(genesis.shards)
        ];
        self.genesis = Some(genesis.clone());
        Reply::Done
    }

    fn acknowledge(&mut self, bic: Bic, through: u64) -> Reply {
        let Some(participant) = self.directory.find(bic) else {
            return Reply::Refused(AdminRefusal::ParticipantUnknown);
        };
        let home = self.home_of(participant);
        if home != self.shard() {
            return Reply::NotHome { home };
        }
        self.members
            .entry(participant)
            .or_default()
            .stream
            .acknowledge(through);
        self.digest
            .fold(u64::from(participant.get()) << 32 ^ through);
        Reply::Done
    }

    fn deliver(&mut self, from: ShardId, first: u64, messages: &[ChannelMessage]) -> Reply {
        for (at, message) in (0_u64..).zip(messages) {
            let number = first.saturating_add(at);
            let Some(&next) = self.inbound.get(from.index()) else {
                break;
            };
            // What was applied before is ignored; a gap waits to be sent again.
            if number < next {
                continue;
            }
            if number > next || self.comes_too_early(message) {
                break;
            }
            self.inbound[from.index()] = next + 1;
            self.digest.fold(u64::from(from.get()) << 48 ^ number);
            self.receive(from, message);
        }
        Reply::Done
    }

    /// A credit can overtake the coordinator's word about the account that it is for, since that comes by a channel of
    /// its own. Like after a gap, it waits to be sent again.
    fn comes_too_early(&self, message: &ChannelMessage) -> bool {
        match message {
            ChannelMessage::Credit(advice) => !matches!(
                self.place(advice.receiver, advice.currency),
                AccountPlace::Home(_)
            ),
            _ => false,
        }
    }

    fn delivered(&mut self, to: ShardId, through: u64) -> Reply {
        if let Some(outbound) = self.outbound.get_mut(to.index()) {
            // Nobody can have what was never sent: such a word is wrong, and trimming by it would lose what comes next.
            if through >= outbound.first + outbound.messages.len() as u64 {
                return Reply::Done;
            }
            while outbound.first <= through && outbound.messages.pop_front().is_some() {
                outbound.first += 1;
            }
            self.digest.fold(u64::from(to.get()) << 48 ^ outbound.first);
        }
        Reply::Done
    }

    /// Money is neither made nor lost: O(currencies), after every entry, also in release builds (promise P10).
    fn check_conservation(&self) {
        for (totals, currency) in self.totals.iter().zip(self.directory.currencies()) {
            let expected = totals.issued_minor + totals.received_minor - totals.sent_minor
                + totals.netted_minor;
            assert_eq!(
                totals.balances_minor, expected,
                "{currency} is not conserved at index {}",
                self.index
            );
        }
    }

    /// The running sums against the accounts themselves.
    pub(crate) fn check_full_sums(&self) {
        let mut sums = vec![0_i128; self.totals.len()];
        for account in &self.accounts {
            sums[usize::from(account.currency_place)] += account.balance;
            assert!(
                account.balance >= -account.credit_line.signed(),
                "account {}/{} below its floor",
                account.participant,
                account.currency
            );
        }
        for ((sum, totals), currency) in sums
            .into_iter()
            .zip(&self.totals)
            .zip(self.directory.currencies())
        {
            assert_eq!(
                sum, totals.balances_minor,
                "{currency} accounts do not add up at index {}",
                self.index
            );
        }
    }

    /// Opens the account in this shard, or notes that it is in another one.
    pub(crate) fn place_account(&mut self, terms: &crate::directory::AccountTerms) {
        let Some(participant) = self.directory.find(terms.bic) else {
            return;
        };
        let home = self.home_of(participant) == self.shard();
        let number =
            u32::try_from(self.accounts.len()).expect("participants x currencies stay below 2^32");
        let place = if home {
            AccountPlace::Home(number)
        } else {
            AccountPlace::Remote
        };
        self.directory
            .add_account(participant, terms.currency, place);
        self.totals
            .resize_with(self.directory.currencies().len(), Default::default);
        if home {
            let currency_place = self.directory.currency_place(terms.currency).unwrap_or(0);
            self.accounts.push(crate::account::Account::new(
                participant,
                terms.currency,
                currency_place,
                terms.credit_line,
            ));
        }
    }

    /// Puts central-bank money on an account of this shard.
    pub(crate) fn fund(&mut self, command: &crate::entry::AdminCommand) {
        let crate::entry::AdminCommand::Fund {
            reference,
            bic,
            currency,
            amount,
        } = command
        else {
            return;
        };
        let Some(participant) = self.directory.find(*bic) else {
            return;
        };
        let AccountPlace::Home(account) = self.place(participant, *currency) else {
            return;
        };
        let place = self.accounts_place(*currency);
        self.totals[place].issued_minor += amount.signed();
        self.post(account, amount.signed());
        self.emit(
            participant,
            1,
            ItemBody::Funded {
                reference: *reference,
                currency: *currency,
                amount: *amount,
            },
        );
        self.release(vec![account]);
    }

    /// Where the business day stands in this shard.
    #[must_use]
    pub const fn day_state(&self) -> &DayState {
        &self.day
    }
}
