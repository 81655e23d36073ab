//! Banks at work, each a thread: they pay, read at another node right after each answer, send again what is open, send
//! twice what is not, cancel, and read their output. Beside them an auditor adds up accounts, and a clerk opens cycles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use clearspan_node::client::{Ask, Retry};
use serde_json::Value;

use crate::asker::{Asker, Directory};
use crate::messages::{Content, Message, Payment};
use crate::record::{Record, Told};
use crate::rng::Rng;
use crate::world::{Bank, CURRENCIES, Role, SHARDS};

/// Payments of a package.
const PACKAGE_PAYMENTS: usize = 8;
/// The clerk's rest between two cycles.
const CYCLE_REST: Duration = Duration::from_millis(1500);

/// What threads share.
pub(crate) struct Shared {
    pub(crate) record: Arc<Record>,
    pub(crate) directory: Directory,
    stop: AtomicBool,
    /// Numbers for messages and payments.
    next: Arc<AtomicU64>,
}

/// Threads at work; they end with [`Traffic::stop`].
pub(crate) struct Traffic {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Traffic {
    pub(crate) fn start(
        record: &Arc<Record>,
        directory: &Directory,
        next: &Arc<AtomicU64>,
        rng: &mut Rng,
    ) -> Self {
        let shared = Arc::new(Shared {
            record: record.clone(),
            directory: directory.clone(),
            stop: AtomicBool::new(false),
            next: next.clone(),
        });
        let mut traffic = Self {
            shared,
            threads: Vec::new(),
        };
        for home in 0..SHARDS {
            traffic.spawn(rng, move |shared, rng| teller(shared, rng, home));
        }
        for half in [0, 2] {
            let homes = [half, half + 1];
            traffic.spawn(rng, move |shared, rng| crosser(shared, rng, homes));
            traffic.spawn(rng, move |shared, rng| netter(shared, rng, homes));
        }
        traffic.spawn(rng, auditor);
        traffic.spawn(rng, reader);
        traffic.spawn(rng, clerk);
        traffic
    }

    fn spawn(&mut self, rng: &mut Rng, body: impl Fn(&Shared, Rng) + Send + 'static) {
        let (shared, rng) = (self.shared.clone(), Rng::new(rng.next()));
        self.threads
            .push(std::thread::spawn(move || body(&shared, rng)));
    }

    /// Waits for the end of what is under way.
    pub(crate) fn stop(self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a client does not panic");
        }
    }
}

impl Shared {
    fn works(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    fn asker(&self, certificate: &str) -> Asker {
        Asker::new(&self.directory, certificate, &self.record)
    }

    fn urgent(&self, rng: &mut Rng, from: Bank, to: Bank) -> (usize, String) {
        let number = self.number();
        let (currency, _) = CURRENCIES[if from.role == Role::Teller {
            0
        } else {
            rng.below(CURRENCIES.len())
        }];
        let id = format!("P{number}");
        let payment = Payment {
            id: id.clone(),
            to,
            currency,
            minor: rng.between(1, 50_000),
            note: String::new(),
        };
        let message = Message::new(format!("M{number}"), from, Content::Urgent(payment));
        (self.record.message(message), id)
    }
}

/// Between two messages of one client: what a busy machine can bear.
fn rest(rng: &mut Rng) {
    std::thread::sleep(Duration::from_millis(rng.between(5, 40)));
}

/// Sends a message until it is known what became of it; whether it was taken. What was refused, with nothing done, is
/// sometimes given up for good.
fn see_through(shared: &Shared, asker: &mut Asker, rng: &mut Rng, message: usize) -> Option<usize> {
    let mut open = false;
    loop {
        let node = asker.pick_for_message(rng);
        match asker.submit(node, message) {
            Told::Taken(_) => return Some(node),
            Told::Refused(_) if !open && rng.below(3) == 0 => return None,
            Told::Refused(_) => {}
            Told::Unknown(_) => open = true,
            // The checks will say so.
            _ => return None,
        }
        if !shared.works() {
            return None;
        }
        rest(rng);
    }
}

/// The classic bank: one payment after another, a look at the balance at another node after each.
fn teller(shared: &Shared, mut rng: Rng, home: u16) {
    let (bank, partner) = (
        Bank::new(Role::Teller, home),
        Bank::new(Role::Partner, home),
    );
    let mut asker = shared.asker(&bank.bic());
    let mut earlier: Vec<usize> = Vec::new();
    while shared.works() {
        let (message, _) = shared.urgent(&mut rng, bank, partner);
        if let Some(node) = see_through(shared, &mut asker, &mut rng, message) {
            let elsewhere = asker.pick_other(&mut rng, node);
            asker.accounts(elsewhere, Some(bank), false);
            earlier.push(message);
        }
        if rng.below(4) == 0 && !earlier.is_empty() {
            let again = earlier[rng.below(earlier.len())];
            let node = asker.pick(&mut rng);
            asker.submit(node, again);
        }
        rest(&mut rng);
    }
}

/// Urgent payments between shards, and a look at each at another node.
fn crosser(shared: &Shared, mut rng: Rng, homes: [u16; 2]) {
    let mut banks = homes.map(|home| {
        let bank = Bank::new(Role::Crosser, home);
        (bank, shared.asker(&bank.bic()))
    });
    while shared.works() {
        let (bank, asker) = &mut banks[rng.below(2)];
        let away = (bank.home + 1 + u16::try_from(rng.below(3)).expect("small")) % SHARDS;
        let role = [Role::Netter, Role::Crosser][rng.below(2)];
        let (message, id) = shared.urgent(&mut rng, *bank, Bank::new(role, away));
        if let Some(node) = see_through(shared, asker, &mut rng, message) {
            let elsewhere = asker.pick_other(&mut rng, node);
            asker.payment(elsewhere, &id);
        }
        rest(&mut rng);
    }
}

/// A package of payments to netters and crossers anywhere, each with a note of so many letters.
pub(crate) fn package(
    record: &Record,
    number: u64,
    from: Bank,
    (count, letters): (usize, usize),
    rng: &mut Rng,
) -> (usize, Vec<Payment>) {
    let to = |rng: &mut Rng| loop {
        let home = u16::try_from(rng.below(usize::from(SHARDS))).expect("few shards");
        let bank = Bank::new([Role::Netter, Role::Crosser][rng.below(2)], home);
        if bank != from {
            return bank;
        }
    };
    let payments: Vec<Payment> = (0..count)
        .map(|at| Payment {
            id: format!("Q{number}.{at}"),
            to: to(rng),
            currency: CURRENCIES[rng.below(CURRENCIES.len())].0,
            minor: rng.between(1, 50_000),
            note: noise(rng, letters),
        })
        .collect();
    let content = Content::Package(payments.clone());
    let message = Message::new(format!("N{number}"), from, content);
    (record.message(message), payments)
}

/// Text that packing does not shorten.
fn noise(rng: &mut Rng, letters: usize) -> String {
    let letter = |rng: &mut Rng| char::from(b'a' + u8::try_from(rng.below(26)).expect("a letter"));
    (0..letters).map(|_| letter(rng)).collect()
}

fn netter(shared: &Shared, mut rng: Rng, homes: [u16; 2]) {
    let mut banks = homes.map(|home| {
        let bank = Bank::new(Role::Netter, home);
        (bank, shared.asker(&bank.bic()))
    });
    let mut earlier: Vec<(usize, usize, Payment)> = Vec::new();
    while shared.works() {
        let at = rng.below(2);
        let (bank, asker) = &mut banks[at];
        let (message, payments) = package(
            &shared.record,
            shared.number(),
            *bank,
            (PACKAGE_PAYMENTS, 0),
            &mut rng,
        );
        if see_through(shared, asker, &mut rng, message).is_some() {
            let one = payments[rng.below(payments.len())].clone();
            earlier.push((at, message, one));
        }
        rest(&mut rng);
        if rng.below(3) == 0 && !earlier.is_empty() {
            let last = earlier.len() - 1;
            // The same payment is never cancelled twice.
            let (at, package, payment) =
                earlier.swap_remove(last - rng.below(earlier.len().min(3)));
            let (bank, asker) = &mut banks[at];
            let package = shared
                .record
                .with(|history| history.messages[package].id.clone());
            let content = Content::Cancel { package, payment };
            let message = Message::new(format!("C{}", shared.number()), *bank, content);
            let message = shared.record.message(message);
            see_through(shared, asker, &mut rng, message);
        } else if rng.below(4) == 0 && !earlier.is_empty() {
            let (at, package, _) = earlier[rng.below(earlier.len())];
            let (_, asker) = &mut banks[at];
            let node = asker.pick(&mut rng);
            asker.submit(node, package);
        }
        rest(&mut rng);
    }
}

/// Adds up everybody's accounts, at any node, fresh and stale.
fn auditor(shared: &Shared, mut rng: Rng) {
    let mut asker = shared.asker(AUDITOR);
    while shared.works() {
        let (node, stale) = (asker.pick(&mut rng), rng.below(3) == 0);
        asker.accounts(node, None, stale);
        rest(&mut rng);
    }
}

/// Reads everybody's output as it comes, each piece at another node.
fn reader(shared: &Shared, mut rng: Rng) {
    let mut asker = shared.asker(AUDITOR);
    let mut next: Vec<(Bank, u64)> = Bank::all().map(|bank| (bank, 1)).collect();
    while shared.works() {
        let at = rng.below(next.len());
        let (bank, from) = &mut next[at];
        let node = asker.pick(&mut rng);
        if let Told::Receipts(receipts) = asker.receipts(node, *bank, *from)
            && let Some(last) = receipts.last()
        {
            *from = last.number + 1;
        }
        rest(&mut rng);
    }
}

/// Opens cycles; one that runs already is none of its business.
fn clerk(shared: &Shared, mut rng: Rng) {
    let mut asker = shared.asker(OPERATOR);
    while shared.works() {
        let node = asker.pick(&mut rng);
        let ask = Ask::post("/v1/admin/cycle/open", "", Retry::NothingDone);
        let _: Result<Value, _> = asker.json(node, &ask);
        std::thread::sleep(CYCLE_REST);
    }
}

/// Certificates beside those of the banks.
pub(crate) const AUDITOR: &str = "auditor-audit";
pub(crate) const OPERATOR: &str = "operator-admin";
