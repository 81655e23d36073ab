//! I7: output is the same, byte for byte, on every node and whenever it is read.

use crate::ending::Ending;
use crate::record::{Asked, History, Told};

/// Every node has the same numbers with the same bytes, and what was read earlier still stands.
pub(super) fn are_exact(history: &History, ending: &Ending) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(first) = ending.views.first() else {
        return faults;
    };
    for view in &ending.views {
        for (bank, stream) in &view.streams {
            if first.streams.get(bank) != Some(stream) {
                faults.push(format!(
                    "I7: {} and {} have different output for {bank:?}",
                    view.node, first.node
                ));
            }
        }
    }
    for op in &history.ops {
        let (Asked::Receipts { bank, .. }, Told::Receipts(receipts)) = (&op.asked, &op.told) else {
            continue;
        };
        let stream = first.streams.get(bank).map_or(&[][..], Vec::as_slice);
        for receipt in receipts {
            if !stream.contains(receipt) {
                faults.push(format!(
                    "I7: number {} of {bank:?} was other at {} before",
                    receipt.number, op.node
                ));
            }
        }
    }
    faults
}

#[test]
fn other_bytes_are_found() {
    use super::sample::healthy;
    use crate::world::{Bank, Role};
    let (history, mut ending) = healthy();
    let stream = ending.views[1].streams.get_mut(&Bank::new(Role::Teller, 0));
    stream.expect("it has one")[0].documents[0].hash += 1;
    assert_eq!(are_exact(&history, &ending).len(), 1);

    let (mut history, ending) = healthy();
    for op in &mut history.ops {
        if let Told::Receipts(receipts) = &mut op.told {
            receipts[0].documents[0].hash += 1;
        }
    }
    assert_eq!(are_exact(&history, &ending).len(), 1);
}
