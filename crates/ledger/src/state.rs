//! The whole state of one shard, and the few movements that every command is made of.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::account::Account;
use crate::approvals::Approvals;
use crate::coordinator::Coordinator;
use crate::day::{DayBook, MessageRecord, PaymentStatus, Slot};
use crate::digest::Digest;
use crate::directory::{AccountPlace, Directory};
use crate::entry::{ChannelMessage, CreditAdvice, Genesis};
use crate::layout::layout;
use crate::member::{CycleRecord, MemberCycle};
use crate::message::{Class, MessageKind, SettlementTimes, Submission};
use crate::nodes::NodeDirectory;
use crate::stream::{ItemBody, Stream};
use crate::{
    AmountMinor, BusinessDate, Currency, CycleNumber, LogIndex, MessageNo, ParticipantId,
    PaymentNo, PaymentRef, Reason, ShardId, Timestamp,
};

/// One shard's state machine. See [`Ledger::apply`](Ledger::apply).
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(crate) genesis: Option<Genesis>,
    pub(crate) index: LogIndex,
    pub(crate) now: Timestamp,
    pub(crate) digest: Digest,
    pub(crate) directory: Directory,
    pub(crate) accounts: Vec<Account>,
    pub(crate) members: BTreeMap<ParticipantId, Member>,
    /// Retained business days, the last one open or just closed.
    pub(crate) days: VecDeque<DayBook>,
    pub(crate) day: DayState,
    /// Shards whose end of day came before the coordinator's word to this one.
    pub(crate) early_ends: BTreeSet<ShardId>,
    pub(crate) next_payment: PaymentNo,
    pub(crate) next_message: MessageNo,
    /// Gross payments that wait, and returns whose claim is granted.
    pub(crate) waiting: BTreeMap<PaymentNo, Waiting>,
    pub(crate) timers: BTreeSet<(Timestamp, Timer, PaymentNo)>,
    pub(crate) gap_timers: BTreeSet<(Timestamp, ParticipantId)>,
    /// Granted originals of returns that have not settled yet.
    pub(crate) claims: BTreeMap<PaymentNo, PaymentRef>,
    /// How much of a settled payment was returned or claimed.
    pub(crate) returned: BTreeMap<PaymentNo, AmountMinor>,
    pub(crate) cancellations: BTreeMap<MessageNo, Vec<CancelAnswer>>,
    pub(crate) inbound: Vec<u64>,
    pub(crate) outbound: Vec<Outbound>,
    /// By currency place.
    pub(crate) totals: Vec<Totals>,
    /// The last cycle that was cut here, whatever became of it.
    pub(crate) last_cut: CycleNumber,
    pub(crate) running: Option<MemberCycle>,
    pub(crate) cycles: BTreeMap<CycleNumber, CycleRecord>,
    pub(crate) coordinator: Coordinator,
    /// Held messages that the entry at hand has taken in; empty between entries, so no part of the layout.
    pub(crate) released: Vec<(MessageNo, Submission)>,
    /// The cluster's nodes; a snapshot holds it beside this layout, which is that of snapshots without it.
    pub(crate) nodes: NodeDirectory,
    /// Acts that take two persons; beside this layout as well.
    pub(crate) approvals: Approvals,
}

layout!(struct Ledger {
    genesis, index, now, digest, directory, accounts, members, days, day, early_ends, next_payment, next_message, waiting, timers,
    gap_timers, claims, returned, cancellations, inbound, outbound, totals, last_cut, running, cycles, coordinator; released, nodes, approvals
});

/// What the home shard keeps of a participant besides accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) stream: Stream,
    /// The next number of its sequence; zero where it does not number its messages.
    pub(crate) next_sequence: u64,
    /// Messages that came before their turn.
    pub(crate) held: BTreeMap<u64, Submission>,
    pub(crate) held_bytes: u64,
}

layout!(struct Member { stream, next_sequence, held, held_bytes });

/// The most messages a participant may have waiting for a hole in its numbering to be filled: a day's worth of reordering
/// over several sites is far below.
pub const HELD_MAX_MESSAGES: usize = 256;
/// The most bytes these may take.
pub const HELD_MAX_BYTES: u64 = 64 << 20;

/// Where the business day stands in this shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DayState {
    /// None is open.
    #[default]
    Closed,
    /// Messages are taken in.
    Open {
        /// Kinds whose cut-off has passed.
        cut_off: BTreeSet<MessageKind>,
    },
    /// Ended here; credits of other shards may still come.
    Closing {
        /// Shards that said that no more credits of this day follow.
        ended: BTreeSet<ShardId>,
    },
}

layout!(enum DayState { 0 => Closed, 1 => Open { cut_off }, 2 => Closing { ended } });

/// A gross payment that has not settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) account: u32,
    pub(crate) class: Class,
    pub(crate) settle_or_refuse: bool,
    pub(crate) times: SettlementTimes,
    /// Whether it stands in the account's queue; not while it waits for its earliest time or for a claim.
    pub(crate) queued: bool,
}

layout!(struct Waiting { account, class, settle_or_refuse, times, queued });

/// What happens to a waiting payment at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    Earliest,
    Latest,
    Reject,
}

layout!(enum Timer { 0 => Earliest, 1 => Latest, 2 => Reject });

/// The answer to one request of a camt.056.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CancelAnswer {
    /// The payment, where one was found.
    pub payment: Option<PaymentNo>,
    /// What became of the request.
    pub outcome: CancelOutcome,
    /// The request's own reason code.
    pub request_reason: [u8; 4],
}

layout!(struct CancelAnswer { payment, outcome, request_reason });

/// What became of a request to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The payment waited and is cancelled.
    Cancelled,
    /// The payment is final; its receiver was asked to send it back.
    Recalled,
    /// Not cancelled.
    Refused {
        /// Why.
        reason: Reason,
    },
}

layout!(enum CancelOutcome { 0 => Cancelled, 1 => Recalled, 2 => Refused { reason } });

/// A numbered stream of messages to another shard (or to this one).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outbound {
    /// Number of the first message kept; they count from 1.
    pub(crate) first: u64,
    pub(crate) messages: VecDeque<ChannelMessage>,
}

layout!(struct Outbound { first, messages });

/// One currency's money in this shard. `balances = issued + received - sent + netted` at every index (promise P10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sum of all balances.
    pub balances_minor: i128,
    /// Central-bank money put on accounts here.
    pub issued_minor: i128,
    /// Credits sent to other shards, ever.
    pub sent_minor: i128,
    /// Credits received from other shards, ever.
    pub received_minor: i128,
    /// Net of this shard's participants over all settled cycles; zero over all shards.
    pub netted_minor: i128,
}

layout!(struct Totals { balances_minor, issued_minor, sent_minor, received_minor, netted_minor });

impl Ledger {
    pub(crate) fn shard(&self) -> ShardId {
        self.genesis
            .as_ref()
            .map_or(ShardId::new(0), |genesis| genesis.shard)
    }

    /// The book of the open (or just closed) business day.
    pub(crate) fn book(&self) -> Option<&DayBook> {
        self.days.back()
    }

    /// The book that holds a payment.
    pub(crate) fn book_of(&self, payment: PaymentNo) -> Option<&DayBook> {
        self.days
            .iter()
            .rev()
            .find(|book| book.first_payment <= payment && payment < book.end_payment())
    }

    pub(crate) fn book_of_mut(&mut self, payment: PaymentNo) -> Option<&mut DayBook> {
        self.days
            .iter_mut()
            .rev()
            .find(|book| book.first_payment <= payment && payment < book.end_payment())
    }

    pub(crate) fn message_record(&self, message: MessageNo) -> Option<&MessageRecord> {
        self.days
            .iter()
            .rev()
            .find_map(|book| book.message(message))
    }

    /// A payment that this shard itself has put into one of its structures.
    pub(crate) fn known_slot(&self, payment: PaymentNo) -> &Slot {
        self.book_of(payment)
            .and_then(|book| book.slot(payment))
            .expect("a waiting payment is within retention")
    }

    pub(crate) fn set_status(
        &mut self,
        payment: PaymentNo,
        status: PaymentStatus,
        reason: Option<Reason>,
    ) {
        let cycle = self.last_cut;
        let slot = self
            .book_of_mut(payment)
            .and_then(|book| book.slot_mut(payment))
            .expect("a waiting payment is within retention");
        slot.become_(status, cycle, reason);
        self.digest.fold(
            payment.get() ^ (status as u64) << 56 ^ u64::from(reason.map_or(0, Reason::rank)) << 48,
        );
    }

    /// Moves money on an account of this shard; the counterpart is the caller's.
    pub(crate) fn post(&mut self, account: u32, delta: i128) {
        let account = &mut self.accounts[account as usize];
        account.balance += delta;
        let turnover = if delta < 0 {
            &mut account.day_debits
        } else {
            &mut account.day_credits
        };
        *turnover += delta.unsigned_abs();
        self.totals[usize::from(account.currency_place)].balances_minor += delta;
        // The floor holds at every log position (rule R12); only a debit can break it.
        assert!(
            delta >= 0 || account.balance >= -account.credit_line.signed(),
            "account {}/{} below its floor",
            account.participant,
            account.currency
        );
        // What it has become, not by how much: an account that was wrong before is found out by its next posting.
        let balance = account.balance.cast_unsigned();
        self.digest
            .fold_low(u128::from(account.participant.get()) << 48 ^ balance);
    }

    /// Where an account is, by the currency's code.
    pub(crate) fn place(&self, participant: ParticipantId, currency: Currency) -> AccountPlace {
        self.directory
            .currency_place(currency)
            .map_or(AccountPlace::None, |at| {
                self.directory.account(participant, at)
            })
    }

    /// Appends to a home participant's output and returns the first number.
    pub(crate) fn emit(&mut self, participant: ParticipantId, pages: u32, body: ItemBody) -> u64 {
        let (index, now) = (self.index, self.now);
        let member = self.members.entry(participant).or_default();
        let number = member.stream.push(pages, index, now, body);
        self.digest
            .fold(u64::from(participant.get()) << 40 ^ number ^ u64::from(pages) << 56);
        number
    }

    /// Queues a message for a shard (this one included).
    pub(crate) fn send(&mut self, to: ShardId, message: ChannelMessage) {
        let outbound = &mut self.outbound[to.index()];
        outbound.messages.push_back(message);
        self.digest
            .fold(u64::from(to.get()) << 32 ^ (outbound.first + outbound.messages.len() as u64));
    }

    pub(crate) fn send_all(&mut self, message: &ChannelMessage) {
        for shard in 0..self.shards() {
            self.send(ShardId::new(shard), message.clone());
        }
    }

    pub(crate) fn shards(&self) -> u16 {
        self.genesis.as_ref().map_or(0, |genesis| genesis.shards)
    }

    pub(crate) fn home_of(&self, participant: ParticipantId) -> ShardId {
        self.directory
            .get(participant)
            .map_or(ShardId::new(0), |terms| terms.home)
    }

    /// Credits a gross payment: at once when the receiver's account is here, else through the channel. Returns the
    /// account that now has more funds.
    pub(crate) fn credit(&mut self, advice: CreditAdvice) -> Option<u32> {
        match self.place(advice.receiver, advice.currency) {
            AccountPlace::Home(account) => {
                self.post(account, advice.amount.signed());
                self.emit(advice.receiver, 1, ItemBody::GrossCredit(advice));
                Some(account)
            }
            AccountPlace::Remote => {
                let place = self.accounts_place(advice.currency);
                self.totals[place].sent_minor += advice.amount.signed();
                self.send(
                    self.home_of(advice.receiver),
                    ChannelMessage::Credit(advice),
                );
                None
            }
            AccountPlace::None => {
                unreachable!("a payment is accepted only when its receiver has an account")
            }
        }
    }

    pub(crate) fn accounts_place(&self, currency: Currency) -> usize {
        self.directory
            .currency_place(currency)
            .map(usize::from)
            .expect("an accepted payment's currency is served")
    }

    /// The date of the open or just closed business day.
    pub(crate) fn business_date(&self) -> Option<BusinessDate> {
        self.book().map(|book| book.date)
    }
}
