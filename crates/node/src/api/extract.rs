//! What handlers take and give, with every refusal as a problem document.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Code, Problem};

/// A body of JSON, in either direction.
pub(super) struct Json<T>(pub(super) T);

/// A body as it is.
pub(super) struct Body(pub(super) Bytes);

/// Parameters behind the `?`.
pub(super) struct Query<T>(pub(super) T);

/// A parameter within the path.
pub(super) struct Path<T>(pub(super) T);

fn body_problem(rejection: &BytesRejection) -> Problem {
    let code = if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        Code::TooLarge
    } else {
        Code::Invalid
    };
    Problem::new(code, rejection.body_text())
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        bytes
            .map(Self)
            .map_err(|rejection| body_problem(&rejection))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let Body(bytes) = Body::from_request(request, state).await?;
        let value = serde_json::from_slice(&bytes);
        value
            .map(Self)
            .map_err(|error| Problem::invalid(format!("the body: {error}")))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| Problem::invalid(rejection.body_text()))
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = axum::extract::Path::from_request_parts(parts, state).await;
        path.map(|axum::extract::Path(value)| Self(value))
            .map_err(|rejection| Problem::invalid(rejection.body_text()))
    }
}
