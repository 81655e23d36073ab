//! I9: who has no quorum serves nothing.

use crate::ending::Ending;
use crate::record::{Asked, History, Told};

/// Nothing was acknowledged, and nothing but what is asked for as stale was read, at a node that had no quorum from before
/// the request until after its answer.
pub(super) fn nothing_is_served_without(history: &History, _: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    for op in &history.ops {
        let dark = history.dark.iter().any(|dark| {
            dark.nodes.contains(&op.node)
                && op.from_ns > dark.from_ns
                && dark.to_ns.is_none_or(|to_ns| op.to_ns < to_ns)
        });
        let served = match (&op.asked, &op.told) {
            (Asked::Accounts { stale: true, .. }, _) => false,
            (_, told) => !matches!(
                told,
                Told::Refused(_) | Told::Unknown(_) | Told::Unexpected(_)
            ),
        };
        if dark && served {
            faults.push(format!("I9: served without a quorum: {op:?}"));
        }
    }
    faults
}

#[test]
fn service_in_the_dark_is_found() {
    use super::sample::healthy;
    let (mut history, ending) = healthy();
    let dark = |from_ns, to_ns| crate::record::Dark {
        nodes: vec!["B1".to_owned()],
        from_ns,
        to_ns,
    };
    // Of three requests to that node two are reads, one is not stale.
    let expected = history.ops.iter().filter(|op| op.node == "B1").count();
    history.dark = vec![dark(0, None)];
    assert_eq!(
        nothing_is_served_without(&history, &ending).len(),
        expected - 1
    );
    history.dark = vec![dark(1000, None), dark(0, Some(5))];
    assert_eq!(nothing_is_served_without(&history, &ending).len(), 0);
}
