//! I10: the same log, the same state.

use std::collections::BTreeMap;

use crate::ending::Ending;
use crate::record::History;

/// Whoever stood at the same place of a shard's log had the same digest there.
pub(super) fn are_equal(history: &History, _: &Ending) -> Vec<String> {
    let mut known = BTreeMap::new();
    let mut faults = Vec::new();
    for look in &history.looks {
        let first = known.entry(look.at).or_insert(look);
        if first.digest != look.digest {
            faults.push(format!("I10: {first:?} and {look:?}"));
        }
    }
    faults
}

#[test]
fn another_state_at_the_same_place_is_found() {
    use super::sample::healthy;
    let (mut history, ending) = healthy();
    history.looks[1].digest = "other".to_owned();
    assert_eq!(are_equal(&history, &ending).len(), 1);
    history.looks[1].at.index += 1;
    assert_eq!(are_equal(&history, &ending).len(), 0);
}
