//! The same message again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Form;
use crate::asker::Asker;
use crate::record::Told;
use crate::stage::Stage;

const SUBMISSIONS: usize = 1000;
const SENDERS: usize = 10;

/// A thousand times through all nodes at once: one effect and a thousand equal answers, which the checks compare.
pub(super) fn storm(stage: &mut Stage, _: Form) {
    let (message, bank) = stage.fresh_urgent();
    stage.record.act(format!("{SUBMISSIONS} times one message"));
    let answered = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let mut asker = Asker::new(&stage.directory, &bank.bic(), &stage.record);
            let answered = answered.clone();
            std::thread::spawn(move || {
                let mut node = sender;
                while answered.load(Ordering::Relaxed) < SUBMISSIONS {
                    node = (node + 1) % asker.node_count();
                    if matches!(asker.submit(node, message), Told::Taken(_)) {
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    stage.until("a thousand answers", |_| {
        answered.load(Ordering::Relaxed) >= SUBMISSIONS
    });
    for thread in threads {
        thread.join().expect("a client does not panic");
    }
}
