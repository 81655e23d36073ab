//! From a log entry to the ledger.

use bytes::Bytes;
use clearspan_ledger::entry::{ChannelMessage, Command, CycleCommand, Entry};
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
    let entry = Entry {
        index: LogIndex::new(position.index),
        time,
        command,
    };
    let outcome = state.ledger.apply(&entry);
    state.mark.position = position;
    step_points(&entry.command);
    (time, outcome)
}

/// Places between the steps of what several shards do together.
fn step_points(command: &Command) {
    match command {
        Command::Cycle(CycleCommand::Open) => crash_point("cycle-opened"),
        Command::Deliver { messages, .. } => {
            crash_point("after-deliver");
            for message in messages {
                match message {
                    ChannelMessage::Cut { .. } => crash_point("cycle-cut"),
                    ChannelMessage::CutSums { .. } => crash_point("cycle-sums"),
                    ChannelMessage::Reserve { .. } => crash_point("cycle-reserve"),
                    ChannelMessage::Reserved { .. } => crash_point("cycle-reserved"),
                    ChannelMessage::Decide { .. } => crash_point("cycle-decide"),
                    ChannelMessage::Posted { .. } => crash_point("cycle-posted"),
                    ChannelMessage::End { .. } => crash_point("cycle-end"),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Applies an entry as it lies in the log of a group of one, where everything synced is committed.
pub(crate) fn apply_stored(state: &mut ShardState, entry: &clearspan_replica::Entry) {
    let data = (entry.kind == EntryKind::Command && !entry.data.is_empty()).then_some(&entry.data);
    apply_entry(state, entry.position(), data);
}
