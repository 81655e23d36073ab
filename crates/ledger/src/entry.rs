//! What a journal holds: commands with their position and time, and the messages between shards.

use crate::approvals::ApprovalCommand;
use crate::directory::{AccountTerms, ParticipantTerms};
use crate::layout::layout;
use crate::message::{MessageKind, Submission};
use crate::nodes::NodeCommand;
use crate::{
    AmountMinor, Bic, BusinessDate, Currency, CycleNumber, LogIndex, MessageNo, ParticipantId,
    PaymentId, PaymentNo, PaymentRef, Reason, ShardId, Text, Timestamp,
};

/// A committed command: the only thing that changes a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its position in the shard's journal; the next after the last applied.
    pub index: LogIndex,
    /// The leader's clock when it was proposed; the ledger makes it monotone.
    pub time: Timestamp,
    /// What to do.
    pub command: Command,
}

/// What can be proposed to a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The first entry of each shard: what the cluster agreed on for good.
    Genesis(Genesis),
    /// An operator's act for the whole cluster; the coordinator (shard 0) takes it and tells every shard.
    Admin(AdminCommand),
    /// An operator's or the timetable's act on netting cycles; the coordinator takes it.
    Cycle(CycleCommand),
    /// A participant's message, at its home shard.
    Submit(Submission),
    /// The operator gives up on missing numbers of a participant's sequence, at its home shard (rule R5).
    SkipSequence {
        /// The participant.
        bic: Bic,
        /// The number to go on with.
        next: u64,
    },
    /// A participant has safely stored its output up to a number, at its home shard.
    AcknowledgeReceipts {
        /// The participant.
        bic: Bic,
        /// The highest number it has, with all below.
        through: u64,
    },
    /// Messages of another shard's channel to this one; what was applied before is ignored.
    Deliver {
        /// The sending shard.
        from: ShardId,
        /// The number of the first message.
        first: u64,
        /// The messages, in order.
        messages: Vec<ChannelMessage>,
    },
    /// The receiving shard has committed messages up to a number: the channel is trimmed.
    Delivered {
        /// The receiving shard.
        to: ShardId,
        /// The highest number it has applied.
        through: u64,
    },
    /// Nothing but the passing of time: due settlement times are looked at.
    Tick,
    /// A change of the cluster's nodes; shard 0 takes it.
    Nodes(NodeCommand),
    /// A step towards an act that takes two persons; shard 0 takes it.
    Approvals(ApprovalCommand),
}

layout!(struct Entry { index, time, command });
layout!(enum Command {
    0 => Genesis(genesis),
    1 => Admin(command),
    2 => Cycle(command),
    3 => Submit(submission),
    4 => SkipSequence { bic, next },
    5 => AcknowledgeReceipts { bic, through },
    6 => Deliver { from, first, messages },
    7 => Delivered { to, through },
    8 => Tick,
    9 => Nodes(command),
    10 => Approvals(command),
});

/// What the cluster agreed on for good; equal in all shards but for `shard`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The cluster's random identity.
    pub cluster: u128,
    /// The shard that this journal belongs to.
    pub shard: ShardId,
    /// How many shards there are.
    pub shards: u16,
    /// Secret of the duplicate memory's hash: nobody outside can choose keys that collide.
    pub hash_seed: u128,
    /// For how many business days payments stay known: queries, returns and replay of output reach back so far. Fewer
    /// than two count as two.
    pub retention_days: u16,
    /// The largest amount of one payment, in minor units.
    pub amount_max: AmountMinor,
    /// Credits of one netting cycle per output document.
    pub page_len_payments: u32,
    /// After how long a hole in a participant's numbering is reported again.
    pub gap_timeout_ns: u64,
}

layout!(struct Genesis {
    cluster, shard, shards, hash_seed, retention_days, amount_max, page_len_payments, gap_timeout_ns
});

/// An operator's act for the whole cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminCommand {
    /// Takes up a participant.
    AddParticipant(ParticipantTerms),
    /// Opens a settlement account.
    OpenAccount(AccountTerms),
    /// Central-bank money put on an account: the only way in which the sum of all accounts changes.
    Fund {
        /// Names this movement; a second one under the same reference is not made.
        reference: Text,
        /// The participant.
        bic: Bic,
        /// The currency of the account.
        currency: Currency,
        /// How much.
        amount: AmountMinor,
    },
    /// Opens a business day; its date is later than that of any day before.
    OpenDay {
        /// The business date.
        date: BusinessDate,
    },
    /// The cut-off of a kind of message: later ones are refused for this business day.
    CutOff {
        /// The kind.
        kind: MessageKind,
    },
    /// Ends the business day: what still waits is refused, statements are formed.
    CloseDay,
}

layout!(enum AdminCommand {
    0 => AddParticipant(terms),
    1 => OpenAccount(terms),
    2 => Fund { reference, bic, currency, amount },
    3 => OpenDay { date },
    4 => CutOff { kind },
    5 => CloseDay,
});

/// An act on netting cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleCommand {
    /// A cut-off: starts a cycle over everything received before it.
    Open,
    /// Gives the running cycle up before its decision; it leaves no trace.
    Abandon,
}

layout!(enum CycleCommand { 0 => Open, 1 => Abandon });

/// A message from one shard to another, numbered and delivered exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelMessage {
    /// The coordinator tells an operator's act.
    Admin(AdminCommand),
    /// The credit half of a gross payment; it cannot be refused.
    Credit(CreditAdvice),
    /// Cycle step 2: fix the set.
    Cut {
        /// The cycle.
        cycle: CycleNumber,
    },
    /// A shard's answer to `Cut`: the sums of its set.
    CutSums {
        /// The cycle.
        cycle: CycleNumber,
        /// Where the cut stands in the shard's journal.
        cut: LogIndex,
        /// What its participants pay, and what anybody receives from them.
        sums: Vec<Flow>,
    },
    /// Cycle step 3: reserve what is needed, with the incoming sums as they stand.
    Reserve {
        /// The cycle.
        cycle: CycleNumber,
        /// The round, from 1.
        round: u32,
        /// What the shard's participants would receive.
        incoming: Vec<Incoming>,
    },
    /// A shard's answer to `Reserve`.
    Reserved {
        /// The cycle.
        cycle: CycleNumber,
        /// The round.
        round: u32,
        /// What was available to each participant that pays or receives.
        available: Vec<Available>,
        /// What was dropped for lack of funds.
        drops: Vec<Drop>,
        /// By how much that lowers what others receive.
        reductions: Vec<Incoming>,
    },
    /// Cycle step 4: decided, post it.
    Decide {
        /// The cycle.
        cycle: CycleNumber,
        /// Where the decision stands in the coordinator's journal.
        decided: LogIndex,
    },
    /// A shard has posted.
    Posted {
        /// The cycle.
        cycle: CycleNumber,
        /// Where the posting stands in the shard's journal.
        posted: LogIndex,
        /// The result of each of its participants that paid or received.
        results: Vec<NetResult>,
    },
    /// All shards have posted, or the coordinator has given the cycle up.
    End {
        /// The cycle.
        cycle: CycleNumber,
        /// Whether it was given up before its decision.
        abandoned: bool,
    },
    /// What a shard's payments of a settled cycle bring to participants of the receiving shard, for their receipts.
    CycleCredits {
        /// The cycle.
        cycle: CycleNumber,
        /// By receiver and currency.
        credits: Vec<Incoming>,
    },
    /// A return wants a part of an original payment that the receiving shard took in.
    ReturnClaim(ReturnClaim),
    /// The answer to a claim.
    ReturnVerdict {
        /// The return, in the receiving shard.
        claim: PaymentNo,
        /// The original when granted.
        verdict: Verdict,
    },
    /// A granted return did not settle: its claim is given back.
    ReturnReleased {
        /// The original.
        original: PaymentRef,
        /// How much.
        amount: AmountMinor,
    },
    /// A sender asks the receiver of a settled payment to send it back.
    Recall(RecallNotice),
    /// The sending shard has ended its business day: no further credit of that day follows.
    DayEnd {
        /// The business date.
        date: BusinessDate,
    },
    /// A shard has formed the statements of a business day.
    DayClosed {
        /// The business date.
        date: BusinessDate,
    },
}

layout!(enum ChannelMessage {
    0 => Admin(command),
    1 => Credit(advice),
    2 => Cut { cycle },
    3 => CutSums { cycle, cut, sums },
    4 => Reserve { cycle, round, incoming },
    5 => Reserved { cycle, round, available, drops, reductions },
    6 => Decide { cycle, decided },
    7 => Posted { cycle, posted, results },
    8 => End { cycle, abandoned },
    9 => CycleCredits { cycle, credits },
    10 => ReturnClaim(claim),
    11 => ReturnVerdict { claim, verdict },
    12 => ReturnReleased { original, amount },
    13 => Recall(notice),
    14 => DayEnd { date },
    15 => DayClosed { date },
});

/// The credit half of a gross payment, in transit between two shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditAdvice {
    /// The payment.
    pub payment: PaymentRef,
    /// Its message, in the same shard.
    pub message: MessageNo,
    /// Who paid.
    pub sender: ParticipantId,
    /// Who is credited.
    pub receiver: ParticipantId,
    /// Currency.
    pub currency: Currency,
    /// Amount.
    pub amount: AmountMinor,
}

layout!(struct CreditAdvice { payment, message, sender, receiver, currency, amount });

/// A return's claim to its part of an original, on the way to the shard that took the original in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnClaim {
    /// The return, in the sending shard.
    pub claim: PaymentNo,
    /// Who wants to return it: the original's receiver.
    pub returner: ParticipantId,
    /// The original's sender.
    pub original_sender: ParticipantId,
    /// The original's key.
    pub original: PaymentId,
    /// How much.
    pub amount: AmountMinor,
    /// In which currency.
    pub currency: Currency,
}

layout!(struct ReturnClaim { claim, returner, original_sender, original, amount, currency });

/// The answer to a return's claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Granted on this original.
    Granted {
        /// The original.
        original: PaymentRef,
    },
    /// Refused.
    Refused {
        /// Why.
        reason: Reason,
    },
}

layout!(enum Verdict { 0 => Granted { original }, 1 => Refused { reason } });

/// A recall on its way to the receiver of the original payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecallNotice {
    /// The original payment.
    pub original: PaymentRef,
    /// Who asks: the original's sender.
    pub sender: ParticipantId,
    /// Who is asked: the original's receiver.
    pub receiver: ParticipantId,
    /// The camt.056, in the same shard as the original.
    pub request: MessageNo,
    /// Which of its requests.
    pub position: u32,
}

layout!(struct RecallNotice { original, sender, receiver, request, position });

/// What a participant pays and receives in one currency, seen from one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The participant.
    pub participant: ParticipantId,
    /// The currency.
    pub currency: Currency,
    /// What it pays, in minor units.
    pub out_minor: u128,
    /// In how many payments.
    pub out_count: u32,
    /// What it receives, in minor units.
    pub in_minor: u128,
    /// In how many payments.
    pub in_count: u32,
}

layout!(struct Flow { participant, currency, out_minor, out_count, in_minor, in_count });

/// What a participant receives in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The participant.
    pub participant: ParticipantId,
    /// The currency.
    pub currency: Currency,
    /// How much, in minor units.
    pub minor: u128,
    /// In how many payments.
    pub count: u32,
}

layout!(struct Incoming { participant, currency, minor, count });

/// What was available to a participant when its net was reserved: balance and credit line less other reservations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Available {
    /// The participant.
    pub participant: ParticipantId,
    /// The currency.
    pub currency: Currency,
    /// How much, in minor units.
    pub minor: i128,
}

layout!(struct Available { participant, currency, minor });

/// Payments dropped from a cycle for lack of funds: the evidence for the certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop {
    /// The round.
    pub round: u32,
    /// The participant.
    pub participant: ParticipantId,
    /// The currency.
    pub currency: Currency,
    /// What was available.
    pub available_minor: i128,
    /// What it would have received.
    pub in_minor: u128,
    /// What it would have paid.
    pub out_minor: u128,
    /// How many of its last payments were dropped.
    pub count: u32,
    /// Their sum.
    pub minor: u128,
}

layout!(struct Drop { round, participant, currency, available_minor, in_minor, out_minor, count, minor });

/// One participant's result of a settled cycle in one currency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetResult {
    /// The participant.
    pub participant: ParticipantId,
    /// The currency.
    pub currency: Currency,
    /// Balance just before.
    pub opening_minor: i128,
    /// What it paid.
    pub out_minor: u128,
    /// In how many payments.
    pub out_count: u32,
    /// What it received.
    pub in_minor: u128,
    /// In how many payments.
    pub in_count: u32,
    /// Balance just after.
    pub closing_minor: i128,
    /// The account's credit line.
    pub credit_line: AmountMinor,
    /// Payments of its own that were in the set and not settled.
    pub dropped_count: u32,
    /// Their sum.
    pub dropped_minor: u128,
}

layout!(struct NetResult {
    participant, currency, opening_minor, out_minor, out_count, in_minor, in_count, closing_minor, credit_line,
    dropped_count, dropped_minor
});
