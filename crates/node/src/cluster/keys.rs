//! Every key of `node.toml` and `cluster.toml`, once: its table, kind, range, usual value and meaning, for the check of the
//! files, for the faults that are told, and for `docs/reference/node.md`.

use clearspan_codec::frame::BODY_MAX_BYTES;
use serde::Serialize;
use toml::Spanned;

use crate::engine::{CATCH_UP_BYTES_PER_S, ELECTION_NS};
use crate::settings::SHARDS_MAX;

const MIB: u64 = 1 << 20;
/// Above this a size is a mistake in the unit: 16 TiB.
const SIZE_MAX_MIB: u64 = 16 << 20;
/// The largest frame between nodes must fit.
const FRAME_MIB: u64 = BODY_MAX_BYTES as u64 / MIB + 1;
/// Above this a rate is a mistake in the unit.
const PAYMENTS_MAX_PER_S: u64 = 1_000_000_000;
/// Above this no line is as fast: 1 TiB.
const MIB_PER_S_MAX: u64 = 1 << 20;

/// A key of a file.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Key {
    /// The table in which it stands, as its head is written; empty at the top of the file.
    pub table: &'static str,
    /// Its name; `NAME` and `BIC` stand for names that the file's writer gives.
    pub name: &'static str,
    /// What its value is.
    #[serde(flatten)]
    pub kind: Kind,
    /// What holds without it.
    pub usual: Usual,
    /// What it does.
    pub meaning: &'static str,
}

/// What a key's value is.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A text.
    Text,
    /// A path, from the file's directory when it is relative.
    Path,
    /// Host and port.
    Address,
    /// One of some words.
    Word {
        /// Which.
        words: &'static [&'static str],
    },
    /// An integer.
    Number {
        /// Of what; empty for a plain count.
        unit: &'static str,
        /// The least.
        min: u64,
        /// The greatest.
        max: u64,
    },
}

/// What holds without a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Usual {
    /// Nothing: it must be given.
    Required,
    /// This number.
    Number(u64),
    /// Something else, for people.
    Else(&'static str),
}

/// Where a fault stands, in bytes from the file's beginning, and what it is.
pub(crate) type Fault = (usize, String);

impl Key {
    /// Its number, where it is given.
    ///
    /// # Errors
    /// When it is out of range: says the range.
    pub(crate) fn given(&self, setting: Option<&Spanned<i64>>) -> Result<Option<u64>, Fault> {
        let Some(setting) = setting else {
            return Ok(None);
        };
        let given = *setting.get_ref();
        let Kind::Number { unit, min, max } = self.kind else {
            return Err((setting.span().start, format!("{} is no number", self.name)));
        };
        match u64::try_from(given) {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => {
                let unit = if unit.is_empty() {
                    String::new()
                } else {
                    format!(" {unit}")
                };
                let usual = match self.usual {
                    Usual::Number(usual) => format!("; without it {usual}"),
                    Usual::Required | Usual::Else(_) => String::new(),
                };
                let name = self.name;
                let what = format!("{name} is {given}; give {min} to {max}{unit}{usual}");
                Err((setting.span().start, what))
            }
        }
    }

    /// Its number, or the usual one; 0 for a key that has none.
    ///
    /// # Errors
    /// As [`Self::given`].
    pub(crate) fn number(&self, setting: Option<&Spanned<i64>>) -> Result<u64, Fault> {
        let usual = match self.usual {
            Usual::Number(usual) => usual,
            Usual::Required | Usual::Else(_) => 0,
        };
        Ok(self.given(setting)?.unwrap_or(usual))
    }

    /// Its size in bytes, of a key in MiB.
    ///
    /// # Errors
    /// As [`Self::given`].
    pub(crate) fn bytes(&self, setting: Option<&Spanned<i64>>) -> Result<u64, Fault> {
        Ok(self.number(setting)? * MIB)
    }
}

const fn mib(min: u64, max: u64) -> Kind {
    Kind::Number {
        unit: "MiB",
        min,
        max,
    }
}

const fn number(unit: &'static str, min: u64, max: u64) -> Kind {
    Kind::Number { unit, min, max }
}

/// How long a leader may be silent. Below, a slow fsync or a busy machine costs a leader its lead; above, nobody would call
/// it automatic.
pub(crate) const ELECTION_RANGE_MS: (u64, u64) = (200, 60_000);
const ELECTION: Kind = number("ms", ELECTION_RANGE_MS.0, ELECTION_RANGE_MS.1);

/// Time for the second operator: a look takes a minute, and after a week nobody remembers.
const FOUR_EYES_MINUTES: Kind = number("minutes", 1, 10_080);

/// A client needs a connection, and a system has so many ports.
const CONNECTIONS_MAX: u64 = 60_000;
/// Below it nobody is served over distance, above it is no limit.
const CLIENT_TIME: Kind = number("ms", 50, 3_600_000);
/// Numbers are given out one after the other and never again; there is no greatest.
const MEMBER: Kind = number("", 1, i64::MAX as u64);

macro_rules! keys {
    ($(#[$doc:meta])* $all:ident: $($id:ident $table:literal $name:literal ($kind:expr) ($usual:expr) $meaning:literal)*) => {
        $(pub(super) const $id: Key = Key {
            table: $table,
            name: $name,
            kind: $kind,
            usual: $usual,
            meaning: $meaning,
        };)*
        $(#[$doc])*
        pub const $all: &[Key] = &[$($id),*];
    };
}

keys! {
    /// All of `node.toml`, in the order of the reference.
    NODE_KEYS:
    DEFINITION "" "definition" (Kind::Path) (Usual::Required) "The cluster's definition, `cluster.toml`."
    NODE "" "node" (Kind::Text) (Usual::Required) "This node's name: that of a founder in the definition, or its own with a table `joined`."
    DATA "" "data" (Kind::Path) (Usual::Required) "Its data directory, this node's alone."
    LOG_DATA "" "log_data" (Kind::Path) (Usual::Else("`log` in `data`")) "Where its log lies: the disk whose fsync every payment waits for."
    PACKAGE_DATA "" "package_data" (Kind::Path) (Usual::Else("`packages` in `data`")) "Where its packages lie: what is written once and read when somebody asks."
    CERTIFICATE "[tls]" "certificate" (Kind::Path) (Usual::Required) "Its certificate, shown to nodes and clients."
    KEY "[tls]" "key" (Kind::Path) (Usual::Required) "The certificate's key; nobody but its owner may read it."
    NODES_CA "[tls]" "nodes_ca" (Kind::Path) (Usual::Required) "Certificate of the authority that other nodes' certificates must be signed by."
    CLIENTS_CA "[tls]" "clients_ca" (Kind::Path) (Usual::Required) "The same for participants, operators and auditors."
    NODES_CRL "[tls]" "nodes_crl" (Kind::Path) (Usual::Else("nobody is revoked")) "List of other nodes' certificates that are no longer admitted, one of each authority in `nodes_ca`. A list that is named must be there at the start."
    CLIENTS_CRL "[tls]" "clients_crl" (Kind::Path) (Usual::Else("nobody is revoked")) "The same for participants, operators and auditors."
    JOINED_SITE "[joined]" "site" (Kind::Text) (Usual::Required) "Of a node that came after the founding, written by `clearspan admin node add` like the rest of this table: its site."
    JOINED_KIND "[joined]" "kind" (Kind::Word { words: &["data", "witness"] }) (Usual::Required) "Whether it keeps everything, or the log only."
    JOINED_ID "[joined]" "id" (Kind::Text) (Usual::Required) "Its random identity, 32 hexadecimal digits."
    JOINED_MEMBER "[joined]" "member" (MEMBER) (Usual::Required) "Its number in the shards' groups; none is given twice."
    JOINED_PEER "[joined]" "peer" (Kind::Address) (Usual::Required) "Where other nodes reach it."
    JOINED_CLIENT "[joined]" "client" (Kind::Address) (Usual::Required) "Where participants and operators reach it."
    JOINED_HTTP "[joined]" "http" (Kind::Address) (Usual::Else("nowhere")) "Where metrics and probes are, without TLS."
    LISTEN_PEER "[listen]" "peer" (Kind::Address) (Usual::Else("its address in the definition")) "Where it listens for other nodes, when something stands between."
    LISTEN_CLIENT "[listen]" "client" (Kind::Address) (Usual::Else("its address in the definition")) "Where it listens for participants and operators."
    LISTEN_HTTP "[listen]" "http" (Kind::Address) (Usual::Else("its address in the definition, else nowhere")) "Where it listens for probes and scrapers, without TLS."
    SEGMENT "[log]" "segment_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(64)) "Length of one file of the log."
    PURGE_ABOVE "[log]" "purge_above_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(1024)) "Above this the log gives files back that snapshots have made superfluous."
    PREFILL "[log]" "prefill_mib" (mib(0, SIZE_MAX_MIB)) (Usual::Number(128)) "Files kept ready for the log, so that a write need not wait for the file system; 0 keeps none."
    LOG_RESERVE "[log]" "reserve_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(256)) "Kept free on the log's volume: below, nothing is taken in."
    CACHE "[packages]" "cache_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(64)) "Memory for packages that are read."
    PACKAGES_RESERVE "[packages]" "reserve_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(256)) "Kept free on the packages' volume: below, nothing is taken in."
    SNAPSHOT_AFTER "[limits]" "snapshot_after_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(256)) "A shard's snapshot is taken after so much log; a restart replays no more."
    ELECTION_MS "[limits]" "election_ms" (ELECTION) (Usual::Else("the definition's")) "How long a leader may be silent before another is elected, on this node instead of what the definition says for all."
    CATCH_UP "[limits]" "catch_up_mib_per_s" (mib(0, SIZE_MAX_MIB)) (Usual::Number(CATCH_UP_BYTES_PER_S / MIB)) "How fast snapshots and packages leave for nodes that catch up, MiB each second, all together; 0 is no limit. They share the lines between sites with payments."
    BULK_QUEUE "[limits]" "bulk_queue_mib" (mib(FRAME_MIB, SIZE_MAX_MIB)) (Usual::Number(64)) "Data that waits for one other node: bandwidth times round trip and more. A node that lets more wait is cut off."
    URGENT_QUEUE "[limits]" "urgent_queue_mib" (mib(1, SIZE_MAX_MIB)) (Usual::Number(8)) "The same for what goes before data."
    INBOUND "[limits]" "inbound_mib" (mib(FRAME_MIB, SIZE_MAX_MIB)) (Usual::Number(64)) "What one other node has sent, each way of two, and this one has not dealt with; more is not read."
    SOCKET_BUFFER "[limits]" "socket_buffer_mib" (mib(1, 1024)) (Usual::Else("as the system sizes them")) "Buffers of sockets that carry data: over regions bandwidth times round trip, where the system's maxima are lower."
    EACH_PAYMENTS "[rate]" "payments_per_s" (number("payments each second", 0, PAYMENTS_MAX_PER_S)) (Usual::Number(0)) "What each participant may hand in at this node; 0 is no limit."
    EACH_MIB "[rate]" "mib_per_s" (number("MiB each second", 0, MIB_PER_S_MAX)) (Usual::Number(0)) "The same in bytes of messages."
    NODE_PAYMENTS "[rate]" "node_payments_per_s" (number("payments each second", 0, PAYMENTS_MAX_PER_S)) (Usual::Number(0)) "What all participants together may hand in at this node; 0 is no limit."
    BURST "[rate]" "burst_ms" (number("ms", 100, 3_600_000)) (Usual::Number(2000)) "For so long everything may be saved up that was not used. Give a participant's largest package room in it."
    URGENT_PERCENT "[rate]" "urgent_percent" (number("%", 0, 90)) (Usual::Number(10)) "Of what is saved up, bulk leaves so much to urgent messages."
    OWN_PAYMENTS "[rate.participant.BIC]" "payments_per_s" (number("payments each second", 0, PAYMENTS_MAX_PER_S)) (Usual::Else("that of `[rate]`")) "What this participant may hand in, instead."
    OWN_MIB "[rate.participant.BIC]" "mib_per_s" (number("MiB each second", 0, MIB_PER_S_MAX)) (Usual::Else("that of `[rate]`")) "The same in bytes of messages."
    CONNECTIONS "[http]" "connections" (number("", 1, CONNECTIONS_MAX)) (Usual::Number(4096)) "Connections of clients at once; keep the system's limit of open files (`ulimit -n`) well above it."
    CLIENT_CONNECTIONS "[http]" "connections_per_client" (number("", 1, CONNECTIONS_MAX)) (Usual::Number(256)) "The same of one participant, operator or auditor; what is above is answered 503 `BUSY` and closed."
    BODIES "[http]" "bodies_per_client_mib" (mib(64, 1 << 20)) (Usual::Number(256)) "Bodies of one client that are read or worked at, all together."
    HEAD "[http]" "head_kib" (number("KiB", 1, 32)) (Usual::Number(8)) "A request's first line and headers; above it 431 `HEAD_TOO_LARGE`."
    HEAD_TIMEOUT "[http]" "head_timeout_ms" (CLIENT_TIME) (Usual::Number(5000)) "From a head's first byte to its last; then 408 `SLOW`."
    IDLE_TIMEOUT "[http]" "idle_timeout_ms" (CLIENT_TIME) (Usual::Number(30_000)) "A connection without a request is closed."
    REQUEST_TIMEOUT "[http]" "request_timeout_ms" (CLIENT_TIME) (Usual::Number(120_000)) "From a request's head to its answer."
    FLOOR "[http]" "floor_bytes_per_s" (number("bytes each second", 1, 1 << 30)) (Usual::Number(4096)) "How fast a body must come and an answer must be taken, on the average."
    GRACE "[http]" "grace_ms" (CLIENT_TIME) (Usual::Number(10_000)) "For how long either may stand still."
    PEER_ADDRESS "[peer_address]" "NAME" (Kind::Address) (Usual::Else("its address in the definition")) "Where another node is dialled from here. It is read again whenever nodes come."
}

keys! {
    /// All of `cluster.toml`, in the order of the reference.
    CLUSTER_KEYS:
    CLUSTER "" "cluster" (Kind::Text) (Usual::Required) "The cluster's random identity, 32 hexadecimal digits. Fixed for good, as are the others here but `election_ms` and `four_eyes_minutes`."
    SHARDS "" "shards" (number("", 1, SHARDS_MAX as u64)) (Usual::Required) "How many shards the participants are spread over."
    CLEARING_HOUSE "" "clearing_house" (Kind::Text) (Usual::Required) "The clearing house's own BIC: the sender of all output."
    CLUSTER_ELECTION "" "election_ms" (ELECTION) (Usual::Number(ELECTION_NS / 1_000_000)) "How long a leader may be silent before another is elected: ten round trips between sites at least, and ten times the disk's slowest fsync. `clearspan init --rtt-ms` derives it. It may be changed on all nodes, one restart after the other."
    FOUR_EYES "" "four_eyes_minutes" (FOUR_EYES_MINUTES) (Usual::Else("one operator is enough")) "Acts that make money or change who has a vote take two operators, and a request waits so long for the second. Once in force it stays, whatever stands here."
    SITE_NAME "[[site]]" "name" (Kind::Text) (Usual::Required) "A site's name: 1 to 32 letters, digits and hyphens."
    NODE_NAME "[[node]]" "name" (Kind::Text) (Usual::Required) "A founder's name: 1 to 32 letters, digits and hyphens."
    NODE_SITE "[[node]]" "site" (Kind::Text) (Usual::Required) "The site it stands in."
    NODE_KIND "[[node]]" "kind" (Kind::Word { words: &["data", "witness"] }) (Usual::Required) "Whether it keeps everything, or the log only and votes."
    NODE_ID "[[node]]" "id" (Kind::Text) (Usual::Required) "Its random identity, 32 hexadecimal digits; its certificate names it."
    NODE_MEMBER "[[node]]" "member" (MEMBER) (Usual::Required) "Its number in the shards' groups, each once."
    NODE_PEER "[[node]]" "peer" (Kind::Address) (Usual::Required) "Where other nodes reach it."
    NODE_CLIENT "[[node]]" "client" (Kind::Address) (Usual::Required) "Where participants and operators reach it."
    NODE_HTTP "[[node]]" "http" (Kind::Address) (Usual::Else("nowhere")) "Where metrics and probes are, without TLS."
}
