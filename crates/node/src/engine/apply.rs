//! From a log entry to the ledger.

use bytes::Bytes;
use clearspan_ledger::entry::{Command, Entry};
use clearspan_ledger::{LogIndex, Outcome, Timestamp};
use clearspan_replica::{EntryKind, LogPosition};
use clearspan_storage::{crash_point, stop};

use super::shared::ShardState;

/// Applies a committed entry; without data it is the leader's blank one or a change of the group.
pub(crate) fn apply_entry(
    state: &mut ShardState,
    position: LogPosition,
    data: Option<&Bytes>,
) -> (Timestamp, Outcome) {
    // An entry without a command still has an index of its own, and no time.
    let (time, command) = match data {
        None => (Timestamp::ZERO, Command::Tick),
        Some(data) => clearspan_codec::entry::decode(data.clone()).unwrap_or_else(|error| {
            // It was whole when it was proposed and its checksum holds, so a build that cannot read it must not go on.
            eprintln!(
                "committed entry {} cannot be read by this version",
                position.index
            );
            stop(&error)
        }),
    };
    let deliver = matches!(command, Command::Deliver { .. });
    let outcome = state.ledger.apply(&Entry {
        index: LogIndex::new(position.index),
        time,
        command,
    });
    state.mark.position = position;
    if deliver {
        crash_point("after-deliver");
    }
    (time, outcome)
}

/// Applies an entry as it lies in the log of a group of one, where everything synced is committed.
pub(crate) fn apply_stored(state: &mut ShardState, entry: &clearspan_replica::Entry) {
    let data = (entry.kind == EntryKind::Command && !entry.data.is_empty()).then_some(&entry.data);
    apply_entry(state, entry.position(), data);
}
