//! Asking several nodes beside each other: who is asked and does not answer soon may be cut off without knowing it, and a
//! line that drops packets never says so. The same request is never done twice.

use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::{Instant, sleep_until};

use super::{Failed, Reply, Session, Tried};

/// After so long another node is asked too: above what an answer takes over regions while nothing is wrong, and a third of
/// what one is promised in when a site is lost. It doubles with every round, so that a slow cluster is not asked ever more.
const HASTE: Duration = Duration::from_millis(600);
const HASTE_MAX: Duration = Duration::from_secs(20);
/// When all were asked and none has said anything, so many times as long are waited before they are asked anew.
const QUIET_MAX: u32 = 5;

type Answer = Result<(Reply, Session), Failed>;

/// All nodes, each as far as can be from the one before: nodes of one site mostly stand beside each other.
pub(super) fn order(first: usize, count: usize) -> Vec<usize> {
    let half = count.div_ceil(2);
    let turns = (0..half).flat_map(|turn| [turn, turn + half]);
    turns
        .filter(|turn| *turn < count)
        .map(|turn| (first + turn) % count)
        .collect()
}

/// Asks the nodes in their order, each when those before it have not answered soon, or not with what was wanted. The first
/// final answer counts; without one, the last.
pub(super) async fn race<F: Future<Output = Answer>>(
    order: &[usize],
    mut ask: impl FnMut(usize) -> F,
    round: usize,
    left: Duration,
) -> Tried {
    let doubled = HASTE.saturating_mul(1 << round.min(8));
    let haste = doubled.min(HASTE_MAX);
    let deadline = Instant::now() + left.max(haste);
    let mut running: Vec<(usize, Pin<Box<F>>)> = Vec::new();
    let mut coming = order.iter().copied();
    let mut last: Option<Tried> = None;
    let mut unsure = false;
    // How often it was waited since the last node was asked.
    let mut quiet = 0;
    loop {
        if let Some(at) = coming.next() {
            running.push((at, Box::pin(ask(at))));
            quiet = 0;
        }
        let enough = if last.is_some() { 1 } else { QUIET_MAX };
        if running.is_empty() || quiet >= enough || Instant::now() >= deadline {
            break;
        }
        let until = (Instant::now() + haste).min(deadline);
        let one = std::future::poll_fn(|cx| {
            for (place, (at, answer)) in running.iter_mut().enumerate() {
                if let Poll::Ready(result) = answer.as_mut().poll(cx) {
                    return Poll::Ready((place, *at, result));
                }
            }
            Poll::Pending
        });
        let (place, at, result) = tokio::select! {
            one = one => one,
            () = sleep_until(until) => {
                quiet += 1;
                continue;
            }
        };
        drop(running.remove(place));
        let tried = Tried {
            result,
            at,
            abandoned: false,
        };
        // Over its rate nobody turns to another node, unless the first is not heard at all.
        let over_its_rate = matches!(
            &tried.result,
            Ok((reply, _)) if reply.status == StatusCode::TOO_MANY_REQUESTS
        );
        if tried.is_final() || (over_its_rate && running.is_empty()) {
            return tried;
        }
        unsure |= tried.is_unsure();
        last = Some(tried);
    }
    let abandoned = unsure || !running.is_empty();
    match last {
        Some(tried) => Tried { abandoned, ..tried },
        None => Tried {
            result: Err(Failed {
                why: "no node answered in time".to_owned(),
                sent: true,
            }),
            at: order.first().copied().unwrap_or(0),
            abandoned,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn every_node_comes_once_and_the_next_is_far() {
        assert_eq!(order(0, 1), [0]);
        assert_eq!(order(1, 2), [1, 0]);
        assert_eq!(order(1, 3), [1, 0, 2]);
        assert_eq!(order(0, 4), [0, 2, 1, 3]);
        assert_eq!(order(3, 5), [3, 1, 4, 2, 0]);
        for count in 1..9 {
            let mut all = order(count / 2, count);
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }
}
