//! A participant's numbered output: replay from any number, wait for more, say what is safely stored.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use clearspan_ledger::entry::Command;
use clearspan_ledger::{Bic, ParticipantId, Reply, ShardId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::access::Caller;
use super::extract::{Json, Query};
use super::items::{ItemState, read_item};
use super::{Api, Code, Problem, must_name, subject};
use crate::documents::{Document, DocumentError};
use crate::engine::Lane;

/// Numbers per answer when nothing is said.
const DEFAULT_MAX_NUMBERS: u64 = 100;
/// The most numbers of one answer.
const MAX_NUMBERS: u64 = 1000;
/// No further number is begun above this many bytes of documents.
const ANSWER_TARGET_BYTES: usize = 16 << 20;
/// What an item as JSON counts for in an answer.
const ITEM_BYTES: usize = 1 << 10;
/// The longest wait for the first number.
const WAIT_MAX_MS: u64 = 60_000;
/// How often a waiting request looks whether something came.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// How many answers are formed at once. Forming a number keeps the ledgers as they are for as long as it takes, so an entry
/// waits for all numbers that are being formed: no more than there are cores to form them. Others wait their turn.
#[derive(Debug)]
pub(super) struct Forming(Semaphore);

impl Default for Forming {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Semaphore::new(cores))
    }
}

/// Which numbers.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// Whose, for an auditor.
    participant: Option<String>,
    /// The first number; after what was acknowledged when left out.
    from: Option<u64>,
    /// How many numbers at most: 100 when left out, 1,000 at most.
    max: Option<u64>,
    /// How long to wait for the first number, in milliseconds, 60,000 at most.
    #[serde(default)]
    wait_ms: u64,
    /// `xml`: documents. `json`: what each number says, as an object. `both`. Documents when left out.
    #[serde(default)]
    format: Format,
    /// What this node holds, without asking whether there is more.
    #[serde(default)]
    stale: bool,
}

/// In which form output is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Xml,
    Json,
    Both,
}

/// Output numbers with their documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipts {
    /// Whose.
    pub participant: String,
    /// The first number that is still kept.
    pub first: u64,
    /// The number that the next output will take.
    pub end: u64,
    /// The highest number that the participant said it has.
    pub acknowledged: u64,
    /// Where to go on.
    pub next: u64,
    /// The numbers, in order and without holes.
    pub receipts: Vec<Receipt>,
}

/// One output number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    /// The number.
    pub number: u64,
    /// What it says; with `format=json` or `both`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemState>,
    /// Its documents: receipt or notice first, forwarded payments after it. None with `format=json`.
    pub documents: Vec<ReceiptDocument>,
}

/// One document, byte for byte the same at every node and every time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptDocument {
    /// As in an outbox: `00000012-pacs.002.xml`.
    pub file_name: String,
    /// Message definition.
    pub name: String,
    /// The message.
    pub xml: String,
}

impl ReceiptDocument {
    pub(super) fn of(document: Document) -> Result<Self, Problem> {
        Ok(Self {
            file_name: document.file_name,
            name: document.name,
            xml: String::from_utf8(document.bytes)
                .map_err(|_| Problem::internal("a document is not UTF-8"))?,
        })
    }
}

/// Where a participant's output stands on this node.
#[derive(Clone, Copy)]
struct Bounds {
    first: u64,
    end: u64,
    acknowledged: u64,
}

fn bounds(api: &Api, home: ShardId, participant: ParticipantId) -> Bounds {
    api.engine.with_ledger(home, |ledger| {
        ledger.stream(participant).map_or(
            Bounds {
                first: 1,
                end: 1,
                acknowledged: 0,
            },
            |stream| Bounds {
                first: stream
                    .iter()
                    .next()
                    .map_or(stream.next_number(), |item| item.number),
                end: stream.next_number(),
                acknowledged: stream.acknowledged(),
            },
        )
    })
}

pub(super) async fn read(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(range): Query<Range>,
) -> Result<Json<Receipts>, Problem> {
    let bic = must_name(subject(range.participant.as_deref(), &caller)?)?;
    let stale = range.stale;
    let (participant, home) = api
        .blocking(move |api| {
            let (participant, home) = api.find(bic, stale)?;
            api.catch_up([home], stale)?;
            Ok((participant, home))
        })
        .await?;
    let deadline =
        tokio::time::Instant::now() + Duration::from_millis(range.wait_ms.min(WAIT_MAX_MS));
    loop {
        let Bounds {
            first,
            end,
            acknowledged,
        } = bounds(&api, home, participant);
        let from = range.from.unwrap_or_else(|| (acknowledged + 1).max(first));
        if from < first {
            return Err(Problem::new(
                Code::RetentionEnded,
                format!("output is kept from number {first} on"),
            ));
        }
        if from < end || tokio::time::Instant::now() >= deadline {
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    let Ok(_turn) = api.forming.0.acquire().await else {
        return Err(Problem::internal("nothing is formed any more"));
    };
    api.blocking(move |api| gather(api, bic, participant, home, &range))
        .await
        .map(Json)
}

fn gather(
    api: &Api,
    bic: Bic,
    participant: ParticipantId,
    home: ShardId,
    range: &Range,
) -> Result<Receipts, Problem> {
    let Bounds {
        first,
        end,
        acknowledged,
    } = bounds(api, home, participant);
    let from = range.from.unwrap_or_else(|| (acknowledged + 1).max(first));
    let max = range.max.unwrap_or(DEFAULT_MAX_NUMBERS).min(MAX_NUMBERS);
    let to = end.min(from.saturating_add(max));
    let (mut receipts, mut bytes) = (Vec::new(), 0);
    for number in from..to {
        if bytes >= ANSWER_TARGET_BYTES {
            break;
        }
        let documents = if range.format == Format::Json {
            Vec::new()
        } else {
            form(api, participant, number, range.stale)?
        };
        let item = if range.format == Format::Xml {
            None
        } else {
            // An item is small; documents of the largest would be a hundred times as much.
            bytes += ITEM_BYTES;
            Some(read_item(api, participant, home, number, range.stale)?)
        };
        bytes += documents
            .iter()
            .map(|document| document.bytes.len())
            .sum::<usize>();
        let documents: Result<Vec<_>, _> = documents.into_iter().map(ReceiptDocument::of).collect();
        receipts.push(Receipt {
            number,
            item,
            documents: documents?,
        });
    }
    let next = receipts.last().map_or(from, |last| last.number + 1);
    Ok(Receipts {
        participant: bic.to_string(),
        first,
        end,
        acknowledged,
        next,
        receipts,
    })
}

/// A cycle's credits are told from other shards' states: this node may have them a moment later.
pub(super) fn form(
    api: &Api,
    participant: ParticipantId,
    number: u64,
    stale: bool,
) -> Result<Vec<Document>, Problem> {
    let once = || {
        let reading = api.engine.read();
        api.documents(&reading)
            .documents(participant, number, false)
    };
    match once() {
        Err(DocumentError::Missing { .. }) => {
            api.catch_up(api.shards(), stale)?;
            Ok(once()?)
        }
        other => Ok(other?),
    }
}

/// What is safely stored.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Through {
    /// The highest number that is stored, with all before it.
    through: u64,
}

/// Where a participant's output stands after an acknowledgement.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Acknowledged {
    /// The highest number that the participant said it has.
    acknowledged: u64,
    /// The number that the next output will take.
    end: u64,
}

pub(super) async fn acknowledge(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Json(Through { through }): Json<Through>,
) -> Result<Json<Acknowledged>, Problem> {
    let bic = must_name(caller.only())?;
    api.blocking(move |api| {
        let (participant, home) = api.find(bic, false)?;
        let command = Command::AcknowledgeReceipts { bic, through };
        match api.engine.execute(home, &command, Lane::Bulk)?.reply {
            Reply::Refused(refusal) => {
                return Err(Problem::new(
                    Code::Refused,
                    format!("the ledger refused it: {refusal:?}"),
                ));
            }
            Reply::Done => {}
            other => return Err(Problem::internal(format!("an unexpected reply: {other:?}"))),
        }
        api.catch_up([home], false).map_err(Problem::though_done)?;
        let Bounds {
            acknowledged, end, ..
        } = bounds(api, home, participant);
        Ok(Json(Acknowledged { acknowledged, end }))
    })
    .await
}
