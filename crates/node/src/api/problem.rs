//! Why a request was not done: RFC 9457 problem documents, each with a stable code.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::documents::DocumentError;
use crate::engine::ProposeError;

/// A refusal or failure, as the client is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// HTTP status.
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    /// For people: what happened and what to do.
    pub detail: String,
}

impl Problem {
    /// Of a status and code.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
        }
    }

    /// The request makes no sense.
    pub fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID", detail)
    }

    /// The caller may not do that.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", detail)
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", detail)
    }

    /// Try again, here or at another node.
    pub fn unavailable(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
    }

    /// Something that is not the client's fault.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", detail)
    }
}

impl From<ProposeError> for Problem {
    fn from(error: ProposeError) -> Self {
        let detail = error.to_string();
        match error {
            ProposeError::DiskFull { .. } => Self::unavailable("DISK_FULL", detail),
            ProposeError::NoLeader => Self::unavailable("NO_QUORUM", detail),
            ProposeError::Unknown => Self::unavailable("UNKNOWN", detail),
            ProposeError::Stopped => Self::unavailable("STOPPING", detail),
            ProposeError::Dropped(clearspan_replica::DropReason::Unknown) => {
                Self::unavailable("UNKNOWN", detail)
            }
            ProposeError::Dropped(_) => Self::unavailable("NOT_TAKEN", detail),
            ProposeError::TooLarge { .. } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", detail)
            }
            ProposeError::NoShard(_) => Self::internal(detail),
        }
    }
}

impl From<DocumentError> for Problem {
    fn from(error: DocumentError) -> Self {
        match error {
            DocumentError::ParticipantUnknown => Self::not_found("no such participant"),
            DocumentError::NumberUnknown { .. } => Self::not_found(error.to_string()),
            DocumentError::Missing { .. } => Self::unavailable(
                "BEHIND",
                format!("this node has not yet all of it: {error}; ask again"),
            ),
            other => Self::internal(other.to_string()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:clearspan:problem:{}", self.code.to_ascii_lowercase().replace('_', "-")),
            "title": self.status.canonical_reason().unwrap_or("problem"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        let mut response = (self.status, body.to_string()).into_response();
        response.headers_mut().insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
