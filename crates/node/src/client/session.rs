//! One connection to one node, on the caller's runtime.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Ask, ClientError, Reply};
use crate::cluster::pki::{PkiError, client_config};

/// For name, TCP and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Above a node's longest poll and longest wait for an outcome.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// The largest answer.
const ANSWER_MAX_BYTES: usize = 256 << 20;

/// What a client shows, and by what it knows the nodes.
///
/// # Errors
/// When a file cannot be read or used.
pub fn client_tls(
    certificate: &Path,
    key: &Path,
    nodes_ca: &Path,
) -> Result<Arc<ClientConfig>, PkiError> {
    let mut tls = Arc::unwrap_or_clone(client_config(certificate, key, nodes_ca)?);
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(tls))
}

/// A connection that answers one request after another. Many at once want as many sessions: messages of one participant
/// keep their order when each is sent after the answer to the one before, or when they are numbered.
#[derive(Debug)]
pub struct Session {
    node: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Session {
    /// Connects to a node, `host:port`.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] says why not.
    pub async fn connect(node: &str, tls: Arc<ClientConfig>) -> Result<Self, ClientError> {
        Self::open(node, tls)
            .await
            .map_err(|why| ClientError::Unreachable(format!("{node}: {why}")))
    }

    /// Sends a request and waits for its answer. After an error the session is of no more use.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] when the connection ends or no answer comes in time.
    pub async fn ask(&mut self, ask: &Ask<'_>) -> Result<Reply, ClientError> {
        let answer = self.exchange(ask).await;
        answer.map_err(|why| ClientError::Unreachable(format!("{}: {why}", self.node)))
    }

    pub(super) async fn is_usable(&mut self) -> bool {
        self.sender.ready().await.is_ok()
    }

    pub(super) async fn open(node: &str, tls: Arc<ClientConfig>) -> Result<Self, String> {
        let connecting = async {
            let host = node.rsplit_once(':').map_or(node, |(host, _)| host);
            let host = host
                .trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned();
            let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
            let stream = TcpStream::connect(node)
                .await
                .map_err(|error| error.to_string())?;
            let _ = stream.set_nodelay(true);
            let stream = TlsConnector::from(tls)
                .connect(name, stream)
                .await
                .map_err(|error| error.to_string())?;
            handshake(TokioIo::new(stream))
                .await
                .map_err(|error| error.to_string())
        };
        let (sender, connection) = timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| "no connection in time".to_owned())??;
        // It ends with the sender; what goes wrong is told by the next request.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self {
            node: node.to_owned(),
            sender,
        })
    }

    pub(super) async fn exchange(&mut self, ask: &Ask<'_>) -> Result<Reply, String> {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(ask.path)
            .header(header::HOST, &self.node)
            .header(header::ACCEPT, ask.accept);
        if !ask.content_type.is_empty() {
            request = request.header(header::CONTENT_TYPE, ask.content_type);
        }
        if ask.minimal {
            request = request.header("prefer", "return=minimal");
        }
        let request = request
            .body(Full::new(ask.body.clone()))
            .map_err(|error| error.to_string())?;
        let answer = async {
            let response = self
                .sender
                .send_request(request)
                .await
                .map_err(|error| error.to_string())?;
            let status = response.status();
            let content_type = response
                .headers()
                .get(header::CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned();
            let retry_after = response
                .headers()
                .get(header::RETRY_AFTER)
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs);
            let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES)
                .collect()
                .await
                .map_err(|error| error.to_string())?
                .to_bytes();
            Ok(Reply {
                node: self.node.clone(),
                status,
                content_type,
                retry_after,
                body,
            })
        };
        timeout(ANSWER_TIMEOUT, answer)
            .await
            .unwrap_or_else(|_| Err("no answer in time".to_owned()))
    }
}
