//! Participants that read their output: all at once, each over a connection of its own, elsewhere when a node is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clearspan_ledger::Bic;
use clearspan_node::api::{ReceiptDocument, Receipts};
use clearspan_node::client::{Ask, ClientError, Reply, Session};
use rustls::ClientConfig;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use super::check::Output;
use crate::cluster::{ClusterError, Sender, io, now};

/// A node that is away or without a leader is asked again after this.
const AGAIN: Duration = Duration::from_millis(20);
/// How long one request is tried.
const PATIENCE: Duration = Duration::from_secs(60);
/// Numbers per answer; a node ends an answer earlier when its documents are long.
const NUMBERS: u64 = 1000;

/// What one participant reads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Only where its output ends.
    End,
    /// From a number to where its output ends now.
    From(u64),
    /// Everything, and its balance.
    Whole,
}

/// What it has read.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    pub(super) output: Output,
    /// The number that its next output will take.
    pub(super) end: u64,
    /// Of answers' bodies.
    pub(super) bytes: u64,
    /// Requests that had to be sent again.
    pub(super) again: u64,
}

/// All participants.
pub(super) struct Readers {
    runtime: Runtime,
    readers: Vec<Reader>,
}

#[derive(Clone)]
struct Reader {
    bic: Bic,
    tls: Arc<ClientConfig>,
    nodes: Vec<String>,
}

/// Readings under way, one for each participant.
pub(super) struct Reading {
    tasks: JoinSet<(usize, Result<Read, ClusterError>)>,
    done: Arc<AtomicU64>,
}

impl Reading {
    /// Participants that have read all.
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

impl Readers {
    /// At any node, or at one alone.
    pub(super) fn new(senders: &[Sender], node: Option<&str>) -> Result<Self, ClusterError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("readers")
            .enable_all()
            .build()
            .map_err(io("start the readers' thread"))?;
        let readers = senders.iter().map(|sender| Reader {
            bic: sender.bic,
            tls: sender.tls.clone(),
            nodes: node.map_or_else(|| sender.nodes.clone(), |node| vec![node.to_owned()]),
        });
        Ok(Self {
            readers: readers.collect(),
            runtime,
        })
    }

    /// Begins: `task` says what the participant at a place reads.
    pub(super) fn start(&self, task: impl Fn(usize) -> Task) -> Reading {
        let mut tasks = JoinSet::new();
        let done = Arc::new(AtomicU64::new(0));
        for (place, reader) in self.readers.iter().enumerate() {
            let (reader, task, done) = (reader.clone(), task(place), done.clone());
            let read = async move {
                let read = Connection::new(reader).run(task).await;
                done.fetch_add(1, Ordering::Relaxed);
                (place, read)
            };
            tasks.spawn_on(read, self.runtime.handle());
        }
        Reading { tasks, done }
    }

    /// Waits for all; in the order of the participants.
    pub(super) fn finish(&self, mut reading: Reading) -> Result<Vec<Read>, ClusterError> {
        let mut all = vec![Read::default(); self.readers.len()];
        while let Some(done) = self.runtime.block_on(reading.tasks.join_next()) {
            let (place, read) =
                done.map_err(|_| ClusterError::Unexpected("a reader's task ended".to_owned()))?;
            if let Some(slot) = all.get_mut(place) {
                *slot = read?;
            }
        }
        Ok(all)
    }

    /// Everything of all.
    pub(super) fn run(&self, task: impl Fn(usize) -> Task) -> Result<Vec<Read>, ClusterError> {
        self.finish(self.start(task))
    }
}

struct Connection {
    reader: Reader,
    at: usize,
    session: Option<Session>,
    read: Read,
}

impl Connection {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            at: 0,
            session: None,
            read: Read::default(),
        }
    }

    async fn run(mut self, task: Task) -> Result<Read, ClusterError> {
        match task {
            Task::End => {
                self.page(1, 0).await?;
            }
            Task::From(from) => self.pages(from).await?,
            Task::Whole => {
                self.pages(1).await?;
                let reply = self.ask("/v1/accounts").await?;
                let accounts: Value = reply.json()?;
                let balances = accounts.as_array().into_iter().flatten();
                self.read.output.balance_minor = balances
                    .filter_map(|account| account.pointer("/balance/minor")?.as_i64())
                    .sum();
            }
        }
        Ok(self.read)
    }

    /// Until where output ended when the first answer was made: what comes meanwhile is another reading's.
    async fn pages(&mut self, from: u64) -> Result<(), ClusterError> {
        let (mut from, mut end) = (from, None);
        loop {
            let page = self.page(from, NUMBERS).await?;
            let end = *end.get_or_insert(page.end);
            for receipt in page.receipts.iter().filter(|receipt| receipt.number < end) {
                self.read.output.holes += u64::from(receipt.number != from);
                from = receipt.number + 1;
                for document in &receipt.documents {
                    forwarded(document, &mut self.read.output.received);
                }
            }
            if from >= end || page.receipts.is_empty() {
                // An answer without numbers before the end would be a hole as well.
                self.read.output.holes += u64::from(from < end);
                self.read.end = end;
                return Ok(());
            }
        }
    }

    async fn page(&mut self, from: u64, max: u64) -> Result<Receipts, ClusterError> {
        let bic = self.reader.bic;
        let path = format!("/v1/receipts?participant={bic}&from={from}&max={max}");
        let reply = self.ask(&path).await?;
        self.read.bytes += reply.body.len() as u64;
        let page: Receipts = reply.json()?;
        self.read.end = page.end;
        Ok(page)
    }

    async fn ask(&mut self, path: &str) -> Result<Reply, ClusterError> {
        let begun = now();
        loop {
            let failed = match self.once(path).await {
                Ok(reply) if reply.status.as_u16() != 503 => return Ok(reply),
                Ok(reply) => reply.refusal(),
                Err(error) => {
                    self.session = None;
                    self.at = (self.at + 1) % self.reader.nodes.len().max(1);
                    error
                }
            };
            if begun.elapsed() > PATIENCE {
                return Err(failed.into());
            }
            self.read.again += 1;
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn once(&mut self, path: &str) -> Result<Reply, ClientError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                let node = self.reader.nodes.get(self.at).map_or("", String::as_str);
                Session::connect(node, self.reader.tls.clone()).await?
            }
        };
        let reply = session.ask(&Ask::get(path)).await?;
        self.session = Some(session);
        Ok(reply)
    }
}

/// UETRs of the payments that a document forwards.
fn forwarded(document: &ReceiptDocument, into: &mut Vec<u128>) {
    if !document.name.starts_with("pacs.008") {
        return;
    }
    for rest in document.xml.split("<UETR>").skip(1) {
        let text = rest.split('<').next().unwrap_or_default();
        let hex: String = text.chars().filter(|&letter| letter != '-').collect();
        // What is no UETR is no payment that was handed in: the check will say so.
        into.push(u128::from_str_radix(&hex, 16).unwrap_or(0));
    }
}

#[test]
fn payments_are_found_in_what_forwards_them() {
    let document = |name: &str| ReceiptDocument {
        file_name: String::new(),
        name: name.to_owned(),
        xml: "<a><UETR>00000000-0000-4000-8000-00000000000a</UETR><UETR>none</UETR></a>".to_owned(),
    };
    let mut found = Vec::new();
    forwarded(&document("pacs.002.001.10"), &mut found);
    assert!(found.is_empty());
    forwarded(&document("pacs.008.001.08"), &mut found);
    assert_eq!(found, [0x4000_8000_0000_0000_000a, 0]);
}
