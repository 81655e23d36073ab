//! What goes wrong, when, and until when. What is broken for good is bounded, so that a correct cluster must recover.

use clearspan_ledger::ShardId;

use crate::plan::{Fault, MS, S};
use crate::reach::reach;
use crate::world::{Event, Phase, World};

/// What ends by itself.
#[derive(Clone, Debug)]
pub(crate) enum FaultEvent {
    Mend(Vec<(usize, usize)>),
    Speed(usize),
    Room(usize),
}

impl World {
    pub(crate) fn fault(&mut self) {
        if self.phase != Phase::Safety || self.faults_made >= self.plan.narrow.faults_max {
            return;
        }
        let wait = self.fault_rng.around(self.plan.fault_every_ns);
        self.after(wait, Event::Fault);
        let kinds = self.plan.faults.clone();
        let kind = self.fault_rng.pick(&kinds);
        let joined: Vec<usize> = (0..self.nodes.len())
            .filter(|&at| self.nodes[at].joined)
            .collect();
        let node = self.fault_rng.pick(&joined);
        let other = (node + 1 + self.fault_rng.index(self.nodes.len() - 1)) % self.nodes.len();
        let long = self.fault_rng.around(S);
        let damages = [Fault::DamagedSnapshot, Fault::DamagedLog, Fault::LatentLog];
        if damages.contains(&kind) && !self.may_be_damaged(node) {
            return;
        }
        self.faults_made += 1;
        self.struck.insert(kind);
        self.say(|| format!("fault {kind:?} at n{node}"));
        match kind {
            Fault::Kill => self.die(node, false),
            Fault::Power => self.die(node, true),
            Fault::PowerAtOperation => {
                let operations = 1 + self.fault_rng.below(12);
                self.nodes[node].disk.cut_after(operations);
            }
            Fault::PowerAll => {
                reach("all nodes lost power");
                self.oracle.power_lost_ns = self.now_ns;
                for node in 0..self.nodes.len() {
                    self.die(node, true);
                }
            }
            Fault::Pause => {
                reach("a node was paused");
                self.nodes[node].paused_until_ns = self.now_ns + long * 2;
                for peer in (0..self.nodes.len()).filter(|&peer| peer != node) {
                    if long * 2 > self.plan.break_after_ns && self.net.pair(node, peer).connected {
                        let now = self.now_ns;
                        self.net
                            .pair_mut(node, peer)
                            .cut_since_ns
                            .get_or_insert(now);
                        let (a, b) = (node.min(peer), node.max(peer));
                        self.after(self.plan.break_after_ns, Event::Notice { a, b });
                    }
                }
            }
            Fault::Cut => {
                reach("a link was cut both ways");
                self.cut_all(vec![(node, other), (other, node)], long);
            }
            Fault::CutOneWay => {
                reach("a link was cut one way");
                self.cut_all(vec![(node, other)], long);
            }
            Fault::Isolate => {
                reach("a node was isolated");
                let links = self.between(|at| at == node);
                self.cut_all(links, long);
            }
            Fault::CutSite => {
                reach("a site was cut off");
                let site = self.plan.sites[node];
                let sites = self.plan.sites.clone();
                let links = self.between(|at| sites[at] == site);
                self.cut_all(links, long);
            }
            Fault::Bridge => {
                reach("a bridge node saw both sides");
                let half = self.nodes.len() / 2;
                let count = self.nodes.len();
                let side = |at: usize| (at + count - node) % count <= half;
                let links = self.between(side);
                let links = links
                    .into_iter()
                    .filter(|&(a, b)| a != node && b != node)
                    .collect();
                self.cut_all(links, long);
            }
            Fault::Break => {
                if self.net.pair(node, other).connected {
                    self.disconnect(node, other);
                }
            }
            Fault::SlowDisk => {
                reach("a disk was slow");
                self.nodes[node].slow = self.fault_rng.pick(&[10, 100]);
                self.after(long * 2, Event::FaultEnd(FaultEvent::Speed(node)));
            }
            Fault::FullDisk => {
                reach("a disk was full");
                self.nodes[node].disk.set_full(true);
                self.after(long, Event::FaultEnd(FaultEvent::Room(node)));
            }
            Fault::ClockJump => {
                reach("a clock jumped");
                let by = self.fault_rng.pick(&[30 * MS, S, 60 * S, 3600 * S]);
                let by = i64::try_from(by).unwrap_or(0);
                let forwards = self.fault_rng.per_mille(500);
                self.nodes[node].offset_ns += if forwards { by } else { -by };
                if by >= 1_000_000_000 {
                    reach("clocks differed by over a second");
                }
            }
            Fault::DamagedSnapshot => {
                let shard = self.some_shard();
                reach("a snapshot was damaged");
                self.damage_snapshot(node, shard);
            }
            Fault::DamagedLog => {
                let shard = self.some_shard();
                self.damage_log(node, shard);
                self.die(node, false);
            }
            // Its process reads on until it comes to the place.
            Fault::LatentLog => {
                let shard = self.some_shard();
                reach("a log was damaged under a living node");
                self.damage_log(node, shard);
            }
            Fault::FailedSync => {
                reach("a sync was to fail");
                self.nodes[node].disk.fail_next_sync();
            }
            Fault::Members => {
                self.change_members();
            }
            // In force all the time.
            Fault::Datagrams | Fault::Drift | Fault::FullQueues => {}
        }
    }

    fn some_shard(&mut self) -> ShardId {
        let shard = self.fault_rng.below(u64::from(self.plan.shards));
        ShardId::new(u16::try_from(shard).unwrap_or(0))
    }

    /// All directed links between the two sides.
    fn between(&self, side: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let mut links = Vec::new();
        for a in 0..self.nodes.len() {
            for b in 0..self.nodes.len() {
                if a != b && side(a) != side(b) {
                    links.push((a, b));
                }
            }
        }
        links
    }

    fn cut_all(&mut self, links: Vec<(usize, usize)>, long: u64) {
        for &(from, to) in &links {
            self.cut(from, to);
        }
        self.after(long, Event::FaultEnd(FaultEvent::Mend(links)));
    }

    pub(crate) fn end_fault(&mut self, end: FaultEvent) {
        match end {
            FaultEvent::Mend(links) => {
                for (from, to) in links {
                    self.mend(from, to);
                }
            }
            FaultEvent::Speed(node) => self.nodes[node].slow = 1,
            FaultEvent::Room(node) => self.nodes[node].disk.set_full(false),
        }
    }
}
