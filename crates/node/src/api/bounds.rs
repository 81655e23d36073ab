//! What holds for every request, whatever it asks: its head's length, how its body is sent, how long it may take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::{Frame, SizeHint};
use tokio::time::timeout;

use super::door::{Conversation, Place, Turn};
use super::metrics::Cut;
use super::{Api, Code, Problem};

/// What a request's connection is.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) conversation: Arc<Conversation>,
    /// None for probes without TLS.
    pub(super) place: Option<Arc<Place>>,
}

/// Bytes of the head as they were sent, but for what stands between its parts.
fn head_bytes(request: &Request) -> usize {
    let first = request.method().as_str().len() + request.uri().to_string().len();
    let headers = request.headers().iter();
    first
        + headers
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum::<usize>()
}

/// The length that a body is said to have.
pub(super) fn content_length(request: &Request) -> Option<usize> {
    let value = request.headers().get(header::CONTENT_LENGTH)?;
    value.to_str().ok()?.parse().ok()
}

/// The last answer on its connection.
pub(super) fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Refuses what is out of bounds, ends what takes too long, and tells the connection whose turn it is.
pub(super) async fn bound(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let connection = request.extensions().get::<Connection>().cloned();
    let turn = connection
        .as_ref()
        .map(|connection| connection.conversation.clone().begin());
    let response = match refusal(&api, &request) {
        Some(refusal) => closing(refusal),
        None => within(&api, connection.as_ref(), request, next).await,
    };
    response.map(|body| Body::new(Answer { body, _turn: turn }))
}

fn refusal(api: &Api, request: &Request) -> Option<Problem> {
    let max = api.http.head_max_bytes;
    if head_bytes(request) > max {
        let detail = format!("the first line and the headers have more than {max} bytes");
        return Some(Problem::new(Code::HeadTooLarge, detail));
    }
    // A body has one length, which is told before it: there is nothing for two readers to disagree about.
    if request.headers().contains_key(header::TRANSFER_ENCODING) {
        let detail = "send the body with its Content-Length, not in chunks";
        return Some(Problem::new(Code::Length, detail));
    }
    None
}

async fn within(
    api: &Arc<Api>,
    connection: Option<&Connection>,
    request: Request,
    next: Next,
) -> Response {
    let place = connection.and_then(|connection| connection.place.as_ref());
    let mut room = None;
    if let (Some(place), Some(bytes @ 1..)) = (place, content_length(&request)) {
        let max = api.http.bodies_per_client_max_bytes;
        room = place.body_room(bytes, max);
        if room.is_none() {
            let detail = format!("your bodies that are under way here have {max} bytes already");
            return closing(Problem::new(Code::Busy, detail));
        }
    }
    let is_query = request.method() == Method::GET;
    let answered = timeout(api.http.request_timeout, next.run(request)).await;
    drop(room);
    answered.unwrap_or_else(|_| {
        api.cut(Cut::Request);
        let code = if is_query { Code::Busy } else { Code::Unknown };
        closing(Problem::new(code, "the request took too long here"))
    })
}

/// An answer's body; when it has ended it is the client's turn.
struct Answer {
    body: Body,
    _turn: Option<Turn>,
}

impl hyper::body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a body as long as it comes fast enough.
pub(super) async fn read_body(api: &Api, request: Request) -> Result<Bytes, Response> {
    let length = content_length(&request).unwrap_or(0);
    let too_large = || {
        let detail = format!("the body is larger than {} bytes", super::BODY_MAX_BYTES);
        closing(Problem::new(Code::TooLarge, detail))
    };
    if length > super::BODY_MAX_BYTES {
        return Err(too_large());
    }
    let limits = &api.http;
    let began = tokio::time::Instant::now();
    let mut body = request.into_body();
    let mut whole = Vec::with_capacity(length);
    loop {
        let bought_ms = whole.len() as u64 * 1_000 / limits.floor_bytes_per_s.max(1);
        let bought = std::time::Duration::from_millis(bought_ms);
        let deadline = began + limits.grace + bought;
        let frame = tokio::time::timeout_at(deadline, body.frame()).await;
        let frame = frame.map_err(|_| {
            api.cut(Cut::Body);
            let detail = format!(
                "the body came slower than {} bytes each second",
                limits.floor_bytes_per_s
            );
            closing(Problem::new(Code::Slow, detail))
        })?;
        let Some(frame) = frame else {
            return Ok(whole.into());
        };
        let frame = frame.map_err(|error| {
            closing(Problem::invalid(format!(
                "the body cannot be read: {error}"
            )))
        })?;
        if let Ok(data) = frame.into_data() {
            if whole.len() + data.len() > super::BODY_MAX_BYTES {
                return Err(too_large());
            }
            if whole.is_empty() && data.len() == length {
                return Ok(data);
            }
            whole.extend_from_slice(&data);
        }
    }
}
