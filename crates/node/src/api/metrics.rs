//! The node's figures in the OpenMetrics text format, gathered when they are asked for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Api, Problem};

type Labels = Vec<(&'static str, String)>;
type Gauges = Family<Labels, Gauge>;

/// What the interface has answered and refused.
#[derive(Debug, Default)]
pub(super) struct Counts {
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

    /// Counts a connection that was refused at the door between nodes.
    pub fn peer_refused(&self) {
        self.counts.refused_peers.fetch_add(1, Ordering::Relaxed);
    }

    fn exposition(&self) -> Result<String, std::fmt::Error> {
        let status = self.node_status();
        let mut registry = Registry::with_prefix("clearspan");
        let gauges = |registry: &mut Registry, name: &str, help: &str| {
            let family = Gauges::default();
            registry.register(name, help, family.clone());
            family
        };
        let set = |family: &Gauges, labels: Labels, value: u64| {
            family
                .get_or_create(&labels)
                .set(i64::try_from(value).unwrap_or(i64::MAX));
        };
        let ready = gauges(
            &mut registry,
            "ready",
            "Whether every shard has a leader and the disk has room",
        );
        set(&ready, Vec::new(), u64::from(status.ready));
        let full = gauges(
            &mut registry,
            "disk_full",
            "Whether the disk is too full to take anything in",
        );
        set(&full, Vec::new(), u64::from(status.disk_full.is_some()));
        let leads = gauges(
            &mut registry,
            "shard_leader",
            "Whether this node leads the shard",
        );
        let term = gauges(&mut registry, "shard_term", "Raft term");
        let committed = gauges(
            &mut registry,
            "shard_committed_index",
            "Last entry known to be committed",
        );
        let applied = gauges(
            &mut registry,
            "shard_applied_index",
            "Last entry applied on this node",
        );
        let waiting = gauges(
            &mut registry,
            "shard_waiting",
            "Proposals of this node without an outcome",
        );
        for shard in &status.shards {
            let labels = || vec![("shard", shard.shard.to_string())];
            set(&leads, labels(), u64::from(shard.role == "leader"));
            set(&term, labels(), shard.term);
            set(&committed, labels(), shard.committed_index);
            set(&applied, labels(), shard.applied_index);
            set(&waiting, labels(), shard.waiting as u64);
        }
        let up = gauges(&mut registry, "peer_up", "Whether the node is connected");
        let queued = gauges(
            &mut registry,
            "peer_queued_bytes",
            "Bytes that wait to be sent",
        );
        let rtt = Family::<Labels, Gauge<f64, AtomicU64>>::default();
        registry.register_with_unit(
            "peer_rtt",
            "Smoothed round trip",
            Unit::Seconds,
            rtt.clone(),
        );
        let cuts = Family::<Labels, Counter>::default();
        registry.register("peer_cuts", "Standing connections that ended", cuts.clone());
        for node in status.nodes.iter().filter(|node| node.node != status.node) {
            let labels = || vec![("peer", node.node.clone()), ("site", node.site.clone())];
            set(&up, labels(), u64::from(node.up));
            set(&queued, labels(), node.queued_bytes);
            cuts.get_or_create(&labels()).inc_by(node.cuts);
            if let Some(ms) = node.rtt_ms {
                rtt.get_or_create(&labels()).set(ms / 1e3);
            }
        }
        let mut count = |name: &str, help: &str, value: u64| {
            let counter = Counter::<u64>::default();
            counter.inc_by(value);
            registry.register(name, help, counter);
        };
        let log = self.engine.log_counts();
        count(
            "log_written_bytes",
            "Bytes of entries written to the log",
            log.bytes,
        );
        count("log_entries", "Entries written to the log", log.entries);
        count("log_writes", "Writes to the log, each durable", log.writes);
        let refused = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = &self.counts;
        count(
            "refused_clients",
            "Client connections refused before a request",
            refused(&counts.refused_clients),
        );
        count(
            "refused_peers",
            "Connections refused at the door between nodes",
            refused(&counts.refused_peers),
        );
        let answers = Family::<Labels, Counter>::default();
        registry.register(
            "http_answers",
            "Answers by class of status",
            answers.clone(),
        );
        for (class, value) in self.counts.answers.iter().enumerate().skip(2) {
            answers
                .get_or_create(&vec![("class", format!("{class}xx"))])
                .inc_by(value.load(Ordering::Relaxed));
        }
        let mut text = String::new();
        encode(&mut text, &registry)?;
        Ok(text)
    }
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
