//! Clients of the nodes' public interface. [`Client`] is for the command line and tests: it keeps one connection, and goes on
//! to the next node when one does not answer. [`Session`] is one connection for who keeps many.

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
        let mut tries = 0;
        loop {
            let last = match self.once(ask) {
                Ok(reply) if reply.status == StatusCode::SERVICE_UNAVAILABLE => {
                    let unsure = matches!(
                        reply.code().as_str(),
                        "UNKNOWN" | "STOPPING" | "BEHIND" | ""
                    );
                    if (ask.retry == Retry::NothingDone && unsure) || Instant::now() >= deadline {
                        return Ok(reply);
                    }
                    Ok(reply)
                }
                // Over its rate at this node, whoever asks waits for as long as it is told: another node's rate is not for
                // that. Nothing was stored, so anything may be sent again.
                Ok(reply) if reply.status == StatusCode::TOO_MANY_REQUESTS => {
                    let wait = reply.retry_after.unwrap_or(TRY_AGAIN).max(TRY_AGAIN);
                    if Instant::now() + wait > deadline {
                        return Ok(reply);
                    }
                    std::thread::sleep(wait);
                    continue;
                }
                Ok(reply) => return Ok(reply),
                Err(Failed { why, sent }) => {
                    if ask.retry == Retry::NothingDone && sent {
                        return Err(ClientError::Unreachable(format!(
                            "{why}; whether it was done is not known"
                        )));
                    }
                    Err(ClientError::Unreachable(why))
                }
            };
            if Instant::now() >= deadline {
                return last;
            }
            self.connection = None;
            self.at = (self.at + 1) % self.nodes.len();
            tries += 1;
            if tries % self.nodes.len() == 0 {
                std::thread::sleep(TRY_AGAIN);
            }
        }
    }

    /// Sends a request and reads the answer's value.
    ///
    /// # Errors
    /// As [`Client::send`] and [`Reply::json`].
    pub fn json<T: DeserializeOwned>(&mut self, ask: &Ask<'_>) -> Result<T, ClientError> {
        self.send(ask)?.json()
    }

    fn once(&mut self, ask: &Ask<'_>) -> Result<Reply, Failed> {
        let node = self.nodes[self.at].clone();
        let tls = self.tls.clone();
        let kept = self.connection.take();
        let exchange = exchange(node, tls, kept, ask, self.limit);
        let (reply, connection) = self.runtime.block_on(exchange)?;
        self.connection = Some(connection);
        Ok(reply)
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
