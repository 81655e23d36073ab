//! What handlers take and give, with every refusal as a problem document.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::bounds::read_body;
use super::{Api, Problem};

/// A body of JSON, in either direction.
pub(super) struct Json<T>(pub(super) T);

/// A body as it is.
pub(super) struct Body(pub(super) Bytes);

/// Parameters behind the `?`.
pub(super) struct Query<T>(pub(super) T);

/// A parameter within the path.
pub(super) struct Path<T>(pub(super) T);

impl FromRequest<Arc<Api>> for Body {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Response> {
        read_body(api, request).await.map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<Arc<Api>> for Json<T> {
    type Rejection = Response;

    async fn from_request(request: Request, api: &Arc<Api>) -> Result<Self, Response> {
        let bytes = read_body(api, request).await?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Problem::invalid(format!("the body: {error}")).into_response())
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
