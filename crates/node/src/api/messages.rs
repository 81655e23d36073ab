//! `POST /v1/messages`: any node takes any participant's message; the answer leaves once it is durable and applied.

use std::sync::Arc;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use clearspan_codec::package;
use clearspan_iso20022::json::{self, FormFault, Message};
use clearspan_iso20022::read::{Fault, Incoming, Note, Submitted};
use clearspan_ledger::day::PaymentStatus;
use clearspan_ledger::message::Submission;
use clearspan_ledger::{Bic, Ledger, MessageNo, Outcome, ParticipantId, Reason, Reply, ShardId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::access::Caller;
use super::extract::{Body, Json};
use super::receipts::{ReceiptDocument, form};
use super::{Api, COORDINATOR, Code, Problem, must_name};
use crate::documents::Document;
use crate::engine::{Lane, ProposeError};
use crate::gateway::{Gateway, lane_of};

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
    /// Why the message was refused as a whole, or nothing of it was stored.
    pub code: Option<String>,
    /// For people.
    pub detail: Option<String>,
    /// What `code` is about: a place in the message that was sent, as JSON or XML names it.
    #[serde(default)]
    pub place: Option<String>,
    /// The payments that were refused when the message was taken in, in the order of the message.
    #[serde(default)]
    pub refusals: Vec<Refusal>,
    /// The answer's documents.
    pub documents: Vec<ReceiptDocument>,
}

/// A payment that was refused when its message was taken in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Refusal {
    /// Its place in the message, from 1.
    pub position: u32,
    /// UETR, or the key of its transaction identifier.
    pub id: String,
    /// ISO 20022 code.
    pub code: String,
    /// What it means.
    pub reason: String,
    /// What it is about: a place in the message that was sent, where the fault is in the message itself.
    pub place: Option<String>,
    /// What is wrong there.
    pub detail: Option<String>,
}

/// A fault that reading found, with its place as the sender knows it.
pub(super) struct Mark {
    /// The payment, from 0; `None` for the message as a whole.
    payment: Option<u32>,
    reason: Reason,
    place: String,
    detail: String,
}

impl Mark {
    fn of(note: Note, json: Option<&Message>) -> Self {
        Self {
            payment: note.payment,
            reason: note.reason,
            place: match json {
                Some(message) => json::place(message, &note.path),
                None => note.path,
            },
            detail: note.detail.into_owned(),
        }
    }
}

/// The payments of a message that were refused when it was taken in, with the places that reading found.
pub(super) fn refusals(ledger: &Ledger, message: MessageNo, marks: &[Mark]) -> Vec<Refusal> {
    let refused = ledger
        .payments_of(message)
        .filter(|view| view.status == PaymentStatus::Refused);
    refused
        .filter_map(|view| {
            let reason = view.reason?;
            let mark = marks.iter().find(|mark| {
                mark.reason == reason && mark.payment.is_none_or(|payment| payment == view.position)
            });
            Some(Refusal {
                position: view.position + 1,
                id: view.id.to_string(),
                code: reason.code().to_owned(),
                reason: reason.text().to_owned(),
                place: mark.map(|mark| mark.place.clone()),
                detail: mark.map(|mark| mark.detail.clone()),
            })
        })
        .collect()
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
            place: None,
            refusals: Vec::new(),
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

    /// Says what the ledger refused of a message that is in its state here.
    fn with_refusals(mut self, ledger: &Ledger, message: MessageNo, marks: &[Mark]) -> Self {
        if let Some(reason) = ledger.message(message).and_then(|record| record.refused) {
            let mark = marks.iter().find(|mark| mark.reason == reason);
            self.code = Some(reason.code().to_owned());
            self.detail = Some(mark.map_or(reason.text(), |mark| &mark.detail).to_owned());
            self.place = mark.map(|mark| mark.place.clone());
        }
        self.refusals = refusals(ledger, message, marks);
        self
    }
}

/// `Prefer: return=minimal` leaves the answer's documents out; its number is there to read them by (RFC 7240).
const PREFER: &str = "prefer";
const MINIMAL: &str = "return=minimal";

/// How a message's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Xml,
    Json,
    Package,
}

/// What the body is said to be; XML when nothing is said.
fn form_of(headers: &HeaderMap) -> Result<Form, Problem> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Ok(Form::Xml);
    };
    let kind = kind.to_str().unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    match kind.to_ascii_lowercase().as_str() {
        "application/xml" | "text/xml" => Ok(Form::Xml),
        "application/json" => Ok(Form::Json),
        package::CONTENT_TYPE => Ok(Form::Package),
        _ => Err(Problem::new(
            Code::MediaType,
            format!(
                "a message comes as application/xml, application/json or {}, not as {kind:?}",
                package::CONTENT_TYPE
            ),
        )),
    }
}

/// JSON that is no message: as XML that is not of its structure.
fn of_no_form(fault: FormFault) -> Taken {
    let answer = Answer {
        code: Some(Reason::Syntax.code().to_owned()),
        detail: Some(fault.detail),
        place: Some(fault.place),
        ..Answer::of("unreadable")
    };
    Taken::Answered(StatusCode::UNPROCESSABLE_ENTITY, answer)
}

pub(super) async fn submit(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Problem> {
    let sender = must_name(caller.only())?;
    let says = |name: &str, what: &str| {
        let mut values = headers.get_all(name).iter();
        values.any(|value| value.to_str().is_ok_and(|value| value.contains(what)))
    };
    let form = form_of(&headers)?;
    // Who says nothing is answered in the form that was sent.
    let wants_json = says("accept", "application/json")
        || (form == Form::Json && !says("accept", "application/xml"));
    let minimal = says(PREFER, MINIMAL);
    let waiting = match api
        .blocking(move |api| take(api, sender, form, body))
        .await?
    {
        Taken::Answered(status, answer) => return Ok(respond(status, answer, wants_json)),
        Taken::Proposed(waiting) => waiting,
    };
    let outcome = waiting
        .outcome
        .await
        .unwrap_or(Err(ProposeError::Stopped))?;
    let (status, answer) = verdict(&outcome.reply)?;
    if minimal {
        let mut response = (status, Json(answer)).into_response();
        let applied = HeaderValue::from_static(MINIMAL);
        response.headers_mut().insert("preference-applied", applied);
        return Ok(response);
    }
    let (head, participant, home) = (waiting.head, waiting.participant, waiting.home);
    let marks = waiting.marks;
    let answer = api
        .blocking(move |api| {
            let documents = documents_of(api, &outcome.reply, &head, participant, home)?;
            let answer = answer.with(documents)?;
            Ok(match outcome.reply {
                Reply::Taken { message, .. } | Reply::Repeat { message, .. } => api
                    .engine
                    .with_ledger(home, |ledger| answer.with_refusals(ledger, message, &marks)),
                _ => answer,
            })
        })
        .await?;
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

/// What became of a message's bytes.
enum Taken {
    /// There is nothing to wait for.
    Answered(StatusCode, Answer),
    /// It is on its way through the journal.
    Proposed(Waiting),
}

/// A message on its way.
struct Waiting {
    /// The message without its payments, for an answer.
    head: Submission,
    /// What reading found.
    marks: Vec<Mark>,
    participant: ParticipantId,
    home: ShardId,
    outcome: oneshot::Receiver<Result<Outcome, ProposeError>>,
}

fn take(api: &Api, sender: Bic, form: Form, body: Bytes) -> Result<Taken, Problem> {
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
    let now = || api.engine.steady();
    api.rates.take_bytes(sender, body.len() as u64, now())?;
    let gateway = Gateway::new(&api.engine, amount_max);
    // What is no submission costs as one payment: reading it and answering is work.
    let take_one = || api.rates.take_payments(sender, Lane::Bulk, 1, now());
    let mut json = None;
    let read = match form {
        Form::Xml => gateway.read(&body, Some(sender)),
        Form::Json => {
            let message = match Message::parse(&body) {
                Ok(message) => message,
                Err(fault) => {
                    take_one()?;
                    return Ok(of_no_form(fault));
                }
            };
            let xml = json::to_xml(&message, sender, api.engine.now());
            json = Some(message);
            gateway.read(&xml, Some(sender))
        }
        Form::Package => gateway.read_package(body, sender).map(|submission| {
            Incoming::Submission(Submitted {
                submission,
                header: None,
                notes: Vec::new(),
            })
        }),
    };
    let documents = match read {
        Err(fault) => {
            take_one()?;
            let (status, answer) = unreadable(api, sender, json.as_ref(), &fault)?;
            return Ok(Taken::Answered(status, answer));
        }
        Ok(Incoming::Submission(Submitted {
            submission, notes, ..
        })) => {
            must_be_sender(submission.sender, sender)?;
            let payments = submission.payments.len() as u64;
            let lane = lane_of(&submission);
            api.rates.take_payments(sender, lane, payments, now())?;
            let head = head_of(&submission);
            let (told, outcome) = oneshot::channel();
            let reply = Box::new(move |result| {
                // Whoever asked may have gone.
                let _ = told.send(result);
            });
            gateway.submit_with(submission, reply)?;
            let mark = |note| Mark::of(note, json.as_ref());
            return Ok(Taken::Proposed(Waiting {
                head,
                marks: notes.into_iter().map(mark).collect(),
                participant,
                home,
                outcome,
            }));
        }
        Ok(Incoming::StatusRequest(request)) => {
            must_be_sender(request.sender, sender)?;
            take_one()?;
            api.catch_up(api.shards(), false)?;
            let reading = api.engine.read();
            api.documents(&reading).status_answer(&request)?
        }
        Ok(Incoming::ReportRequest(request)) => {
            must_be_sender(request.sender, sender)?;
            take_one()?;
            api.catch_up(api.shards(), false)?;
            let reading = api.engine.read();
            api.documents(&reading).report_answer(&request)?
        }
    };
    let answer = Answer::of("answered").with(documents)?;
    Ok(Taken::Answered(StatusCode::OK, answer))
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

fn unreadable(
    api: &Api,
    sender: Bic,
    json: Option<&Message>,
    fault: &Fault,
) -> Result<(StatusCode, Answer), Problem> {
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
        detail: Some(match json {
            None => fault.to_string(),
            Some(_) => fault.detail.clone().into_owned(),
        }),
        place: Some(match json {
            None => fault.path.clone(),
            Some(message) => json::place(message, &fault.path),
        }),
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

/// What an outcome says, without the documents that say it to people.
fn verdict(reply: &Reply) -> Result<(StatusCode, Answer), Problem> {
    Ok(match *reply {
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
                ..Answer::of("taken")
            },
        ),
        Reply::Repeat { message, answer } => (
            StatusCode::OK,
            Answer {
                message_no: Some(message.get()),
                answer_no: Some(answer),
                ..Answer::of("repeat")
            },
        ),
        Reply::Held { answer, .. } => (
            StatusCode::ACCEPTED,
            Answer {
                answer_no: Some(answer).filter(|&number| number != 0),
                ..Answer::of("held")
            },
        ),
        Reply::NotTaken { reason } => (
            StatusCode::UNPROCESSABLE_ENTITY,
            Answer {
                code: Some(reason.code().to_owned()),
                detail: Some(reason.text().to_owned()),
                ..Answer::of("not-taken")
            },
        ),
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
        Reply::Done | Reply::Refused(_) | Reply::Asked { .. } => {
            return Err(Problem::internal("an unexpected reply to a message"));
        }
    })
}

/// The documents of an answer.
fn documents_of(
    api: &Api,
    reply: &Reply,
    head: &Submission,
    participant: ParticipantId,
    home: ShardId,
) -> Result<Vec<Document>, Problem> {
    // What was applied at the leader is read here: this node may be a moment behind.
    let reached = |number: u64| -> Result<(), Problem> {
        let here = api.engine.with_ledger(home, |ledger| {
            ledger
                .stream(participant)
                .is_some_and(|own| own.next_number() > number)
        });
        if here {
            Ok(())
        } else {
            api.catch_up([home], false).map_err(Problem::though_done)
        }
    };
    let now = api.engine.now();
    match *reply {
        Reply::Repeat { answer, .. } => {
            reached(answer)?;
            let reading = api.engine.read();
            Ok(api.documents(&reading).repeat_answer(participant, answer)?)
        }
        Reply::Held {
            answer: 0,
            missing_from,
            missing_through,
        } => {
            let reading = api.engine.read();
            let document =
                api.documents(&reading)
                    .held(head, missing_from, missing_through, now)?;
            Ok(vec![document])
        }
        Reply::Taken { answer, .. } | Reply::Held { answer, .. } => {
            reached(answer)?;
            form(api, participant, answer, false).map_err(Problem::though_done)
        }
        Reply::NotTaken { reason } => {
            let reading = api.engine.read();
            Ok(vec![api.documents(&reading).not_taken(head, reason, now)?])
        }
        Reply::HeldFull { .. }
        | Reply::NotHome { .. }
        | Reply::Done
        | Reply::Refused(_)
        | Reply::Asked { .. } => Ok(Vec::new()),
    }
}
