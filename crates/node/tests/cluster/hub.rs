//! Carries frames between nodes of one process, and cuts them off.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use clearspan_ledger::nodes::NodeDirectory;
use clearspan_node::engine::Inlet;
use clearspan_node::engine::peers::{PeerFrame, Peers};
use clearspan_replica::MemberId;

#[derive(Default)]
struct State {
    inlets: BTreeMap<MemberId, Inlet>,
    /// Directed pairs between which nothing passes.
    cut: BTreeSet<(MemberId, MemberId)>,
    /// Pieces of snapshots that came through to a member: shard, offset and length.
    pieces: BTreeMap<MemberId, Vec<(u16, u64, usize)>>,
    /// A member is cut off after so many.
    pieces_max: BTreeMap<MemberId, usize>,
    /// Directed pairs between which everything is lost.
    silent: BTreeSet<(MemberId, MemberId)>,
}

impl State {
    fn isolate(&mut self, member: MemberId) {
        for (&other, inlet) in &self.inlets {
            if other != member {
                self.cut.insert((member, other));
                self.cut.insert((other, member));
                inlet.down(member);
                if let Some(own) = self.inlets.get(&member) {
                    own.down(other);
                }
            }
        }
    }
}

/// The wires between the nodes.
#[derive(Clone, Default)]
pub(crate) struct Hub(Arc<Mutex<State>>);

impl Hub {
    /// A node's way out; its way in is `inlet`.
    pub(crate) fn connect(&self, me: MemberId, inlet: Inlet) -> Box<dyn Peers> {
        let mut state = self.0.lock().unwrap();
        for (&other, other_inlet) in &state.inlets {
            if other != me {
                other_inlet.up(me);
                inlet.up(other);
            }
        }
        state.inlets.insert(me, inlet);
        Box::new(Port {
            me,
            hub: self.clone(),
        })
    }

    /// A node is gone.
    pub(crate) fn disconnect(&self, me: MemberId) {
        let mut state = self.0.lock().unwrap();
        state.inlets.remove(&me);
        for inlet in state.inlets.values() {
            inlet.down(me);
        }
    }

    /// Nothing passes from one to the other any more.
    pub(crate) fn cut(&self, from: MemberId, to: MemberId) {
        let mut state = self.0.lock().unwrap();
        state.cut.insert((from, to));
        if let Some(inlet) = state.inlets.get(&from) {
            inlet.down(to);
        }
    }

    /// Cuts a member off from all once so many pieces of snapshots have come through to it.
    pub(crate) fn cut_after_pieces(&self, to: MemberId, count: usize) {
        self.0.lock().unwrap().pieces_max.insert(to, count);
    }

    /// Pieces of snapshots that came through to a member.
    pub(crate) fn pieces(&self, to: MemberId) -> Vec<(u16, u64, usize)> {
        let state = self.0.lock().unwrap();
        state.pieces.get(&to).cloned().unwrap_or_default()
    }

    /// Whether a member is cut off from somebody.
    pub(crate) fn is_cut(&self, member: MemberId) -> bool {
        let state = self.0.lock().unwrap();
        state
            .cut
            .iter()
            .any(|(from, to)| [*from, *to].contains(&member))
    }

    /// Nothing passes from one to the other any more, and nobody is told.
    pub(crate) fn silence(&self, from: MemberId, to: MemberId) {
        self.0.lock().unwrap().silent.insert((from, to));
    }

    /// Everything passes again.
    pub(crate) fn heal(&self) {
        let mut state = self.0.lock().unwrap();
        state.silent.clear();
        for (from, to) in std::mem::take(&mut state.cut) {
            if let Some(inlet) = state.inlets.get(&from) {
                inlet.up(to);
            }
        }
    }
}

struct Port {
    me: MemberId,
    hub: Hub,
}

impl Peers for Port {
    fn send(&mut self, to: MemberId, frame: PeerFrame) -> bool {
        let mut state = self.hub.0.lock().unwrap();
        if state.cut.contains(&(self.me, to)) {
            return false;
        }
        if state.silent.contains(&(self.me, to)) {
            return true;
        }
        if let PeerFrame::SnapshotPiece {
            shard,
            offset_bytes,
            data,
            ..
        } = &frame
        {
            let count = state.pieces.get(&to).map_or(0, Vec::len);
            if state.pieces_max.get(&to) == Some(&count) {
                state.pieces_max.remove(&to);
                state.isolate(to);
                return false;
            }
            let piece = (shard.get(), *offset_bytes, data.len());
            state.pieces.entry(to).or_default().push(piece);
        }
        match state.inlets.get(&to) {
            Some(inlet) => {
                inlet.frame(self.me, frame, Box::new(()));
                true
            }
            None => false,
        }
    }

    fn set_nodes(&mut self, _: &NodeDirectory, _: &BTreeSet<MemberId>) {}

    fn set_lives(&mut self, _: &BTreeMap<MemberId, u64>) {}
}
