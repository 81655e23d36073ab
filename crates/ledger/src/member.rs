//! A shard's part in a netting cycle: cut, reserve or drop, post, or forget (design 5, domain 5).
//!
//! The greatest feasible set is unique whatever the order of dropping, because a longer prefix of anybody only adds to
//! what others receive; so shards may drop at the same time, from the same sums, without seeing each other.

use crate::account::Account;
use crate::day::{DayBook, PaymentStatus};
use crate::directory::{AccountPlace, NetUnit};
use crate::entry::{Available, ChannelMessage, Drop, Flow, Incoming, NetResult};
use crate::layout::layout;
use crate::state::Ledger;
use crate::stream::ItemBody;
use crate::{BusinessDate, CycleNumber, LogIndex, ParticipantId, PaymentNo, ShardId, Timestamp};

/// The cycle that is running in this shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemberCycle {
    pub(crate) cycle: CycleNumber,
    /// Payments below this number that wait for netting are in the set.
    pub(crate) cut_below: PaymentNo,
    cut: LogIndex,
    cut_time: Timestamp,
    /// By account of this shard.
    positions: Vec<Position>,
}

layout!(struct MemberCycle { cycle, cut_below, cut, cut_time, positions });

/// One account's place in the running cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// Payments of the account's list below this number are still taken: a prefix, since numbers ascend.
    taken_below: PaymentNo,
    out_minor: u128,
    out_count: u32,
    in_minor: u128,
    in_count: u32,
    dropped_minor: u128,
    dropped_count: u32,
    /// Whether it pays or receives anything in the set, dropped payments included: then it is part of the result.
    listed: bool,
}

layout!(struct Position { taken_below, out_minor, out_count, in_minor, in_count, dropped_minor, dropped_count, listed });

/// A settled cycle as this shard posted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CycleRecord {
    /// Its business date.
    pub date: BusinessDate,
    /// The cut-off's position in this shard's journal.
    pub cut: LogIndex,
    /// Log time of the cut-off: the moment of irrevocability of the payments in the set.
    pub cut_time: Timestamp,
    /// The decision's position in the coordinator's journal.
    pub decided: LogIndex,
    /// The posting's position in this shard's journal: finality.
    pub posted: LogIndex,
    /// Log time of the posting.
    pub posted_time: Timestamp,
    /// Payments below this number were in the set, as far as they waited.
    pub cut_below: PaymentNo,
    /// Results of this shard's participants.
    pub results: Vec<NetResult>,
}

layout!(struct CycleRecord { date, cut, cut_time, decided, posted, posted_time, cut_below, results });

/// Sums by participant and currency place.
struct Sums {
    currencies: usize,
    sums: Vec<(u128, u32)>,
}

impl Sums {
    fn new(participants: usize, currencies: usize) -> Self {
        Self {
            currencies,
            sums: vec![(0, 0); participants * currencies],
        }
    }

    #[inline]
    fn add(&mut self, participant: ParticipantId, currency_place: u8, minor: u64) {
        let at =
            &mut self.sums[participant.index() * self.currencies + usize::from(currency_place)];
        at.0 += u128::from(minor);
        at.1 += 1;
    }

    fn get(&self, participant: ParticipantId, currency_place: u8) -> (u128, u32) {
        self.sums[participant.index() * self.currencies + usize::from(currency_place)]
    }
}

impl Ledger {
    fn sums(&self) -> Sums {
        Sums::new(self.directory.iter().count(), self.totals.len())
    }

    fn incoming_of(&self, sums: &Sums) -> Vec<Incoming> {
        let mut list = Vec::new();
        for (participant, _) in self.directory.iter() {
            for (place, &currency) in (0_u8..).zip(self.directory.currencies()) {
                let (minor, count) = sums.get(participant, place);
                if count > 0 {
                    list.push(Incoming {
                        participant,
                        currency,
                        minor,
                        count,
                    });
                }
            }
        }
        list
    }

    /// Step 2: everything that waits is the set, and what it comes to is told.
    pub(crate) fn receive_cut(&mut self, from: ShardId, cycle: CycleNumber) {
        let cut_below = self.next_payment;
        let mut incoming = self.sums();
        let mut positions = Vec::with_capacity(self.accounts.len());
        let mut outgoing = self.sums();
        if let Some(book) = self.days.back() {
            for account in &self.accounts {
                let mut position = Position {
                    taken_below: cut_below,
                    out_minor: 0,
                    out_count: 0,
                    in_minor: 0,
                    in_count: 0,
                    dropped_minor: 0,
                    dropped_count: 0,
                    listed: false,
                };
                for run in &account.net {
                    for slots in book.slots(run.first, run.end()) {
                        for slot in slots {
                            if slot.status == PaymentStatus::Netting
                                && slot.currency_place == account.currency_place
                            {
                                position.out_minor += u128::from(slot.amount.minor());
                                position.out_count += 1;
                                incoming.add(
                                    slot.receiver,
                                    slot.currency_place,
                                    slot.amount.minor(),
                                );
                            }
                        }
                    }
                }
                let at = account.participant.index() * outgoing.currencies
                    + usize::from(account.currency_place);
                outgoing.sums[at] = (position.out_minor, position.out_count);
                positions.push(position);
            }
        }
        let mut sums = Vec::new();
        for (participant, _) in self.directory.iter() {
            for (place, &currency) in (0_u8..).zip(self.directory.currencies()) {
                let (out_minor, out_count) = outgoing.get(participant, place);
                let (in_minor, in_count) = incoming.get(participant, place);
                if out_count > 0 || in_count > 0 {
                    sums.push(Flow {
                        participant,
                        currency,
                        out_minor,
                        out_count,
                        in_minor,
                        in_count,
                    });
                }
            }
        }
        self.last_cut = cycle;
        self.running = Some(MemberCycle {
            cycle,
            cut_below,
            cut: self.index,
            cut_time: self.now,
            positions,
        });
        self.digest
            .fold(u64::from(cycle.get()) ^ cut_below.get() << 16);
        self.send(
            from,
            ChannelMessage::CutSums {
                cycle,
                cut: self.index,
                sums,
            },
        );
    }

    /// Step 3: reserves what each net payer needs; where funds lack, its last payments are dropped until they suffice.
    pub(crate) fn receive_reserve(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        round: u32,
        incoming: &[Incoming],
    ) {
        let Some(mut running) = self.running.take().filter(|running| running.cycle == cycle) else {
            return;
        };
        for position in &mut running.positions {
            (position.in_minor, position.in_count) = (0, 0);
        }
        for item in incoming {
            if let AccountPlace::Home(account) = self.place(item.participant, item.currency) {
                let position = &mut running.positions[account as usize];
                (position.in_minor, position.in_count) = (item.minor, item.count);
                position.listed = true;
            }
        }
        let mut available = Vec::new();
        let mut drops = Vec::new();
        let mut reductions = self.sums();
        let Some(book) = self.days.back() else { return };
        for (account, position) in self.accounts.iter_mut().zip(&mut running.positions) {
            if !position.listed {
                continue;
            }
            // The cycle's own reservation of the round before is free for this one.
            account.reserved = 0;
            let free = account.available_minor();
            available.push(Available {
                participant: account.participant,
                currency: account.currency,
                minor: free,
            });
            let unit = self
                .directory
                .get(account.participant)
                .map_or(NetUnit::Payment, |terms| terms.net_unit);
            let before = *position;
            drop_tail(book, account, position, free, unit, &mut reductions);
            if position.out_count < before.out_count {
                drops.push(Drop {
                    round,
                    participant: account.participant,
                    currency: account.currency,
                    available_minor: free,
                    in_minor: before.in_minor,
                    out_minor: before.out_minor,
                    count: before.out_count - position.out_count,
                    minor: before.out_minor - position.out_minor,
                });
            }
            account.reserved = (signed(position.out_minor) - signed(position.in_minor)).max(0);
        }
        for drop in &drops {
            self.digest
                .fold(u64::from(drop.participant.get()) << 48 ^ u64::from(drop.count));
        }
        let reductions = self.incoming_of(&reductions);
        self.running = Some(running);
        self.send(
            from,
            ChannelMessage::Reserved {
                cycle,
                round,
                available,
                drops,
                reductions,
            },
        );
    }

    /// Step 5: posts the net amounts and marks the payments settled, all in this entry.
    pub(crate) fn receive_decide(&mut self, from: ShardId, cycle: CycleNumber, decided: LogIndex) {
        let Some(running) = self.running.take().filter(|running| running.cycle == cycle) else {
            return;
        };
        let mut results = Vec::new();
        let mut credits: Vec<Sums> = (0..self.shards()).map(|_| self.sums()).collect();
        let homes: Vec<usize> = self
            .directory
            .iter()
            .map(|(_, terms)| terms.home.index())
            .collect();
        let mut netted: Vec<(ParticipantId, ItemBody)> = Vec::new();
        let mut book = self
            .days
            .pop_back()
            .expect("a cycle runs within a business day");
        for (number, position) in (0_u32..).zip(&running.positions) {
            let account = &mut self.accounts[number as usize];
            account.reserved = 0;
            if !position.listed {
                continue;
            }
            for run in &account.net {
                if run.first >= running.cut_below {
                    break;
                }
                let (mut settled, mut dropped) = (0, 0);
                let mut payment = run.first;
                for slots in book.slots_mut(run.first, run.end().min(running.cut_below)) {
                    for slot in slots {
                        let taken = payment < position.taken_below;
                        payment = payment.next();
                        if slot.status != PaymentStatus::Netting
                            || slot.currency_place != account.currency_place
                        {
                            continue;
                        }
                        if taken {
                            slot.become_(PaymentStatus::Settled, cycle, None);
                            settled += 1;
                            credits[homes[slot.receiver.index()]].add(
                                slot.receiver,
                                slot.currency_place,
                                slot.amount.minor(),
                            );
                        } else {
                            dropped += 1;
                        }
                    }
                }
                if settled + dropped > 0 {
                    netted.push((
                        account.participant,
                        ItemBody::Netted {
                            cycle,
                            message: run.message,
                            settled,
                            dropped,
                        },
                    ));
                }
            }
            // What settled leaves the list; what was dropped stays first in line.
            while account
                .net
                .front()
                .is_some_and(|run| run.end() <= position.taken_below)
            {
                account.net.pop_front();
            }
            if let Some(run) = account
                .net
                .front_mut()
                .filter(|run| run.first < position.taken_below)
            {
                run.len -=
                    u32::try_from(position.taken_below.get() - run.first.get()).unwrap_or(run.len);
                run.first = position.taken_below;
            }
            let opening_minor = account.balance;
            let (participant, currency, place) = (
                account.participant,
                account.currency,
                account.currency_place,
            );
            let credit_line = account.credit_line;
            let net = signed(position.in_minor) - signed(position.out_minor);
            self.post(number, net);
            self.totals[usize::from(place)].netted_minor += net;
            results.push(NetResult {
                participant,
                currency,
                opening_minor,
                out_minor: position.out_minor,
                out_count: position.out_count,
                in_minor: position.in_minor,
                in_count: position.in_count,
                closing_minor: opening_minor + net,
                credit_line,
                dropped_count: position.dropped_count,
                dropped_minor: position.dropped_minor,
            });
        }
        let date = book.date;
        self.days.push_back(book);
        netted.sort_by_key(|(participant, body)| match body {
            ItemBody::Netted { message, .. } => (*participant, message.get()),
            _ => (*participant, 0),
        });
        self.emit_netted(netted);
        let mut told = None;
        let mut participants: Vec<ParticipantId> =
            results.iter().map(|result| result.participant).collect();
        participants.sort_unstable();
        for participant in participants {
            if told != Some(participant) {
                self.emit(participant, 1, ItemBody::NetResult { cycle });
                told = Some(participant);
            }
        }
        self.cycles.insert(
            cycle,
            CycleRecord {
                date,
                cut: running.cut,
                cut_time: running.cut_time,
                decided,
                posted: self.index,
                posted_time: self.now,
                cut_below: running.cut_below,
                results: results.clone(),
            },
        );
        for (shard, sums) in (0..).map(ShardId::new).zip(&credits) {
            let credits = self.incoming_of(sums);
            if !credits.is_empty() {
                self.send(shard, ChannelMessage::CycleCredits { cycle, credits });
            }
        }
        self.send(
            from,
            ChannelMessage::Posted {
                cycle,
                posted: self.index,
                results,
            },
        );
        self.release_all();
    }

    /// One item per message: runs of one message in several currencies count together.
    fn emit_netted(&mut self, netted: Vec<(ParticipantId, ItemBody)>) {
        let mut pending: Option<(ParticipantId, ItemBody)> = None;
        for (participant, body) in netted {
            if let (
                Some((
                    last,
                    ItemBody::Netted {
                        message: earlier,
                        settled: sum,
                        dropped: lost,
                        ..
                    },
                )),
                ItemBody::Netted {
                    message,
                    settled,
                    dropped,
                    ..
                },
            ) = (&mut pending, &body)
                && *last == participant
                && earlier == message
            {
                *sum += settled;
                *lost += dropped;
                continue;
            }
            if let Some((participant, body)) = pending.replace((participant, body)) {
                self.emit(participant, 1, body);
            }
        }
        if let Some((participant, body)) = pending {
            self.emit(participant, 1, body);
        }
    }

    /// Lets every account's queue try: net receivers have more funds, and reservations are gone.
    fn release_all(&mut self) {
        let waiting: Vec<u32> = (0_u32..)
            .zip(&self.accounts)
            .filter(|(_, account)| account.head().is_some())
            .map(|(at, _)| at)
            .collect();
        self.release(waiting);
    }

    /// Step 6, or the coordinator has given the cycle up: reservations go, nothing else was changed.
    pub(crate) fn receive_end(&mut self, cycle: CycleNumber, abandoned: bool) {
        if abandoned
            && self
                .running
                .as_ref()
                .is_some_and(|running| running.cycle == cycle)
        {
            self.forget_cycle();
            self.release_all();
        }
        self.digest
            .fold(u64::from(cycle.get()) << 8 ^ u64::from(abandoned));
    }

    /// Nothing is set aside any more, and later steps of the cycle find it gone.
    pub(crate) fn forget_cycle(&mut self) {
        self.running = None;
        for account in &mut self.accounts {
            account.reserved = 0;
        }
    }

    /// What another shard's settled payments bring to participants here: their receipts.
    pub(crate) fn receive_cycle_credits(
        &mut self,
        from: ShardId,
        cycle: CycleNumber,
        credits: &[Incoming],
    ) {
        let page = self
            .genesis
            .as_ref()
            .map_or(1, |genesis| genesis.page_len_payments.max(1));
        for credit in credits {
            let body = ItemBody::NetCredits {
                cycle,
                from,
                currency: credit.currency,
                count: credit.count,
                minor: credit.minor,
            };
            self.emit(credit.participant, credit.count.div_ceil(page), body);
        }
    }
}

/// Drops an account's last payments (or packages) until what is free and what it receives cover the rest.
fn drop_tail(
    book: &DayBook,
    account: &Account,
    position: &mut Position,
    free: i128,
    unit: NetUnit,
    reductions: &mut Sums,
) {
    let mut deficit = signed(position.out_minor) - signed(position.in_minor) - free;
    if deficit <= 0 || position.out_count == 0 {
        return;
    }
    for run in account.net.iter().rev() {
        let end = run.end().min(position.taken_below);
        let mut at = end;
        let dropped_before = position.out_count;
        while at > run.first
            && (deficit > 0 || (unit == NetUnit::Package && position.out_count < dropped_before))
        {
            at = PaymentNo::new(at.get() - 1);
            let Some(slot) = book.slot(at) else { continue };
            if slot.status != PaymentStatus::Netting
                || slot.currency_place != account.currency_place
            {
                continue;
            }
            let minor = slot.amount.minor();
            deficit -= i128::from(minor);
            position.taken_below = at;
            position.out_minor -= u128::from(minor);
            position.out_count -= 1;
            position.dropped_minor += u128::from(minor);
            position.dropped_count += 1;
            reductions.add(slot.receiver, slot.currency_place, minor);
        }
        if deficit <= 0 || position.out_count == 0 {
            break;
        }
    }
}

/// Sums of amounts of 18 digits over fewer than 2^32 payments stay far below 2^127.
fn signed(minor: u128) -> i128 {
    i128::try_from(minor).expect("a cycle's sums stay below 2^127")
}

/// Payments of an account that wait for netting, in order: number, minor units, receiver.
pub(crate) fn waiting_net<'a>(
    book: &'a DayBook,
    account: &'a Account,
) -> impl Iterator<Item = (PaymentNo, u64, ParticipantId)> + 'a {
    account.net.iter().flat_map(move |run| {
        (0..u64::from(run.len)).filter_map(move |at| {
            let payment = PaymentNo::new(run.first.get() + at);
            let slot = book.slot(payment)?;
            (slot.status == PaymentStatus::Netting && slot.currency_place == account.currency_place)
                .then_some((payment, slot.amount.minor(), slot.receiver))
        })
    })
}
