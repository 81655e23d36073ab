//! The node's figures in the OpenMetrics text format, gathered when they are asked for.

mod table;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use clearspan_ledger::{CyclePhase, ShardId};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::door::Places;
use super::{Api, Problem};
use crate::clock::Clock;

use self::table as m;
use super::status::{EndedCycle, NodeStatus, ShardState, phase_name};
use table::Kind;
pub(super) use table::{METRICS, Metric};

type Labels = Vec<(&'static str, String)>;

/// Why a connection was ended that its client had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// A head that did not end.
    Head,
    /// A body that came too slowly.
    Body,
    /// A request that took too long.
    Request,
    /// A client that did not take its answer.
    Reader,
    /// No request.
    Idle,
    /// Too many connections.
    Full,
}

impl Cut {
    const ALL: [(Self, &'static str); 6] = [
        (Self::Head, "head"),
        (Self::Body, "body"),
        (Self::Request, "request"),
        (Self::Reader, "reader"),
        (Self::Idle, "idle"),
        (Self::Full, "full"),
    ];
}

/// How many connections were ended, by why.
#[derive(Debug, Default)]
pub(super) struct Cuts([AtomicU64; Cut::ALL.len()]);

impl Cuts {
    pub(super) fn count(&self, cut: Cut) {
        if let Some(count) = self.0.get(cut as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn read(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = Cut::ALL.iter().map(|(_, name)| *name);
        names.zip(self.0.iter().map(|count| count.load(Ordering::Relaxed)))
    }
}

/// What the interface has answered and refused.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) cuts: Arc<Cuts>,
    pub(super) places: Arc<Places>,
    /// By the first digit of the status.
    answers: [AtomicU64; 6],
    /// Connections that were refused before a request: no certificate, a wrong one, no TLS.
    refused_clients: AtomicU64,
    /// The same at the door between nodes.
    refused_peers: AtomicU64,
}

impl Counts {
    pub(super) fn answered(&self, status: StatusCode) {
        if let Some(count) = self.answers.get(usize::from(status.as_u16() / 100)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Api {
    /// Counts a client's connection that was refused before its first request.
    pub fn client_refused(&self) {
        self.counts.refused_clients.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that is ended.
    pub(super) fn cut(&self, cut: Cut) {
        self.counts.cuts.count(cut);
    }

    /// Counts a connection that was refused at the door between nodes.
    pub fn peer_refused(&self) {
        self.counts.refused_peers.fetch_add(1, Ordering::Relaxed);
    }

    fn exposition(&self) -> Result<String, std::fmt::Error> {
        let status = self.node_status();
        let figures = Figures::new();
        figures.set(&m::READY, &[], u64::from(status.ready));
        figures.set(&m::DISK_FULL, &[], u64::from(status.disk_full.is_some()));
        let volumes = [
            ("log", status.log_free_bytes),
            ("packages", status.packages_free_bytes),
        ];
        for (volume, free) in volumes {
            if let Some(free) = free {
                figures.set(&m::DISK_FREE, &[volume], free);
            }
        }
        let replicas = status.nodes.iter().filter(|node| node.kind == "data");
        let compares = status.kind == "data" && replicas.count() > 1;
        for shard in &status.shards {
            let disputed = self.engine.disputed(ShardId::new(shard.shard)).is_some();
            figures.set(
                &m::SHARD_DISPUTED,
                &[&shard.shard.to_string()],
                u64::from(disputed),
            );
            figures.shard(shard);
            if compares {
                figures.comparisons(shard);
            }
        }
        self.peers(&figures, &status);
        figures.queues(&status);
        figures.day(&status);
        self.rates(&figures);
        self.counters(&figures);
        if let Some(certificates) = self.certificates.get() {
            for (file, days) in certificates.days_left(Clock::System.now()) {
                figures.set_signed(&m::CERTIFICATE_DAYS, &[file], days);
            }
        }
        figures.text()
    }

    fn rates(&self, figures: &Figures) {
        let now = self.engine.steady();
        for (lane, level) in ["urgent", "bulk"]
            .into_iter()
            .zip(self.rates.node_level(now).into_iter().flatten())
        {
            figures.set(&m::RATE_NODE_LEVEL, &[lane], level);
        }
        for (who, level) in self.rates.levels(now) {
            let who = who.to_string();
            for (lane, level) in [("urgent", level.urgent), ("bulk", level.bulk)] {
                if let Some(level) = level {
                    figures.set(&m::RATE_LEVEL, &[&who, lane], level);
                }
            }
            if let Some(level) = level.bytes {
                figures.set(&m::RATE_LEVEL_BYTES, &[&who], level);
            }
            let refused = [
                ("urgent", level.refused_urgent),
                ("bulk", level.refused_bulk),
                ("bytes", level.refused_bytes),
            ];
            for (what, count) in refused {
                figures.set(&m::RATE_REFUSED, &[&who, what], count);
            }
        }
    }

    fn peers(&self, figures: &Figures, status: &NodeStatus) {
        for node in status.nodes.iter().filter(|node| node.node != status.node) {
            let labels = [node.node.as_str(), node.site.as_str()];
            figures.set(&m::PEER_UP, &labels, u64::from(node.up));
            figures.set(&m::PEER_QUEUED, &labels, node.queued_bytes);
            figures.set(&m::PEER_CUTS, &labels, node.cuts);
            let round_trips = [
                (&m::PEER_RTT, node.rtt_ms),
                (&m::PEER_RTT_P50, node.rtt_p50_ms),
                (&m::PEER_RTT_P99, node.rtt_p99_ms),
            ];
            for (metric, ms) in round_trips {
                if let Some(ms) = ms {
                    figures.set_seconds(metric, &labels, ms / 1e3);
                }
            }
        }
        let peers = self.links.as_ref().map(crate::links::Links::status);
        for peer in peers.unwrap_or_default() {
            let Some(node) = self.definition.member(peer.member) else {
                continue;
            };
            let site = self.site_of(node.site);
            for (at, lane) in ["urgent", "bulk"].into_iter().enumerate() {
                let labels = [node.name.as_str(), site.as_str(), lane];
                let bytes = |all: [u64; 2]| all.get(at).copied().unwrap_or(0);
                figures.set(&m::PEER_SENT, &labels, bytes(peer.sent_bytes));
                figures.set(&m::PEER_RECEIVED, &labels, bytes(peer.received_bytes));
            }
        }
    }

    fn counters(&self, figures: &Figures) {
        let log = self.engine.log_counts();
        figures.set(&m::LOG_BYTES, &[], log.bytes);
        figures.set(&m::LOG_ENTRIES, &[], log.entries);
        figures.set(&m::LOG_WRITES, &[], log.writes);
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        figures.set(&m::REFUSED_CLIENTS, &[], read(&counts.refused_clients));
        figures.set(&m::REFUSED_PEERS, &[], read(&counts.refused_peers));
        figures.set(&m::HTTP_CONNECTIONS, &[], counts.places.count() as u64);
        for (why, count) in counts.cuts.read() {
            figures.set(&m::HTTP_CUTS, &[why], count);
        }
        for (class, count) in counts.answers.iter().enumerate().skip(2) {
            figures.set(&m::HTTP_ANSWERS, &[&format!("{class}xx")], read(count));
        }
    }
}

/// One answer's figures.
struct Figures {
    registry: Registry,
    families: BTreeMap<&'static str, Figure>,
}

enum Figure {
    Gauge(Family<Labels, Gauge>),
    Seconds(Family<Labels, Gauge<f64, AtomicU64>>),
    Counter(Family<Labels, Counter>),
}

impl Figures {
    fn new() -> Self {
        let mut registry = Registry::with_prefix("clearspan");
        let families = METRICS.iter().map(|metric| {
            let Metric { name, help, .. } = *metric;
            let figure = match metric.kind {
                Kind::Gauge => {
                    let family = Family::default();
                    registry.register(name, help, Family::clone(&family));
                    Figure::Gauge(family)
                }
                Kind::Seconds => {
                    let family = Family::default();
                    registry.register_with_unit(name, help, Unit::Seconds, Family::clone(&family));
                    Figure::Seconds(family)
                }
                Kind::Counter => {
                    let family = Family::default();
                    registry.register(name, help, Family::clone(&family));
                    Figure::Counter(family)
                }
            };
            (name, figure)
        });
        let families = families.collect();
        Self { registry, families }
    }

    fn set(&self, metric: &Metric, values: &[&str], value: u64) {
        let labels = labels(metric, values);
        match self.families.get(metric.name) {
            Some(Figure::Gauge(_)) => {
                self.set_signed(metric, values, i64::try_from(value).unwrap_or(i64::MAX));
            }
            Some(Figure::Counter(family)) => {
                family.get_or_create(&labels).inc_by(value);
            }
            Some(Figure::Seconds(_)) | None => debug_assert!(false, "{metric:?} is set otherwise"),
        }
    }

    /// Of a gauge that may be less than nothing.
    fn set_signed(&self, metric: &Metric, values: &[&str], value: i64) {
        match self.families.get(metric.name) {
            Some(Figure::Gauge(family)) => {
                family.get_or_create(&labels(metric, values)).set(value);
            }
            Some(Figure::Counter(_) | Figure::Seconds(_)) | None => {
                debug_assert!(false, "{metric:?} is set otherwise");
            }
        }
    }

    fn set_seconds(&self, metric: &Metric, values: &[&str], seconds: f64) {
        let labels = labels(metric, values);
        match self.families.get(metric.name) {
            Some(Figure::Seconds(family)) => {
                family.get_or_create(&labels).set(seconds);
            }
            Some(Figure::Gauge(_) | Figure::Counter(_)) | None => {
                debug_assert!(false, "{metric:?} is set otherwise");
            }
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn set_ns(&self, metric: &Metric, values: &[&str], ns: u64) {
        self.set_seconds(metric, values, ns as f64 / 1e9);
    }

    fn shard(&self, shard: &ShardState) {
        let name = shard.shard.to_string();
        let set = |metric: &Metric, value: u64| self.set(metric, &[&name], value);
        set(&m::SHARD_LEADER, u64::from(shard.role == "leader"));
        set(&m::SHARD_HAS_LEADER, u64::from(shard.leader.is_some()));
        set(&m::SHARD_TERM, shard.term);
        set(&m::SHARD_COMMITTED, shard.committed_index);
        set(&m::SHARD_APPLIED, shard.applied_index);
        set(&m::SHARD_SNAPSHOT, shard.snapshot_index);
        set(&m::SHARD_WAITING, shard.waiting as u64);
        let fetched = shard.catching_up.as_ref();
        set(&m::CATCH_UP_RUNNING, u64::from(fetched.is_some()));
        set(&m::CATCH_UP_HAVE, fetched.map_or(0, |it| it.have_bytes));
        set(&m::CATCH_UP_STATE, fetched.map_or(0, |it| it.state_bytes));
        for peer in &shard.peers {
            let labels = [name.as_str(), peer.node.as_str()];
            self.set(&m::LAG_ENTRIES, &labels, peer.lag_entries);
            self.set(&m::LAG_BYTES, &labels, peer.lag_bytes);
            self.set_ns(&m::LAG_TIME, &labels, peer.lag_ns);
            self.set(&m::IN_FLIGHT, &labels, peer.in_flight_entries);
        }
    }

    fn comparisons(&self, shard: &ShardState) {
        let name = shard.shard.to_string();
        let results = [
            ("same", shard.digests_same),
            ("differ", shard.digests_differed),
        ];
        for (result, count) in results {
            self.set(&m::DIGESTS, &[&name, result], count);
        }
    }

    fn queues(&self, status: &NodeStatus) {
        let queues = status.queues;
        let commands = [
            ("urgent", queues.urgent),
            ("bulk", queues.bulk),
            ("forwarded", queues.forwarded),
            ("parked", queues.parked),
        ];
        for (queue, count) in commands {
            self.set(&m::QUEUE_COMMANDS, &[queue], count);
        }
        self.set(&m::QUEUE_IN_FLIGHT, &[], queues.in_flight_bytes);
        self.set(&m::QUEUE_LOG, &[], queues.log_writes);
        self.set(&m::QUEUE_PACKAGES, &[], queues.packages);
    }

    fn day(&self, status: &NodeStatus) {
        self.set(&m::DAY_OPEN, &[], u64::from(status.business_day.is_some()));
        if let Some(payments) = status.payments {
            let states = [
                ("accepted", payments.accepted),
                ("settled", payments.settled),
                ("netting", payments.netting),
                ("queued", payments.queued),
                ("refused", payments.refused),
                ("ended", payments.ended),
                ("cancelled", payments.cancelled),
            ];
            for (state, count) in states {
                self.set(&m::PAYMENTS, &[state], count);
            }
        }
        let running = status.cycle.as_ref();
        for phase in [
            CyclePhase::Cutting,
            CyclePhase::Reserving,
            CyclePhase::Posting,
        ] {
            let phase = phase_name(phase);
            let is_in = running.is_some_and(|cycle| cycle.phase == phase);
            self.set(&m::CYCLE_PHASE, &[phase], u64::from(is_in));
        }
        self.set(
            &m::CYCLE_ROUND,
            &[],
            running.map_or(0, |cycle| cycle.round.into()),
        );
        if let Some(EndedCycle {
            cycle, duration_ns, ..
        }) = status.last_cycles.first()
        {
            self.set(&m::CYCLE_LAST, &[], u64::from(*cycle));
            self.set_ns(&m::CYCLE_LAST_TIME, &[], *duration_ns);
        }
    }

    fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

fn labels(metric: &Metric, values: &[&str]) -> Labels {
    debug_assert_eq!(metric.labels.len(), values.len(), "{metric:?}");
    let names = metric.labels.iter().copied();
    names
        .zip(values.iter().map(|value| (*value).to_owned()))
        .collect()
}

pub(super) async fn metrics(State(api): State<Arc<Api>>) -> Result<Response, Problem> {
    let text = api
        .blocking(|api| {
            api.exposition()
                .map_err(|_| Problem::internal("the figures cannot be written"))
        })
        .await?;
    let content = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, content)], text).into_response())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{Figures, Kind, METRICS};

    #[test]
    fn what_the_table_names_is_what_is_exposed() {
        let figures = Figures::new();
        for metric in METRICS {
            let values = vec!["some"; metric.labels.len()];
            match metric.kind {
                Kind::Seconds => figures.set_seconds(metric, &values, 1.5),
                Kind::Gauge | Kind::Counter => figures.set(metric, &values, 1),
            }
        }
        let text = figures.text().expect("a text");
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let exposed: BTreeSet<&str> = lines
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        let named: Vec<String> = METRICS.iter().map(super::Metric::full_name).collect();
        let names: BTreeSet<&str> = named.iter().map(String::as_str).collect();
        assert_eq!(names.len(), METRICS.len(), "a name stands twice");
        assert_eq!(exposed, names);
    }
}
