//! A client that asks the node it is told to, once, and writes down what came of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clearspan_lab::clock::{SECOND_NS, now_ns};
use clearspan_node::api::{Answer, ReceiptDocument, Receipts};
use clearspan_node::client::{Ask, Client, ClientError, Reply, Retry};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::messages::{elements, hash};
use crate::record::{Account, Asked, Document, Op, Position, Receipt, Record, Taken, Told};
use crate::rng::Rng;
use crate::world::Bank;

/// A node that has not answered by now is asked again, or another one is.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// A node that did not answer at all is left alone for so long.
const SHUN_NS: u64 = SECOND_NS;
/// Codes that promise that nothing was done and nothing will be.
const NOTHING_DONE: [&str; 5] = ["NO_QUORUM", "NOT_TAKEN", "DISK_FULL", "BUSY", "RATE"];
/// Codes that leave it open.
const OPEN: [&str; 3] = ["UNKNOWN", "STOPPING", "BEHIND"];

/// Where a client finds nodes, and by what it knows them.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    /// Names and addresses of the data nodes.
    pub(crate) nodes: Vec<(String, String)>,
    pub(crate) certificates: std::path::PathBuf,
    pub(crate) ca: std::path::PathBuf,
}

pub(crate) struct Asker {
    name: String,
    /// Name, client, and until when it is left alone.
    nodes: Vec<(String, Client, u64)>,
    /// The one that took the last message.
    good: Option<usize>,
    record: Arc<Record>,
}

impl Asker {
    /// With the certificate of this name.
    pub(crate) fn new(directory: &Directory, certificate: &str, record: &Arc<Record>) -> Self {
        let file = |end: &str| directory.certificates.join(format!("{certificate}.{end}"));
        let client = |address: &String| {
            open(address, &file("crt"), &file("key"), &directory.ca).with_limit(ANSWER_TIMEOUT)
        };
        Self {
            name: certificate.to_owned(),
            nodes: directory
                .nodes
                .iter()
                .map(|(name, address)| (name.clone(), client(address), 0))
                .collect(),
            good: None,
            record: record.clone(),
        }
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn node_name(&self, node: usize) -> &str {
        &self.nodes[node].0
    }

    /// Mostly the node that took the last message, as long as it takes them; else one by lot.
    pub(crate) fn pick_for_message(&self, rng: &mut Rng) -> usize {
        match self.good {
            Some(good) if rng.below(3) > 0 => good,
            _ => self.pick(rng),
        }
    }

    /// A node by lot, one that has just failed to answer only if there is no other.
    pub(crate) fn pick(&self, rng: &mut Rng) -> usize {
        let now = now_ns();
        let good: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| self.nodes[node].2 <= now)
            .collect();
        let at = rng.below(good.len().max(1));
        good.get(at)
            .copied()
            .unwrap_or_else(|| rng.below(self.nodes.len()))
    }

    /// A node other than this one.
    pub(crate) fn pick_other(&self, rng: &mut Rng, than: usize) -> usize {
        let other = self.pick(rng);
        if other == than {
            (than + 1) % self.nodes.len()
        } else {
            other
        }
    }

    /// Asks, and writes it down.
    fn ask(
        &mut self,
        node: usize,
        asked: Asked,
        ask: &Ask<'_>,
        read: impl FnOnce(Reply) -> Result<Told, ClientError>,
    ) -> Told {
        let from_ns = now_ns();
        let (name, client, shun_until) = &mut self.nodes[node];
        let reply = client.send(ask);
        let to_ns = now_ns();
        if reply.is_err() {
            *shun_until = to_ns + SHUN_NS;
        }
        let told = reply
            .and_then(read)
            .unwrap_or_else(|fault| classify(&fault));
        let op = Op {
            client: self.name.clone(),
            node: name.clone(),
            asked,
            from_ns,
            to_ns,
            told: told.clone(),
        };
        self.record.with(|history| history.ops.push(op));
        told
    }

    /// Hands in a message of the record.
    pub(crate) fn submit(&mut self, node: usize, message: usize) -> Told {
        let (xml, urgent) = self.record.with(|history| {
            let message = &history.messages[message];
            (message.xml.clone(), message.is_urgent())
        });
        let ask = Ask {
            content_type: "application/xml",
            ..Ask::post("/v1/messages", xml, Retry::Always)
        };
        let told = self.ask(node, Asked::Submit(message), &ask, |reply| {
            let answer: Answer = reply.json()?;
            Ok(taken(&answer, urgent))
        });
        if matches!(told, Told::Taken(_)) {
            self.good = Some(node);
        } else if self.good == Some(node) {
            self.good = None;
        }
        told
    }

    /// Reads accounts: one bank's or, with a certificate that may, everybody's.
    pub(crate) fn accounts(&mut self, node: usize, bank: Option<Bank>, stale: bool) -> Told {
        let mut path = format!("/v1/accounts?stale={stale}");
        if let Some(bank) = bank {
            path.push_str("&participant=");
            path.push_str(&bank.bic());
        }
        self.ask(
            node,
            Asked::Accounts { bank, stale },
            &Ask::get(&path),
            |reply| Ok(Told::Accounts(accounts(&reply.json()?))),
        )
    }

    /// Looks a payment up.
    pub(crate) fn payment(&mut self, node: usize, id: &str) -> Told {
        let path = format!("/v1/payments/{id}");
        let asked = Asked::Payment { id: id.to_owned() };
        self.ask(node, asked, &Ask::get(&path), |reply| {
            if reply.status.as_u16() == 404 {
                return Ok(Told::Payment("none".to_owned(), None));
            }
            let found: Vec<Value> = reply.json()?;
            let first = found.first().cloned().unwrap_or_default();
            let status = first["status"].as_str().unwrap_or("none").to_owned();
            Ok(Told::Payment(status, position(&first["settled"])))
        })
    }

    /// Reads output from a number on.
    pub(crate) fn receipts(&mut self, node: usize, bank: Bank, from: u64) -> Told {
        let path = format!(
            "/v1/receipts?participant={}&from={from}&max=200",
            bank.bic()
        );
        self.ask(
            node,
            Asked::Receipts { bank, from },
            &Ask::get(&path),
            |reply| {
                let receipts: Receipts = reply.json()?;
                Ok(Told::Receipts(
                    receipts.receipts.iter().map(receipt).collect(),
                ))
            },
        )
    }

    /// Anything else; it is not part of the record.
    pub(crate) fn json<T: DeserializeOwned>(
        &mut self,
        node: usize,
        ask: &Ask<'_>,
    ) -> Result<T, ClientError> {
        self.nodes[node].1.json(ask)
    }
}

fn open(address: &str, certificate: &Path, key: &Path, ca: &Path) -> Client {
    Client::new(&[address.to_owned()], certificate, key, ca, Duration::ZERO)
        .expect("the lab's certificates can be used")
}

fn classify(fault: &ClientError) -> Told {
    match fault {
        ClientError::Refused { code, .. } if NOTHING_DONE.contains(&code.as_str()) => {
            Told::Refused(code.clone())
        }
        ClientError::Refused { code, .. } if OPEN.contains(&code.as_str()) => {
            Told::Unknown(code.clone())
        }
        ClientError::Unreachable(why) => Told::Unknown(why.clone()),
        other => Told::Unexpected(other.to_string()),
    }
}

fn taken(answer: &Answer, urgent: bool) -> Told {
    let (Some(message_no), Some(answer_no)) = (answer.message_no, answer.answer_no) else {
        return Told::Unexpected(format!("{answer:?}"));
    };
    let repeat = match answer.status.as_str() {
        "taken" => false,
        "repeat" => true,
        _ => return Told::Unexpected(format!("{answer:?}")),
    };
    let text: String = answer
        .documents
        .iter()
        .map(|document| document.xml.as_str())
        .collect();
    // A stored answer differs from the first by its mark alone.
    let text = text.replace("<PssblDplct>true</PssblDplct>", "");
    let settled = elements(&text, "ClrSysRef").first().and_then(|place| {
        let (shard, index) = place.split_once(':')?;
        Some(Position {
            shard: shard.parse().ok()?,
            index: index.parse().ok()?,
        })
    });
    Told::Taken(Taken {
        repeat,
        message_no,
        answer_no,
        refused: answer.refused.unwrap_or(0),
        hash: hash(&text),
        settled: settled.filter(|_| urgent),
        cancelled: elements(&text, "TxCxlSts").contains(&"ACCR"),
    })
}

fn position(value: &Value) -> Option<Position> {
    Some(Position {
        shard: u16::try_from(value["shard"].as_u64()?).ok()?,
        index: value["index"].as_u64()?,
    })
}

/// A list of accounts as a node tells it.
pub(crate) fn accounts(value: &Value) -> Vec<Account> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(account).collect()
}

fn account(value: &Value) -> Option<Account> {
    Some(Account {
        bank: Bank::find(value["participant"].as_str()?)?,
        currency: value["balance"]["currency"].as_str()?.to_owned(),
        minor: value["balance"]["minor"].as_i64()?.into(),
        at: position(&value["as_of"])?,
    })
}

pub(crate) fn receipt(receipt: &clearspan_node::api::Receipt) -> Receipt {
    let document = |document: &ReceiptDocument| {
        let texts = |name| elements(&document.xml, name);
        Document {
            hash: hash(&document.xml),
            answers: texts("OrgnlMsgId").first().map(|id| (*id).to_owned()),
            forwards: if document.name.starts_with("pacs.008") {
                texts("TxId").iter().map(|id| (*id).to_owned()).collect()
            } else {
                Vec::new()
            },
            name: document.name.clone(),
        }
    };
    Receipt {
        number: receipt.number,
        documents: receipt.documents.iter().map(document).collect(),
    }
}
