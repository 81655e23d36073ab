//! A second clearing house, written from the rules (`docs/adr`, `docs/reference/reasons.md`, `docs/operate.md`): lists and loops,
//! nothing indexed, nothing forgotten but what the rules say is forgotten.
//!
//! One [`Shard`] is the state of one log. What comes from another shard must be what the model of that shard has sent:
//! [`crate::replay`] sees to it.

mod coordinator;
mod day;
mod gross;
mod netting;
mod reception;
mod requests;

use std::collections::{BTreeMap, BTreeSet};

use crate::plain::{
    Advice, Answer, Body, Cancel, Class, Entry, Holder, Item, Kind, Letter, Message, Op, Output,
    Picture, Reason, Reply, Rules, Shown, Status, Terms, Times,
};

pub use coordinator::Decided;
pub use netting::InSet;

/// One shard.
#[derive(Clone, Debug, Default)]
pub struct Shard {
    rules: Option<Rules>,
    index: u64,
    now_ns: u64,
    /// In the order in which they were taken up.
    banks: Vec<Terms>,
    /// All accounts of the cluster, in the order in which they were opened; those of home banks have a state.
    holders: Vec<Holder>,
    accounts: BTreeMap<Holder, Account>,
    days: Vec<Day>,
    day: DayState,
    early_ends: BTreeSet<usize>,
    messages: Vec<TakenIn>,
    payments: Vec<Payment>,
    cancels: BTreeMap<u64, Vec<Cancel>>,
    members: BTreeMap<String, Member>,
    released: Vec<(u64, String)>,
    /// Everything ever sent, by receiving shard; letters count from 1.
    sent: Vec<Vec<Letter>>,
    /// By sending shard: the number that comes next.
    inbox: Vec<u64>,
    running: Option<netting::Running>,
    /// Payments before this one were in the set of a settled cycle, if they waited then.
    last_cut_below: u64,
    coordinator: coordinator::Coordinator,
}

#[derive(Clone, Debug, Default)]
struct Account {
    balance: i128,
    line: u64,
    /// Set aside by the running cycle.
    reserved: i128,
    opening: i128,
    debits: u128,
    credits: u128,
    statements: u64,
}

impl Account {
    fn available(&self) -> i128 {
        self.balance + i128::from(self.line) - self.reserved
    }
}

#[derive(Clone, Debug)]
struct Day {
    date: u32,
    opened: u64,
}

#[derive(Clone, Debug, Default)]
enum DayState {
    #[default]
    Closed,
    /// Kinds whose cut-off has passed.
    Open(BTreeSet<Kind>),
    /// Shards that have ended the day.
    Closing(BTreeSet<usize>),
}

/// A message that was taken in; its number is its place.
#[derive(Clone, Debug)]
struct TakenIn {
    bank: String,
    id: String,
    digest: u128,
    /// Place in `days`.
    day: usize,
    answer: u64,
}

/// A payment that was taken in; its number is its place.
#[derive(Clone, Debug)]
struct Payment {
    key: String,
    content: u64,
    message: u64,
    day: usize,
    from: Holder,
    to: Option<Holder>,
    minor: u64,
    class: Class,
    or_refuse: bool,
    times: Times,
    /// Stands in the queue, rather than waiting for its time.
    queued: bool,
    status: Status,
    reason: Option<Reason>,
    /// The original that it claimed a part of: shard and payment.
    claimed: Option<(usize, u64)>,
    returned: u64,
}

impl Payment {
    fn receiver(&self) -> &Holder {
        self.to
            .as_ref()
            .expect("an accepted payment has a receiver")
    }

    fn signed(&self) -> i128 {
        i128::from(self.minor)
    }
}

#[derive(Clone, Debug)]
struct Member {
    next_sequence: u64,
    held: BTreeMap<u64, Message>,
    gap_due_ns: Option<u64>,
    items: Vec<Item>,
    next_number: u64,
    acknowledged: u64,
    day_first_number: u64,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            next_sequence: 1,
            held: BTreeMap::new(),
            gap_due_ns: None,
            items: Vec::new(),
            next_number: 1,
            acknowledged: 0,
            day_first_number: 1,
        }
    }
}

/// The last message number of a bank's day has none after it.
const SEQUENCE_END: u64 = u64::MAX;

impl Shard {
    /// Applies the next entry and says what its proposer is told.
    pub fn apply(&mut self, entry: &Entry) -> Answer {
        assert_eq!(entry.index, self.index + 1, "entries come in order");
        self.index = entry.index;
        self.now_ns = self.now_ns.max(entry.time_ns);
        let reply = match (&entry.op, self.rules.is_some()) {
            (Op::Found(rules), _) => self.found(rules),
            (_, false) => refused("NoGenesis"),
            (op, true) => {
                self.pass_time();
                self.act(op)
            }
        };
        Answer {
            reply,
            released: std::mem::take(&mut self.released),
        }
    }

    fn act(&mut self, op: &Op) -> Reply {
        match op {
            Op::Found(_) | Op::Tick | Op::Delivered => Reply::Done,
            Op::Foreign => Reply::Foreign,
            Op::Operate(act) => self.operate(act),
            Op::OpenCycle => self.open_cycle(),
            Op::AbandonCycle => self.abandon_cycle(),
            Op::Submit(message) => self.submit(message),
            Op::Skip { bank, next } => self.skip(bank, *next),
            Op::Acknowledge { bank, through } => self.acknowledge(bank, *through),
            Op::Deliver {
                from,
                first,
                letters,
            } => self.deliver(*from, *first, letters),
        }
    }

    fn found(&mut self, rules: &Rules) -> Reply {
        if self.rules.is_some() {
            return refused("GenesisTwice");
        }
        if rules.shard >= rules.shards || rules.page_len == 0 {
            return refused("GenesisInvalid");
        }
        self.sent = vec![Vec::new(); rules.shards];
        self.inbox = vec![1; rules.shards];
        self.rules = Some(rules.clone());
        Reply::Done
    }

    fn rules(&self) -> &Rules {
        self.rules.as_ref().expect("founded")
    }

    fn me(&self) -> usize {
        self.rules().shard
    }

    fn terms(&self, bank: &str) -> Option<&Terms> {
        self.banks.iter().find(|terms| terms.bank == bank)
    }

    fn home(&self, bank: &str) -> usize {
        self.terms(bank).map_or(0, |terms| terms.home)
    }

    fn has_account(&self, bank: &str, currency: &str) -> bool {
        self.holders
            .iter()
            .any(|holder| holder.bank == bank && holder.currency == currency)
    }

    /// Home accounts, in the order in which they were opened.
    fn own_holders(&self) -> Vec<Holder> {
        let mine = |holder: &&Holder| self.accounts.contains_key(holder);
        self.holders.iter().filter(mine).cloned().collect()
    }

    /// Currencies in the order of their first account.
    fn currencies(&self) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for holder in &self.holders {
            if !list.contains(&holder.currency) {
                list.push(holder.currency.clone());
            }
        }
        list
    }

    /// Home accounts by bank, then currency: the order in which output of one entry is put out.
    fn by_bank(&self, holders: impl Iterator<Item = Holder>) -> Vec<Holder> {
        let currencies = self.currencies();
        let place = |holder: &Holder| {
            (
                self.banks
                    .iter()
                    .position(|terms| terms.bank == holder.bank),
                currencies
                    .iter()
                    .position(|known| *known == holder.currency),
            )
        };
        let mut list: Vec<Holder> = holders.collect();
        list.sort_by_key(place);
        list
    }

    fn account(&mut self, holder: &Holder) -> &mut Account {
        self.accounts.get_mut(holder).expect("a home account")
    }

    fn available(&self, holder: &Holder) -> i128 {
        self.accounts[holder].available()
    }

    fn member(&mut self, bank: &str) -> &mut Member {
        self.members.entry(bank.to_owned()).or_default()
    }

    fn payment(&self, number: u64) -> &Payment {
        &self.payments[place(number)]
    }

    fn payment_mut(&mut self, number: u64) -> &mut Payment {
        &mut self.payments[place(number)]
    }

    /// Numbers of all payments.
    fn numbers(&self) -> std::ops::Range<u64> {
        0..self.payments.len() as u64
    }

    /// Puts an item out; its first number.
    fn tell(&mut self, bank: &str, pages: u64, body: Body) -> u64 {
        let (index, time_ns) = (self.index, self.now_ns);
        let member = self.member(bank);
        let number = member.next_number;
        member.next_number += pages;
        member.items.push(Item {
            number,
            pages,
            index,
            time_ns,
            body,
        });
        number
    }

    fn send(&mut self, to: usize, letter: Letter) {
        self.sent[to].push(letter);
    }

    fn send_all(&mut self, letter: &Letter) {
        for to in 0..self.sent.len() {
            self.send(to, letter.clone());
        }
    }

    /// Moves money on a home account.
    fn post(&mut self, holder: &Holder, minor: i128) {
        let account = self.account(holder);
        account.balance += minor;
        if minor < 0 {
            account.debits += minor.unsigned_abs();
        } else {
            account.credits += minor.unsigned_abs();
        }
    }

    fn acknowledge(&mut self, bank: &str, through: u64) -> Reply {
        if self.terms(bank).is_none() {
            return refused("ParticipantUnknown");
        }
        let home = self.home(bank);
        if home != self.me() {
            return Reply::NotHome(home);
        }
        let member = self.member(bank);
        member.acknowledged = member.acknowledged.max(through.min(member.next_number - 1));
        Reply::Done
    }

    /// Letters in order, each once; what came before is passed over, a gap waits to be sent again.
    fn deliver(&mut self, from: usize, first: u64, letters: &[Letter]) -> Reply {
        for (number, letter) in (first..).zip(letters) {
            let Some(&next) = self.inbox.get(from) else {
                break;
            };
            if number < next {
                continue;
            }
            // ADR 0011: a credit that overtakes the news of its account waits like after a gap.
            let early = match letter {
                Letter::Credit(advice) => !self.accounts.contains_key(&advice.to),
                _ => false,
            };
            if number > next || early {
                break;
            }
            self.inbox[from] = next + 1;
            self.open_letter(from, letter);
        }
        Reply::Done
    }

    fn open_letter(&mut self, from: usize, letter: &Letter) {
        match letter {
            Letter::Act(act) => self.take_act(act),
            Letter::Credit(advice) => self.take_credit(advice.clone()),
            Letter::Cut { cycle } => self.cut(from, *cycle),
            Letter::CutSums { cycle, cut, sums } => self.take_sums(from, *cycle, *cut, sums),
            Letter::Reserve {
                cycle,
                round,
                incoming,
            } => self.reserve(from, *cycle, *round, incoming),
            Letter::Reserved {
                cycle,
                round,
                available,
                drops,
                reductions,
            } => self.take_reserved(from, *cycle, *round, available, drops, reductions),
            Letter::Decide { cycle, decided: _ } => self.settle_cycle(from, *cycle),
            Letter::Posted {
                cycle,
                posted: _,
                results,
            } => self.take_posted(from, *cycle, results),
            Letter::End { cycle, abandoned } => self.end_cycle(*cycle, *abandoned),
            Letter::CycleCredits { cycle, credits } => self.take_credits(from, *cycle, credits),
            Letter::Claim {
                claim,
                returner,
                payer,
                original,
                minor,
                currency,
            } => self.take_claim(from, *claim, returner, payer, original, *minor, currency),
            Letter::Verdict { claim, verdict } => self.take_verdict(*claim, *verdict),
            Letter::Released { original, minor } => {
                let original = self.payment_mut(original.1);
                original.returned = original.returned.saturating_sub(*minor);
            }
            Letter::Recall(recall) => {
                let body = Body::RecallRequest {
                    from,
                    recall: recall.clone(),
                };
                self.tell(&recall.receiver.clone(), 1, body);
            }
            Letter::DayEnd(date) => self.take_day_end(from, *date),
            Letter::DayClosed(date) => self.take_day_closed(from, *date),
        }
    }

    fn take_credit(&mut self, advice: Advice) {
        let holder = advice.to.clone();
        self.credit_here(advice);
        self.release(vec![holder]);
    }

    // ---- looked at from outside ----

    /// The letters sent to a shard so far.
    #[must_use]
    pub fn sent_to(&self, to: usize) -> &[Letter] {
        self.sent.get(to).map_or(&[], Vec::as_slice)
    }

    /// The number of the letter that must come next from a shard.
    #[must_use]
    pub fn next_from(&self, from: usize) -> u64 {
        self.inbox.get(from).copied().unwrap_or(1)
    }

    /// The set of the running cycle with its queues' fate, as long as it runs here.
    #[must_use]
    pub fn cycle_set(&self, cycle: u32) -> Vec<InSet> {
        self.set_of(cycle)
    }

    /// What a decision of this entry rested on, in the coordinator's shard.
    pub fn take_decided(&mut self) -> Option<Decided> {
        self.coordinator.decided.take()
    }

    /// The home accounts: balance and line together, less what is set aside.
    pub fn balances(&self) -> impl Iterator<Item = (&Holder, i128)> {
        self.accounts
            .iter()
            .map(|(holder, account)| (holder, account.balance))
    }

    /// The state as far as it is compared.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let oldest = self.oldest_day();
        let retained = |day: usize| day >= oldest;
        Picture {
            accounts: self
                .accounts
                .iter()
                .map(|(holder, account)| (holder.clone(), (account.balance, account.reserved)))
                .collect(),
            payments: (0_u64..)
                .zip(&self.payments)
                .filter(|(_, payment)| retained(payment.day))
                .map(|(number, payment)| {
                    let shown = Shown {
                        key: payment.key.clone(),
                        message: payment.message,
                        status: payment.status,
                        reason: self.shown_reason(number),
                        returned: payment.returned,
                    };
                    (number, shown)
                })
                .collect(),
            cancels: self
                .cancels
                .iter()
                .filter(|(message, _)| retained(self.messages[place(**message)].day))
                .map(|(message, answers)| (*message, answers.clone()))
                .collect(),
            outputs: self
                .members
                .iter()
                .map(|(bank, member)| {
                    let output = Output {
                        next: member.next_number,
                        acknowledged: member.acknowledged,
                        items: self.retained_items(&member.items),
                    };
                    (bank.clone(), output)
                })
                .collect(),
        }
    }

    /// Where the retained business days begin.
    fn oldest_day(&self) -> usize {
        let keep = self
            .rules
            .as_ref()
            .map_or(2, |rules| rules.retention_days.max(2));
        self.days.len().saturating_sub(keep)
    }

    /// Output belongs to the day whose statement accounts for it: what stands behind the last statement of a day that is
    /// forgotten is kept, and without statements, what came since the oldest day opened.
    fn retained_items(&self, items: &[Item]) -> Vec<Item> {
        let oldest = self.oldest_day();
        let Some(day) = self.days.get(oldest).filter(|_| oldest > 0) else {
            return items.to_vec();
        };
        let any = items
            .iter()
            .any(|item| matches!(item.body, Body::Statement(_)));
        let forgotten = |item: &Item| match &item.body {
            Body::Statement(statement) => statement.date < day.date,
            _ => !any && item.index < day.opened,
        };
        let kept = items.iter().rposition(forgotten).map_or(0, |at| at + 1);
        items[kept..].to_vec()
    }
}

fn refused(refusal: &str) -> Reply {
    Reply::Refused(refusal.to_owned())
}

fn place(number: u64) -> usize {
    usize::try_from(number).expect("numbers count what is in memory")
}
