//! Why a request was not done: RFC 9457 problem documents, each with a stable code.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::documents::DocumentError;
use crate::engine::{ProposeError, ReadError};
use crate::rate::TooFast;

macro_rules! codes {
    ($( $name:ident $status:ident $text:literal $meaning:literal; )+) => {
        /// What a problem document says to programs. Codes are stable: new ones come, none changes its meaning.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code {
            $( #[doc = $meaning] $name, )+
        }

        impl Code {
            /// All of them, in the order of their statuses.
            pub const ALL: &[Self] = &[$( Self::$name ),+];

            /// As it stands in a problem document.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $( Self::$name => $text, )+ }
            }

            /// The HTTP status that it comes with.
            #[must_use]
            pub const fn status(self) -> StatusCode {
                match self { $( Self::$name => StatusCode::$status, )+ }
            }

            /// What happened and what to do, for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $( Self::$name => $meaning, )+ }
            }
        }
    };
}

codes! {
    Invalid BAD_REQUEST "INVALID" "The request makes no sense: a parameter or body has another form. Nothing was done; correct it.";
    Forbidden FORBIDDEN "FORBIDDEN" "The certificate's role may not do that, or it is another participant's.";
    ApprovalNeeded FORBIDDEN "APPROVAL_NEEDED" "The act takes two operators. It was noted as a request, which `request` names; it is done when another operator approves it.";
    NotFound NOT_FOUND "NOT_FOUND" "There is no such path, participant, payment, cycle or output number.";
    Method METHOD_NOT_ALLOWED "METHOD" "The path does not know this method.";
    Slow REQUEST_TIMEOUT "SLOW" "The request came too slowly. Nothing was done; send it again on another connection.";
    Contradiction CONFLICT "CONTRADICTION" "The settings contradict what was taken up before. Nothing was done; the detail says what differs.";
    Quorum CONFLICT "QUORUM" "The change would leave a shard without a majority of voters that are there. Nothing was done; start those that are down.";
    RetentionEnded GONE "RETENTION_ENDED" "Output is no longer kept from that number on; the detail names the first that is.";
    Length LENGTH_REQUIRED "LENGTH" "A body comes with its Content-Length, never in chunks. Nothing was done.";
    TooLarge PAYLOAD_TOO_LARGE "TOO_LARGE" "The body, or what would be stored of it, is above the limit. Send several smaller messages.";
    MediaType UNSUPPORTED_MEDIA_TYPE "MEDIA_TYPE" "A message comes as application/xml or application/json; the Content-Type says something else. Nothing was done.";
    Settings UNPROCESSABLE_ENTITY "SETTINGS" "The participants' settings cannot be used; the detail names the line. Nothing was done.";
    Refused UNPROCESSABLE_ENTITY "REFUSED" "The ledger refused the act: it does not fit the state of the day, the cycle or the nodes. Nothing was done.";
    Rate TOO_MANY_REQUESTS "RATE" "More was handed in than is agreed for a participant or than the node takes of all. Nothing was stored; send the same again after the seconds of Retry-After.";
    HeadTooLarge REQUEST_HEADER_FIELDS_TOO_LARGE "HEAD_TOO_LARGE" "The request's first line and headers are above the limit. Nothing was done; leave out what is not needed.";
    Internal INTERNAL_SERVER_ERROR "INTERNAL" "A fault of the node. Report it; the same request may be sent to another node.";
    NotFounded SERVICE_UNAVAILABLE "NOT_FOUNDED" "The cluster has no participants yet. An operator founds it.";
    Witness SERVICE_UNAVAILABLE "WITNESS" "The node is a witness and keeps no state. Ask another node.";
    Busy SERVICE_UNAVAILABLE "BUSY" "Too much waits already. Nothing was stored; send it again later.";
    NotTaken SERVICE_UNAVAILABLE "NOT_TAKEN" "It was not taken in and has no effect. Send it again, here or to another node.";
    DiskFull SERVICE_UNAVAILABLE "DISK_FULL" "The node's disk has no room left. Nothing was stored; send it to another node.";
    Diverged SERVICE_UNAVAILABLE "DIVERGED" "The shard's replicas differ and no majority says which is right: an operator must decide. Nothing was stored.";
    NoQuorum SERVICE_UNAVAILABLE "NO_QUORUM" "The shard has no leader that this node can reach. Nothing was stored; try another node, or again later.";
    Unknown SERVICE_UNAVAILABLE "UNKNOWN" "Whether it was stored is not known. Send the same message again: it is never taken twice.";
    Stopping SERVICE_UNAVAILABLE "STOPPING" "The node stops. Whether it was stored is not known; send the same message to another node.";
    Behind SERVICE_UNAVAILABLE "BEHIND" "This node has not yet all that the answer needs. Ask again, here or another node.";
}

/// A refusal or failure, as the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// For programs.
    pub code: Code,
    /// For people: what happened and what to do.
    pub detail: String,
    /// After how many seconds it may be tried again, where that is known.
    pub retry_after_s: Option<u64>,
    /// The request that waits for a second operator.
    pub request: Option<String>,
}

/// A problem document (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename = "Problem")]
pub struct ProblemDocument {
    /// `urn:clearspan:problem:` and the code in small letters.
    pub r#type: String,
    /// The HTTP status in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// For programs; stable.
    pub code: String,
    /// For people: what happened and what to do.
    pub detail: String,
    /// The request that waits for a second operator, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

impl Problem {
    /// Of a code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            // What is not possible for the moment is over soon, as a rule.
            retry_after_s: (code.status() == StatusCode::SERVICE_UNAVAILABLE).then_some(1),
            request: None,
        }
    }

    /// The request makes no sense.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(Code::Invalid, detail)
    }

    /// The caller may not do that.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, detail)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(Code::NotFound, detail)
    }

    /// Something that is not the client's fault.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(Code::Internal, detail)
    }

    /// The same after the request was done: no code may promise now that nothing was.
    #[must_use]
    pub fn though_done(self) -> Self {
        if self.code.status() == StatusCode::SERVICE_UNAVAILABLE {
            let detail = format!(
                "it was done, but this node cannot say yet what came of it ({}); ask again with the same request",
                self.detail
            );
            Self::new(Code::Behind, detail)
        } else {
            self
        }
    }

    /// The document that says it.
    #[must_use]
    pub fn document(&self) -> ProblemDocument {
        let status = self.code.status();
        let code = self.code.text();
        ProblemDocument {
            r#type: format!(
                "urn:clearspan:problem:{}",
                code.to_ascii_lowercase().replace('_', "-")
            ),
            title: status.canonical_reason().unwrap_or("problem").to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: self.detail.clone(),
            request: self.request.clone(),
        }
    }
}

impl From<ProposeError> for Problem {
    fn from(error: ProposeError) -> Self {
        let detail = error.to_string();
        match error {
            ProposeError::DiskFull { .. } => Self::new(Code::DiskFull, detail),
            ProposeError::Diverged => Self::new(Code::Diverged, detail),
            ProposeError::NoLeader => Self::new(Code::NoQuorum, detail),
            ProposeError::Unknown => Self::new(Code::Unknown, detail),
            ProposeError::Stopped => Self::new(Code::Stopping, detail),
            ProposeError::Dropped(clearspan_replica::DropReason::Unknown) => {
                Self::new(Code::Unknown, detail)
            }
            ProposeError::Dropped(_) => Self::new(Code::NotTaken, detail),
            ProposeError::TooLarge { .. } => Self::new(Code::TooLarge, detail),
            ProposeError::NoShard(_) => Self::internal(detail),
        }
    }
}

impl From<TooFast> for Problem {
    fn from(error: TooFast) -> Self {
        Self {
            retry_after_s: Some(error.wait_ns.div_ceil(1_000_000_000)),
            ..Self::new(Code::Rate, error.to_string())
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        let code = match error {
            ReadError::NoQuorum => Code::NoQuorum,
            ReadError::Behind { .. } => Code::Behind,
            ReadError::Diverged => Code::Diverged,
            ReadError::Stopped => Code::Stopping,
        };
        Self::new(code, error.to_string())
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::ParticipantUnknown => Self::not_found("no such participant"),
            DocumentError::NumberUnknown { .. } => Self::not_found(error.to_string()),
            DocumentError::Missing { .. } => Self::new(
                Code::Behind,
                format!("this node has not yet all of it: {error}; ask again"),
            ),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = serde_json::to_string(&self.document()).unwrap_or_default();
        let mut response = (status, body).into_response();
        // Who counts or logs answers need not read bodies.
        response.extensions_mut().insert(self.code);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after_s {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
