//! `POST /v1/messages`: any node takes any participant's message; the answer leaves once it is durable and applied.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use clearspan_iso20022::read::{Fault, Incoming, Submitted};
use clearspan_ledger::message::Submission;
use clearspan_ledger::{Bic, ParticipantId, Reply, ShardId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Caller;
use super::extract::{Body, Json};
use super::receipts::{ReceiptDocument, form};
use super::{Api, COORDINATOR, Code, Problem, must_name};
use crate::documents::Document;
use crate::gateway::Gateway;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    /// `taken`, `repeat`, `held`, `not-taken`, `answered` (an enquiry) or `unreadable`.
    pub status: String,
    /// Its number in its sender's home shard.
    pub message_no: Option<u64>,
    /// The answer's number in its sender's output.
    pub answer_no: Option<u64>,
    /// Payments accepted.
    pub accepted: Option<u32>,
    /// Payments refused.
    pub refused: Option<u32>,
    /// Why nothing was stored.
    pub code: Option<String>,
    /// For people.
    pub detail: Option<String>,
    /// The answer's documents.
    pub documents: Vec<ReceiptDocument>,
}

impl Answer {
    fn of(status: &str) -> Self {
        Self {
            status: status.to_owned(),
            message_no: None,
            answer_no: None,
            accepted: None,
            refused: None,
            code: None,
            detail: None,
            documents: Vec::new(),
        }
    }

    fn with(mut self, documents: impl IntoIterator<Item = Document>) -> Result<Self, Problem> {
        self.documents = documents
            .into_iter()
            .map(ReceiptDocument::of)
            .collect::<Result<_, _>>()?;
        Ok(self)
    }
}

pub(super) async fn submit(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    let sender = must_name(caller.only())?;
    let wants_json = headers
        .get(header::ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("application/json"));
    let (status, answer) = api.blocking(move |api| take(api, sender, &body)).await?;
    Ok(respond(status, answer, wants_json))
}

/// XML when one document says it all; several documents, or none, can only be told in JSON.
fn respond(status: StatusCode, answer: Answer, wants_json: bool) -> Response {
    if !wants_json && let [document] = answer.documents.as_slice() {
        let mut response = (status, document.xml.clone()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/xml"),
        );
        if let Ok(value) = HeaderValue::from_str(&answer.status) {
            headers.insert("clearspan-status", value);
        }
        for (name, number) in [
            ("clearspan-message", answer.message_no),
            ("clearspan-answer", answer.answer_no),
        ] {
            if let Some(number) = number {
                headers.insert(name, HeaderValue::from(number));
            }
        }
        return response;
    }
    (status, Json(answer)).into_response()
}

fn take(api: &Api, sender: Bic, body: &[u8]) -> Result<(StatusCode, Answer), Problem> {
    let (participant, home) = api.find(sender, false)?;
    let amount_max = api.engine.with_ledger(COORDINATOR, |ledger| {
        ledger.genesis().map(|genesis| genesis.amount_max)
    });
    let Some(amount_max) = amount_max else {
        return Err(Problem::new(
            Code::NotFounded,
            "the cluster has no participants yet",
        ));
    };
    let gateway = Gateway::new(&api.engine, amount_max);
    match gateway.read(body, Some(sender)) {
        Err(fault) => unreadable(api, sender, &fault),
        Ok(Incoming::Submission(submitted)) => {
            must_be_sender(submitted.submission.sender, sender)?;
            submission(api, &gateway, submitted, participant, home)
        }
        Ok(Incoming::StatusRequest(request)) => {
            must_be_sender(request.sender, sender)?;
            api.catch_up(api.shards(), false)?;
            let reading = api.engine.read();
            let documents = api.documents(&reading).status_answer(&request)?;
            Ok((StatusCode::OK, Answer::of("answered").with(documents)?))
        }
        Ok(Incoming::ReportRequest(request)) => {
            must_be_sender(request.sender, sender)?;
            api.catch_up(api.shards(), false)?;
            let reading = api.engine.read();
            let documents = api.documents(&reading).report_answer(&request)?;
            Ok((StatusCode::OK, Answer::of("answered").with(documents)?))
        }
    }
}

fn must_be_sender(named: Bic, proved: Bic) -> Result<(), Problem> {
    if named == proved {
        Ok(())
    } else {
        Err(Problem::forbidden(format!(
            "the message names {named} as its sender, the certificate {proved}"
        )))
    }
}

fn unreadable(api: &Api, sender: Bic, fault: &Fault) -> Result<(StatusCode, Answer), Problem> {
    if fault.sender.is_some_and(|named| named != sender) {
        return Err(Problem::forbidden(format!(
            "the message names another sender than the certificate, {sender}"
        )));
    }
    let reading = api.engine.read();
    let document = api
        .documents(&reading)
        .refusal(fault, Some(sender), api.engine.now());
    let answer = Answer {
        code: Some(fault.reason.code().to_owned()),
        detail: Some(fault.to_string()),
        ..Answer::of("unreadable").with(document)?
    };
    Ok((StatusCode::UNPROCESSABLE_ENTITY, answer))
}

/// The message without its payments, for an answer.
fn head_of(submission: &Submission) -> Submission {
    Submission {
        payments: Vec::new(),
        times: Vec::new(),
        originals: Vec::new(),
        heap: bytes::Bytes::new(),
        ..*submission
    }
}

fn submission(
    api: &Api,
    gateway: &Gateway<'_>,
    submitted: Submitted,
    participant: ParticipantId,
    home: ShardId,
) -> Result<(StatusCode, Answer), Problem> {
    let head = head_of(&submitted.submission);
    let outcome = gateway.submit(submitted)?.wait()?;
    // What was applied at the leader is read here: this node may be a moment behind.
    let numbered = |number: u64, repeat: bool| -> Result<Vec<Document>, Problem> {
        let here = || {
            api.engine.with_ledger(home, |ledger| {
                ledger
                    .stream(participant)
                    .is_some_and(|own| own.next_number() > number)
            })
        };
        if !here() {
            api.catch_up([home], false)?;
        }
        if repeat {
            let reading = api.engine.read();
            Ok(api.documents(&reading).repeat_answer(participant, number)?)
        } else {
            form(api, participant, number, false)
        }
    };
    let now = api.engine.now();
    let reading = || api.engine.read();
    Ok(match outcome.reply {
        Reply::Taken {
            message,
            answer,
            accepted,
            refused,
        } => (
            StatusCode::OK,
            Answer {
                message_no: Some(message.get()),
                answer_no: Some(answer),
                accepted: Some(accepted),
                refused: Some(refused),
                ..Answer::of("taken").with(numbered(answer, false)?)?
            },
        ),
        Reply::Repeat { message, answer } => (
            StatusCode::OK,
            Answer {
                message_no: Some(message.get()),
                answer_no: Some(answer),
                ..Answer::of("repeat").with(numbered(answer, true)?)?
            },
        ),
        Reply::Held {
            answer: 0,
            missing_from,
            missing_through,
        } => {
            let reading = reading();
            let document =
                api.documents(&reading)
                    .held(&head, missing_from, missing_through, now)?;
            (StatusCode::ACCEPTED, Answer::of("held").with([document])?)
        }
        Reply::Held { answer, .. } => (
            StatusCode::ACCEPTED,
            Answer {
                answer_no: Some(answer),
                ..Answer::of("held").with(numbered(answer, false)?)?
            },
        ),
        Reply::NotTaken { reason } => {
            let reading = reading();
            let document = api.documents(&reading).not_taken(&head, reason, now)?;
            let answer = Answer {
                code: Some(reason.code().to_owned()),
                detail: Some(reason.text().to_owned()),
                ..Answer::of("not-taken").with([document])?
            };
            (StatusCode::UNPROCESSABLE_ENTITY, answer)
        }
        Reply::HeldFull { missing_from } => {
            return Err(Problem::new(
                Code::Busy,
                format!(
                    "too many messages wait for number {missing_from}; nothing was stored; send that one first"
                ),
            ));
        }
        Reply::NotHome { .. } => {
            return Err(Problem::new(
                Code::NotTaken,
                "the participant's home shard does not know it yet; nothing was stored; send it again",
            ));
        }
        Reply::Done | Reply::Refused(_) => {
            return Err(Problem::internal("an unexpected reply to a message"));
        }
    })
}
