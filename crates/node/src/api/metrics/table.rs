//! Every figure at `/metrics`: its name, kind, labels and meaning, once, for the exposition and the reference alike.

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) struct Metric {
    /// Without the prefix `clearspan_`, and without what the kind adds.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
}

/// How a figure behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Kind {
    /// It goes up and down.
    Gauge,
    /// A length of time that goes up and down; its name ends in `_seconds`.
    Seconds,
    /// It grows from the process's start; its name ends in `_total`.
    Counter,
}

impl Metric {
    /// As it stands in the exposition.
    pub(in crate::api) fn full_name(&self) -> String {
        let end = match self.kind {
            Kind::Gauge => "",
            Kind::Seconds => "_seconds",
            Kind::Counter => "_total",
        };
        format!("clearspan_{}{end}", self.name)
    }

    /// `gauge` or `counter`.
    pub(in crate::api) const fn type_name(&self) -> &'static str {
        match self.kind {
            Kind::Gauge | Kind::Seconds => "gauge",
            Kind::Counter => "counter",
        }
    }

    pub(in crate::api) const fn labels(&self) -> &'static [&'static str] {
        self.labels
    }

    pub(in crate::api) const fn help(&self) -> &'static str {
        self.help
    }
}

macro_rules! metrics {
    ($($id:ident $kind:ident $name:literal [$($label:literal),*] $help:literal)*) => {
        $(pub(super) const $id: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*
        /// All of them, in the order of the exposition.
        pub(in crate::api) const METRICS: &[Metric] = &[$($id),*];
    };
}

metrics! {
    READY Gauge "ready" [] "Whether every shard has a leader and is served, and the disk has room"
    DISK_FULL Gauge "disk_full" [] "Whether the disk is too full to take anything in"
    DISK_FREE Gauge "disk_free_bytes" ["volume"] "Free bytes on the volume of the log and on that of the packages"
    SHARD_LEADER Gauge "shard_leader" ["shard"] "Whether this node leads the shard"
    SHARD_HAS_LEADER Gauge "shard_has_leader" ["shard"] "Whether this node knows a leader of the shard"
    SHARD_TERM Gauge "shard_term" ["shard"] "Raft term"
    SHARD_COMMITTED Gauge "shard_committed_index" ["shard"] "Last entry known to be committed"
    SHARD_APPLIED Gauge "shard_applied_index" ["shard"] "Last entry applied on this node"
    SHARD_SNAPSHOT Gauge "shard_snapshot_index" ["shard"] "Entry at which the newest snapshot stands"
    SHARD_WAITING Gauge "shard_waiting" ["shard"] "Proposals of this node without an outcome"
    SHARD_DISPUTED Gauge "shard_disputed" ["shard"] "Whether replicas' digests differ and the shard is not served here"
    DIGESTS Counter "digest_comparisons" ["shard", "result"] "Digests of other replicas held against this one's at the same entry: same or differ; nothing where no other node keeps a ledger"
    CATCH_UP_RUNNING Gauge "shard_catch_up" ["shard"] "Whether this node fetches a snapshot because it is behind the leader's log"
    CATCH_UP_HAVE Gauge "shard_catch_up_have_bytes" ["shard"] "Bytes of that snapshot's state that are here; 0 without one"
    CATCH_UP_STATE Gauge "shard_catch_up_state_bytes" ["shard"] "All bytes of that snapshot's state; 0 without one"
    LAG_ENTRIES Gauge "shard_peer_lag_entries" ["shard", "peer"] "Entries that a member is not known to have; told by the shard's leader only"
    LAG_BYTES Gauge "shard_peer_lag_bytes" ["shard", "peer"] "Their bytes; of the first 16,384 at most"
    LAG_TIME Seconds "shard_peer_lag" ["shard", "peer"] "How long ago the oldest of them was proposed"
    IN_FLIGHT Gauge "shard_peer_in_flight_entries" ["shard", "peer"] "Entries sent to the member and not yet answered"
    PEER_UP Gauge "peer_up" ["peer", "site"] "Whether the node is connected"
    PEER_QUEUED Gauge "peer_queued_bytes" ["peer", "site"] "Bytes that wait to be sent"
    PEER_RTT Seconds "peer_rtt" ["peer", "site"] "Smoothed round trip"
    PEER_RTT_P50 Seconds "peer_rtt_p50" ["peer", "site"] "Half of the last two minutes' round trips were no longer"
    PEER_RTT_P99 Seconds "peer_rtt_p99" ["peer", "site"] "99 of 100 of them were no longer"
    PEER_CUTS Counter "peer_cuts" ["peer", "site"] "Standing connections that ended"
    PEER_SENT Counter "peer_sent_bytes" ["peer", "site", "lane"] "Bytes sent, before encryption; lane is urgent or bulk"
    PEER_RECEIVED Counter "peer_received_bytes" ["peer", "site", "lane"] "Bytes received, after decryption"
    QUEUE_COMMANDS Gauge "queue_commands" ["queue"] "Commands that wait: urgent or bulk to be taken up, forwarded to their leaders, parked without one"
    QUEUE_IN_FLIGHT Gauge "queue_in_flight_bytes" [] "Bytes of commands that were taken up and have no outcome"
    QUEUE_LOG Gauge "queue_log_writes" [] "Writes that wait for the log"
    QUEUE_PACKAGES Gauge "queue_packages" [] "Packages that wait for the package store"
    DAY_OPEN Gauge "business_day_open" [] "Whether a business day is open"
    PAYMENTS Gauge "day_payments" ["state"] "The day's payments, or the last day's, by what has become of them; a witness knows none"
    CYCLE_PHASE Gauge "cycle_phase" ["phase"] "1 for the phase that the running netting cycle is in: cutting, reserving or posting"
    CYCLE_ROUND Gauge "cycle_round" [] "Its round of reserving; 0 without a running cycle"
    CYCLE_LAST Gauge "cycle_last" [] "Number of the last netting cycle that ended"
    CYCLE_LAST_TIME Seconds "cycle_last_duration" [] "How long it took from cut-off to end, in log time"
    RATE_REFUSED Counter "rate_refused" ["participant", "what"] "Messages refused because their sender or the node was over its rate; what is urgent, bulk, or bytes for those that were not read"
    RATE_LEVEL Gauge "rate_level_payments" ["participant", "lane"] "Payments that the participant may hand in at once; only of those with a limit who have handed in something"
    RATE_LEVEL_BYTES Gauge "rate_level_bytes" ["participant"] "Bytes that the participant may hand in at once"
    RATE_NODE_LEVEL Gauge "rate_node_level_payments" ["lane"] "Payments that the node takes at once of all participants together, where it has a limit"
    LOG_BYTES Counter "log_written_bytes" [] "Bytes of entries written to the log"
    LOG_ENTRIES Counter "log_entries" [] "Entries written to the log"
    LOG_WRITES Counter "log_writes" [] "Writes to the log, each durable"
    REFUSED_CLIENTS Counter "refused_clients" [] "Client connections refused before a request"
    REFUSED_PEERS Counter "refused_peers" [] "Connections refused at the door between nodes"
    HTTP_CONNECTIONS Gauge "http_connections" [] "Connections of participants, operators and auditors"
    HTTP_CUTS Counter "http_cuts" ["why"] "Connections that the node ended: a head or body that came too slowly, a request that took too long, a reader that did not take its answer, idle ones, those above a limit (full)"
    CERTIFICATE_DAYS Gauge "certificate_days_left" ["file"] "Whole days until a certificate, authority or revocation list of this node ends, of a file with several the first; below 0 once it has"
    HTTP_ANSWERS Counter "http_answers" ["class"] "Answers by class of status"
}
