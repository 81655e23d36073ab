//! Accepts connections: TLS with a client's certificate, then HTTP/1.1 with caps on everything.

use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::{Api, plain_router, router};
use crate::cluster::pki::client_of_certificate;
use crate::events;

/// Connections at once; more wait in the system's queue.
const CONNECTIONS_MAX: usize = 4096;
/// From the first packet to the end of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// For a request's head, idle time before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const HEADERS_MAX: usize = 64;
const BUFFER_MAX_BYTES: usize = 64 << 10;
/// When the system refuses a connection for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What is under way when the node stops has so long to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Ends the doors.
#[derive(Debug)]
pub struct Door {
    stop: watch::Sender<bool>,
    open: Arc<Semaphore>,
}

impl Default for Door {
    fn default() -> Self {
        Self {
            stop: watch::Sender::new(false),
            open: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        }
    }
}

impl Door {
    /// Accepts nothing more, lets requests that are under way end, for a few seconds.
    pub async fn close(&self) {
        let _ = self.stop.send(true);
        let all = u32::try_from(CONNECTIONS_MAX).unwrap_or(u32::MAX);
        let _ = timeout(DRAIN, self.open.acquire_many(all)).await;
    }
}

/// Serves participants, operators and auditors until the door is closed.
pub async fn tls(door: &Door, api: Arc<Api>, listener: TcpListener, config: Arc<ServerConfig>) {
    let acceptor = TlsAcceptor::from(config);
    let app = router(&api);
    accept(door, listener, move |stream, stop| {
        let (acceptor, app, api) = (acceptor.clone(), app.clone(), api.clone());
        async move {
            let address = stream
                .peer_addr()
                .map(|address| address.to_string())
                .unwrap_or_default();
            let refuse = |why: String| {
                api.client_refused();
                events::log("client.refused", json!({ "address": address, "why": why }));
            };
            let stream = match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return refuse(error.to_string()),
                Err(_) => return refuse("the handshake took too long".to_owned()),
            };
            let certificate = stream
                .get_ref()
                .1
                .peer_certificates()
                .and_then(<[_]>::first);
            let Some(name) = certificate.and_then(client_of_certificate) else {
                return refuse(
                    "the certificate names no participant, operator or auditor".to_owned(),
                );
            };
            serve(stream, app.layer(Extension(name)), stop).await;
        }
    })
    .await;
}

/// Serves probes and figures without TLS until the door is closed.
pub async fn plain(door: &Door, api: Arc<Api>, listener: TcpListener) {
    let app = plain_router(&api);
    accept(door, listener, move |stream, stop| {
        serve(stream, app.clone(), stop)
    })
    .await;
}

async fn accept<F>(
    door: &Door,
    listener: TcpListener,
    connected: impl Fn(TcpStream, watch::Receiver<bool>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut stop = door.stop.subscribe();
    loop {
        let Ok(room) = door.open.clone().acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match stream {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let connection = connected(stream, door.stop.subscribe());
                tokio::spawn(async move {
                    connection.await;
                    drop(room);
                });
            }
            Err(error) => {
                events::log("client.accept-failed", json!({ "why": error.to_string() }));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    mut stop: watch::Receiver<bool>,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // What goes wrong on a connection is the client's to see.
        _ = connection.as_mut() => return,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
