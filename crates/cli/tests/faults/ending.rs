//! The end of a run: everything healed, open questions asked again, all at rest, then everything read from every node.

use std::collections::BTreeMap;

use clearspan_lab::clock::now_ns;
use clearspan_node::api::Receipts;
use clearspan_node::client::Ask;
use serde_json::Value;

use crate::asker::{Asker, accounts, receipt};
use crate::checks;
use crate::record::{Account, Asked, Receipt, Told};
use crate::stage::Stage;
use crate::world::Bank;

/// A participant's part in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Net {
    pub(crate) bank: Bank,
    pub(crate) currency: String,
    pub(crate) opening: i128,
    pub(crate) paid: i128,
    pub(crate) received: i128,
    pub(crate) closing: i128,
}

/// A cycle as a node tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) number: u64,
    pub(crate) state: String,
    pub(crate) results: Vec<Net>,
}

/// What one node holds, without asking anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) node: String,
    pub(crate) accounts: Vec<Account>,
    pub(crate) cycles: Vec<Cycle>,
    pub(crate) streams: BTreeMap<Bank, Vec<Receipt>>,
}

/// What all nodes hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) views: Vec<View>,
}

impl Stage {
    /// Heals, waits until all is at rest, reads it and holds it against the record.
    ///
    /// # Panics
    /// When something does not hold or does not come to rest; the record and the data are kept.
    pub(crate) fn finish(&mut self, name: &str) {
        let start_ns = now_ns();
        self.heal();
        // With traffic still running: the first acknowledgement through every node.
        let mut served_ms = 0;
        for node in self.data_nodes(None) {
            let more = self.record.acknowledged(std::slice::from_ref(&node)) + 1;
            self.until(&format!("{node} serves again"), |stage| {
                stage.record.acknowledged(std::slice::from_ref(&node)) >= more
            });
            served_ms = (now_ns() - start_ns) / 1_000_000;
        }
        self.figure(
            &format!("{name}: healed to served by every node"),
            served_ms,
        );
        self.rest();
        self.resolve();
        self.run_cycle();
        let rest_ms = self.await_rest();
        self.figure(&format!("{name}: last cycle to all at rest"), rest_ms);
        let ending = self.read_everything();
        let (faults, counts) = self.record.with(|history| {
            let ops = history.ops.iter();
            let open = ops.filter(|op| matches!(op.told, Told::Unknown(_))).count();
            let counts = format!(
                "{} messages, {} requests, {open} without an answer",
                history.messages.len(),
                history.ops.len()
            );
            (checks::all(history, &ending), counts)
        });
        println!("  {name}: {counts}, {} faults", faults.len());
        if !faults.is_empty() {
            self.fail(&faults);
        }
    }

    /// Asks again, by the same id, whatever has no answer yet and might have been done.
    fn resolve(&mut self) {
        let open: Vec<(usize, String)> = self.record.with(|history| {
            let mut known = vec![false; history.messages.len()];
            let mut unknown = known.clone();
            for op in &history.ops {
                if let Asked::Submit(message) = op.asked {
                    known[message] |= matches!(op.told, Told::Taken(_));
                    unknown[message] |= matches!(op.told, Told::Unknown(_));
                }
            }
            let places = 0..history.messages.len();
            places
                .filter(|&at| unknown[at] && !known[at])
                .map(|at| (at, history.messages[at].sender.bic()))
                .collect()
        });
        for (message, sender) in open {
            let mut asker = Asker::new(&self.directory, &sender, &self.record);
            self.until("an open message gets its answer", |stage| {
                let node = asker.pick(&mut stage.rng);
                !matches!(
                    asker.submit(node, message),
                    Told::Unknown(_) | Told::Refused(_)
                )
            });
        }
    }

    fn read_everything(&mut self) -> Ending {
        let nodes = 0..self.auditor.node_count();
        Ending {
            views: nodes.map(|node| self.view(node)).collect(),
        }
    }

    fn view(&mut self, node: usize) -> View {
        let get = |stage: &mut Self, path: String| -> Value {
            let mut found = Value::Null;
            stage.until(&path, |stage| {
                match stage.auditor.json(node, &Ask::get(&path)) {
                    Ok(value) => {
                        found = value;
                        true
                    }
                    Err(_) => false,
                }
            });
            found
        };
        let all = get(self, "/v1/accounts?stale=true".to_owned());
        let cycles = get(self, "/v1/cycles?stale=true".to_owned());
        let mut streams = BTreeMap::new();
        for bank in Bank::all() {
            let (mut stream, mut from) = (Vec::new(), 1);
            loop {
                let bic = bank.bic();
                let path =
                    format!("/v1/receipts?participant={bic}&from={from}&max=1000&stale=true");
                let answer: Receipts =
                    serde_json::from_value(get(self, path)).expect("receipts have this shape");
                stream.extend(answer.receipts.iter().map(receipt));
                if answer.next >= answer.end {
                    break;
                }
                from = answer.next;
            }
            streams.insert(bank, stream);
        }
        View {
            node: self.auditor.node_name(node).to_owned(),
            accounts: accounts(&all),
            cycles: cycles.as_array().into_iter().flatten().map(cycle).collect(),
            streams,
        }
    }
}

fn cycle(value: &Value) -> Cycle {
    let minor = |value: &Value| -> i128 { value["minor"].as_i64().unwrap_or(i64::MIN).into() };
    let net = |result: &Value| {
        Some(Net {
            bank: Bank::find(result["participant"].as_str()?)?,
            currency: result["paid"]["currency"].as_str()?.to_owned(),
            opening: minor(&result["opening"]),
            paid: minor(&result["paid"]),
            received: minor(&result["received"]),
            closing: minor(&result["closing"]),
        })
    };
    let results = value["results"].as_array().into_iter().flatten();
    Cycle {
        number: value["cycle"].as_u64().unwrap_or(0),
        state: value["state"].as_str().unwrap_or_default().to_owned(),
        results: results.filter_map(net).collect(),
    }
}
