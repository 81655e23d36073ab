//! What forming documents keeps between documents: a few unpacked packages, cycles' payments by receiver, and what was
//! copied out of a cycle's packages for the receivers whose turn it is.
//!
//! All are functions of what never changes (a package; the payments that a cycle settled), so a cache outlives the views
//! it was filled from. It belongs to one cluster's state.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clearspan_ledger::message::{PaymentRecord, Submission};
use clearspan_ledger::query::CycleCredits;
use clearspan_ledger::{CycleNumber, Ledger, MessageNo, ShardId};

use super::DocumentError;
use super::sweep::{SWEEPS_KEPT, Sweep};

/// The most bytes of unpacked packages kept: a few dozen packages of 5000 payments.
pub const PACKAGES_MAX_BYTES: usize = 128 << 20;
/// The most lists of a cycle's payments kept, one for each shard; each has 8 bytes per payment.
const CREDITS_MAX: usize = 64;

type PackageKey = (ShardId, MessageNo);
type CreditsKey = (CycleNumber, ShardId);

/// Shared by all threads that form documents of one cluster.
#[derive(Debug, Default)]
pub struct Cache {
    packages: Mutex<Packages>,
    credits: Mutex<BTreeMap<CreditsKey, Arc<OnceLock<CycleCredits>>>>,
    sweeps: Mutex<BTreeMap<CreditsKey, Sweeps>>,
}

/// The newest last. Held while a pass runs: whoever waits most likely needs just that pass.
type Sweeps = Arc<Mutex<VecDeque<Arc<Sweep>>>>;

/// Least recently used first.
#[derive(Debug, Default)]
struct Packages {
    entries: VecDeque<(PackageKey, Arc<Submission>)>,
    bytes: usize,
}

impl Cache {
    /// Nothing in it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn package(
        &self,
        key: PackageKey,
        read: impl FnOnce() -> Result<Submission, DocumentError>,
    ) -> Result<Arc<Submission>, DocumentError> {
        if let Some(found) = lock(&self.packages).get(key) {
            return Ok(found);
        }
        // Not under the lock: other threads go on, and at worst read the same package too.
        let submission = Arc::new(read()?);
        lock(&self.packages).put(key, Arc::clone(&submission));
        Ok(submission)
    }

    /// A cycle's payments of one shard's senders; computed once, by the first thread that asks. `ledger` has the cycle.
    pub(super) fn credits(
        &self,
        ledger: &Ledger,
        cycle: CycleNumber,
        shard: ShardId,
    ) -> Arc<OnceLock<CycleCredits>> {
        let cell = {
            let mut credits = lock(&self.credits);
            let cell = Arc::clone(credits.entry((cycle, shard)).or_default());
            while credits.len() > CREDITS_MAX {
                // Old cycles are asked for least; the one in hand may be the oldest and is then computed for itself.
                credits.pop_first();
            }
            cell
        };
        cell.get_or_init(|| ledger.cycle_credits(cycle));
        cell
    }

    /// A pass that has what is asked for, made when there is none.
    pub(super) fn sweep(
        &self,
        key: CreditsKey,
        shards: u16,
        has: impl Fn(&Sweep) -> bool,
        make: impl FnOnce() -> Result<Sweep, DocumentError>,
    ) -> Result<Arc<Sweep>, DocumentError> {
        let of_key = {
            let mut sweeps = lock(&self.sweeps);
            let of_key = Arc::clone(sweeps.entry(key).or_default());
            // One cycle's shards share the memory; an older cycle makes room for a newer one, and the other way round.
            while sweeps.len() > usize::from(shards.max(1)) {
                let other = sweeps.keys().find(|(cycle, _)| *cycle != key.0).copied();
                let Some(other) = other.or_else(|| sweeps.keys().find(|k| **k != key).copied())
                else {
                    break;
                };
                sweeps.remove(&other);
            }
            of_key
        };
        let mut kept = lock(&of_key);
        if let Some(found) = kept.iter().find(|sweep| has(sweep)) {
            return Ok(Arc::clone(found));
        }
        // Room first, so that no more than the passes that are kept are in memory.
        while kept.len() >= SWEEPS_KEPT {
            kept.pop_front();
        }
        let made = Arc::new(make()?);
        kept.push_back(Arc::clone(&made));
        Ok(made)
    }
}

impl Packages {
    fn get(&mut self, key: PackageKey) -> Option<Arc<Submission>> {
        let at = self.entries.iter().rposition(|(known, _)| *known == key)?;
        let entry = self.entries.remove(at)?;
        let found = Arc::clone(&entry.1);
        self.entries.push_back(entry);
        Some(found)
    }

    fn put(&mut self, key: PackageKey, submission: Arc<Submission>) {
        if self.get(key).is_some() {
            return;
        }
        self.bytes += size(&submission);
        self.entries.push_back((key, submission));
        while self.bytes > PACKAGES_MAX_BYTES
            && let Some((_, oldest)) = self.entries.pop_front()
        {
            self.bytes -= size(&oldest);
        }
    }
}

fn size(submission: &Submission) -> usize {
    submission.heap.len() + submission.payments.len() * size_of::<PaymentRecord>()
}

/// A thread that panicked left the cache whole: entries are put in and taken out in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
