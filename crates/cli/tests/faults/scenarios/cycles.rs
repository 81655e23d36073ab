//! Netting cycles and receipts that are interrupted.

use clearspan_node::crash_points::CYCLE_STEPS;

use super::Form;
use crate::stage::Stage;

/// Waits until no cycle runs, then opens one; it goes on wherever it is interrupted.
fn open(stage: &mut Stage) {
    stage.until("a cycle opens", |stage| stage.open_cycle().is_some());
}

/// Dies where a step has just been applied: the coordinator's leader and another shard's in turn. It starts again and the
/// cycle is finished, by whoever leads then.
pub(super) fn killed_at_every_step(stage: &mut Stage, form: Form) {
    let rounds = if form == Form::Short { 1 } else { 3 };
    let turn = stage.rng.below(2);
    for round in 0..rounds {
        for (at, step) in CYCLE_STEPS.into_iter().enumerate() {
            let shard = u16::from((at + turn + round) % 2 == 1);
            let victim = stage.leader(shard);
            if victim.starts_with('W') {
                // It hands over in a moment and applies nothing.
                continue;
            }
            stage.plan_crash(&victim, step, 1);
            // The clerk opens one as well: whichever comes first runs into it.
            let _ = stage.open_cycle();
            stage.until(&format!("{victim} dies at {step}"), |stage| {
                stage.has_ended(&victim)
            });
            stage.forget_crash(&victim);
            // The whole site goes with it, at every other step.
            if at % 2 == 0 {
                let site = victim[..1].to_owned();
                stage.kill(&site);
                stage.await_service(1);
                stage.restart(&site);
            } else {
                stage.await_service(1);
                stage.restart(&victim);
            }
            // All of it is back before the next blow.
            stage.await_ready();
        }
    }
}

/// A site is lost at some moment of a cycle.
pub(super) fn site_lost_in_a_cycle(stage: &mut Stage, _: Form) {
    open(stage);
    let ms = stage.rng.between(0, 150);
    std::thread::sleep(std::time::Duration::from_millis(ms));
    let site = ["A", "B"][stage.rng.below(2)];
    stage.kill(site);
    stage.await_service(2);
}

/// A site is lost while everybody reads what a cycle brought.
pub(super) fn site_lost_during_receipts(stage: &mut Stage, _: Form) {
    stage.run_cycle();
    let before = stage.record.receipts_read();
    stage.until("receipts are read", |stage| {
        stage.record.receipts_read() > before + 2
    });
    let site = stage.leader(0)[..1].to_owned();
    stage.kill(&site);
    let before = stage.record.receipts_read();
    stage.until("receipts are read from the other site", |stage| {
        stage.record.receipts_read() > before + 5
    });
    stage.await_service(2);
}
