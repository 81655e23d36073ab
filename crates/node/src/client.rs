//! Clients of the nodes' public interface. [`Client`] is for the command line and tests: it keeps one connection, and goes on
//! to the next node when one does not answer. [`Session`] is one connection for who keeps many.

mod race;
mod session;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clearspan_codec::package;
use hyper::{Method, StatusCode};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::cluster::pki::PkiError;
pub use session::{Session, client_tls};

/// A message of a few payments is answered within a second by any node that can.
const HASTY_MAX_BYTES: usize = 64 << 10;
/// Between two tries once all nodes were asked.
const TRY_AGAIN: Duration = Duration::from_millis(200);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Certificates cannot be used.
    #[error("read the certificates")]
    Pki(#[from] PkiError),
    /// No threads or sockets.
    #[error("start the client")]
    Start(#[source] std::io::Error),
    /// An address cannot be used.
    #[error("{0:?} is no node: give host:port or https://host:port")]
    Address(String),
    /// Nobody answered in time.
    #[error("no node answered: {0}")]
    Unreachable(String),
    /// A node refused.
    #[error("{node}: {detail} ({code}, HTTP {status})")]
    Refused {
        /// Which node.
        node: String,
        /// The HTTP status.
        status: u16,
        /// The problem's code.
        code: String,
        /// For people.
        detail: String,
        /// The request that waits for a second operator, where the act takes two.
        request: Option<String>,
    },
    /// An answer of another shape.
    #[error("{node}: an answer that cannot be read")]
    Answer {
        /// Which node.
        node: String,
        /// Why.
        source: serde_json::Error,
    },
}

/// When a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Whenever there was no answer: done twice it has no second effect.
    Always,
    /// Only when it is certain that nothing was done.
    NothingDone,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Which node gave it.
    pub node: String,
    /// HTTP status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: String,
    /// `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// The body's value.
    ///
    /// # Errors
    /// [`ClientError::Refused`] unless the request was done.
    pub fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        if !self.status.is_success() {
            return Err(self.refusal());
        }
        serde_json::from_slice(&self.body).map_err(|source| ClientError::Answer {
            node: self.node,
            source,
        })
    }

    /// The refusal that a problem document tells.
    #[must_use]
    pub fn refusal(&self) -> ClientError {
        let text = |name: &str| {
            let value: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
            value.and_then(|value| value.get(name)?.as_str().map(str::to_owned))
        };
        ClientError::Refused {
            node: self.node.clone(),
            status: self.status.as_u16(),
            code: text("code").unwrap_or_default(),
            detail: text("detail")
                .unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned()),
            request: text("request"),
        }
    }

    fn code(&self) -> String {
        match self.refusal() {
            ClientError::Refused { code, .. } => code,
            _ => String::new(),
        }
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Method.
    pub method: Method,
    /// Path and query.
    pub path: &'a str,
    /// `Accept`.
    pub accept: &'a str,
    /// `Content-Type` of the body.
    pub content_type: &'a str,
    /// The body.
    pub body: Bytes,
    /// When it may be sent again.
    pub retry: Retry,
    /// Asks for an answer without documents (`Prefer: return=minimal`).
    pub minimal: bool,
    /// Whether the answer is expected soon: when it does not come, another node is asked beside the first. Only for what
    /// may be sent again always.
    pub hasty: bool,
}

impl<'a> Ask<'a> {
    /// A query.
    #[must_use]
    pub const fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            accept: "application/json",
            content_type: "",
            body: Bytes::new(),
            retry: Retry::Always,
            minimal: false,
            hasty: false,
        }
    }

    /// A message to hand in: a compact package, JSON or XML, told by how it begins.
    #[must_use]
    pub fn message(body: Bytes) -> Self {
        let content_type = if package::is_package(&body) {
            package::CONTENT_TYPE
        } else if body.trim_ascii_start().starts_with(b"{") {
            "application/json"
        } else {
            "application/xml"
        };
        Self {
            content_type,
            // A large one may well take as long as that.
            hasty: body.len() <= HASTY_MAX_BYTES,
            ..Self::post("/v1/messages", body, Retry::Always)
        }
    }

    /// An act with a JSON body.
    #[must_use]
    pub fn post(path: &'a str, body: impl Into<Bytes>, retry: Retry) -> Self {
        Self {
            method: Method::POST,
            path,
            accept: "application/json",
            content_type: "application/json",
            body: body.into(),
            retry,
            minimal: false,
            hasty: false,
        }
    }
}

/// The client.
pub struct Client {
    runtime: Runtime,
    tls: Arc<ClientConfig>,
    nodes: Vec<String>,
    at: usize,
    connection: Option<Session>,
    patience: Duration,
    /// For connecting, then for answering, where a session's own limits are longer.
    limit: Duration,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("nodes", &self.nodes)
            .finish_non_exhaustive()
    }
}

/// What went wrong with one try, and whether the node may have got the request.
struct Failed {
    why: String,
    sent: bool,
}

/// What came of one try, or of several beside each other.
struct Tried {
    result: Result<(Reply, Session), Failed>,
    /// The node that it is the result of.
    at: usize,
    /// Another try was given up before its answer came.
    abandoned: bool,
}

impl Tried {
    /// Whether there is nothing more to ask for.
    fn is_final(&self) -> bool {
        let passing = [
            StatusCode::SERVICE_UNAVAILABLE,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        matches!(&self.result, Ok((reply, _)) if !passing.contains(&reply.status))
    }

    /// Whether the request may have been done, though its answer does not say so.
    fn is_unsure(&self) -> bool {
        self.abandoned
            || match &self.result {
                Ok((reply, _)) => {
                    let unsure = matches!(
                        reply.code().as_str(),
                        "UNKNOWN" | "STOPPING" | "BEHIND" | ""
                    );
                    reply.status == StatusCode::SERVICE_UNAVAILABLE && unsure
                }
                Err(failed) => failed.sent,
            }
    }
}

impl Client {
    /// A client of these nodes (`host:port` or `https://host:port`). A request is tried again, where it may be, for as long
    /// as `patience`.
    ///
    /// # Errors
    /// When the certificates or an address cannot be used.
    pub fn new(
        nodes: &[String],
        certificate: &Path,
        key: &Path,
        nodes_ca: &Path,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let tls = client_tls(certificate, key, nodes_ca)?;
        let nodes: Result<Vec<String>, ClientError> = nodes
            .iter()
            .map(|node| {
                let address = node.trim_start_matches("https://").trim_end_matches('/');
                let good = address
                    .rsplit_once(':')
                    .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
                if good {
                    Ok(address.to_owned())
                } else {
                    Err(ClientError::Address(node.clone()))
                }
            })
            .collect();
        let nodes = nodes?;
        if nodes.is_empty() {
            return Err(ClientError::Address(String::new()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ClientError::Start)?;
        Ok(Self {
            runtime,
            tls,
            nodes,
            at: 0,
            connection: None,
            patience,
            limit: Duration::MAX,
        })
    }

    /// The same, but no try takes longer than this: for a look at nodes that may hang.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Sends a request until a node has answered it, done or refused. Over its rate (429) it waits as the node says.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when nobody did in time, or it may not be sent again and its outcome is unknown.
    #[expect(
        clippy::disallowed_methods,
        reason = "a client at a terminal waits in real time"
    )]
    pub fn send(&mut self, ask: &Ask<'_>) -> Result<Reply, ClientError> {
        let deadline = Instant::now() + self.patience;
        // An act of an earlier try may have been done, whatever the last answer says.
        let mut unsure = false;
        let mut round = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let tried = self.round(ask, round, left);
            round += 1;
            if tried.is_final() {
                return self.keep(tried);
            }
            unsure |= tried.is_unsure();
            let is_over = Instant::now() >= deadline;
            if is_over || (unsure && ask.retry == Retry::NothingDone) {
                return honest(self.keep(tried), unsure && ask.method != Method::GET);
            }
            let wait = match &tried.result {
                // Over its rate at this node, whoever asks waits for as long as it is told: another node's rate is not for
                // that. Nothing was stored, so anything may be sent again.
                Ok((reply, _)) if reply.status == StatusCode::TOO_MANY_REQUESTS => {
                    let wait = reply.retry_after.unwrap_or(TRY_AGAIN).max(TRY_AGAIN);
                    if Instant::now() + wait > deadline {
                        return self.keep(tried);
                    }
                    let _ = self.keep(tried);
                    wait
                }
                _ => {
                    self.at = (tried.at + 1) % self.nodes.len();
                    let all_were_asked = ask.hasty || round % self.nodes.len() == 0;
                    if all_were_asked {
                        TRY_AGAIN
                    } else {
                        Duration::ZERO
                    }
                }
            };
            std::thread::sleep(wait);
        }
    }

    /// Goes on with the connection that answered.
    fn keep(&mut self, tried: Tried) -> Result<Reply, ClientError> {
        self.at = tried.at;
        match tried.result {
            Ok((reply, session)) => {
                self.connection = Some(session);
                Ok(reply)
            }
            Err(failed) => Err(ClientError::Unreachable(failed.why)),
        }
    }

    /// Sends a request and reads the answer's value.
    ///
    /// # Errors
    /// As [`Client::send`] and [`Reply::json`].
    pub fn json<T: DeserializeOwned>(&mut self, ask: &Ask<'_>) -> Result<T, ClientError> {
        self.send(ask)?.json()
    }

    /// Asks a node or, for hasty requests, one after another until one answers.
    fn round(&mut self, ask: &Ask<'_>, round: usize, left: Duration) -> Tried {
        let kept = self.connection.take();
        let (nodes, tls, limit) = (&self.nodes, &self.tls, self.limit);
        let one = |at: usize, kept: Option<Session>| {
            let node = nodes.get(at).cloned().unwrap_or_default();
            exchange(node, tls.clone(), kept, ask, limit)
        };
        let at = self.at;
        if !ask.hasty || ask.retry != Retry::Always || nodes.len() == 1 {
            let result = self.runtime.block_on(one(at, kept));
            return Tried {
                result,
                at,
                abandoned: false,
            };
        }
        let order = race::order(at, nodes.len());
        let mut kept = Some(kept);
        let ask_one = |at: usize| one(at, kept.take().flatten());
        self.runtime
            .block_on(race::race(&order, ask_one, round, left))
    }
}

/// What may be said when it is given up: that nothing was done only if that is certain of every try.
fn honest(last: Result<Reply, ClientError>, unsure: bool) -> Result<Reply, ClientError> {
    match last {
        Ok(reply)
            if unsure && !matches!(reply.code().as_str(), "UNKNOWN" | "STOPPING" | "BEHIND") =>
        {
            let why = match reply.refusal() {
                ClientError::Refused { node, detail, .. } => format!("{node}: {detail}"),
                other => other.to_string(),
            };
            Err(ClientError::Unreachable(format!(
                "{why}; whether an earlier try was done is not known"
            )))
        }
        Err(ClientError::Unreachable(why)) if unsure => Err(ClientError::Unreachable(format!(
            "{why}; whether it was done is not known"
        ))),
        other => other,
    }
}

async fn exchange(
    node: String,
    tls: Arc<ClientConfig>,
    kept: Option<Session>,
    ask: &Ask<'_>,
    limit: Duration,
) -> Result<(Reply, Session), Failed> {
    let failed = |sent: bool| {
        let node = node.clone();
        move |why: String| Failed {
            why: format!("{node}: {why}"),
            sent,
        }
    };
    let mut usable = None;
    // One that the node may have closed in the meantime leaves in doubt whether it got the request.
    if let Some(mut kept) = kept.filter(|_| ask.retry == Retry::Always)
        && kept.is_usable().await
    {
        usable = Some(kept);
    }
    let mut session = match usable {
        Some(kept) => kept,
        None => match timeout(limit, Session::open(&node, tls)).await {
            Ok(opened) => opened.map_err(failed(false))?,
            Err(_) => return Err(failed(false)("no connection in time".to_owned())),
        },
    };
    let reply = match timeout(limit, session.exchange(ask)).await {
        Ok(answer) => answer.map_err(failed(true))?,
        Err(_) => return Err(failed(true)("no answer in time".to_owned())),
    };
    Ok((reply, session))
}
