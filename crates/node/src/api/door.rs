//! Accepts connections: TLS with a client's certificate, then HTTP/1.1 with caps on everything.

mod guarded;
mod places;

use std::sync::Arc;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::bounds::{Connection, bound, closing};
use super::metrics::Cut;
use super::{Api, Code, HttpLimits, Problem, plain_router, router};
use crate::cluster::pki::shown_by;
use crate::cluster::renewal::PublicTls;
use crate::events;
use guarded::Guarded;

pub(super) use guarded::{Conversation, Turn};
pub(super) use places::{Place, Places};

/// Handshakes at once; more wait in the system's queue. Who has shown no certificate takes nobody's place.
const HANDSHAKES_MAX: usize = 256;
/// Probes at once; more wait in the system's queue.
const PROBES_MAX: usize = 64;
/// Those who are told that there is no room, at once; more are closed without a word.
const TURNED_AWAY_MAX: usize = 64;
/// They have so long to hear it.
const TURNED_AWAY: Duration = Duration::from_secs(2);
/// From the first packet to the end of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
const BUFFER_MAX_BYTES: usize = 64 << 10;
/// When the system refuses a connection for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What is under way when the node stops has so long to end.
const DRAIN: Duration = Duration::from_secs(5);

/// Ends the doors.
#[derive(Debug)]
pub struct Door {
    stop: watch::Sender<bool>,
    /// Held by each connection that is served.
    open: Arc<Semaphore>,
    open_max: usize,
}

impl Door {
    /// A door for so many connections.
    #[must_use]
    pub fn new(limits: &HttpLimits) -> Self {
        let open_max = limits.connections_max + HANDSHAKES_MAX + PROBES_MAX;
        Self {
            stop: watch::Sender::new(false),
            open: Arc::new(Semaphore::new(open_max)),
            open_max,
        }
    }

    /// Accepts nothing more, lets requests that are under way end, for a few seconds.
    pub async fn close(&self) {
        let _ = self.stop.send(true);
        let all = u32::try_from(self.open_max).unwrap_or(u32::MAX);
        let _ = timeout(DRAIN, self.open.acquire_many(all)).await;
    }
}

/// Serves participants, operators and auditors until the door is closed.
pub async fn tls(
    door: &Door,
    api: Arc<Api>,
    listener: TcpListener,
    public: watch::Receiver<PublicTls>,
) {
    let app = router(&api);
    let turned_away = Arc::new(Semaphore::new(TURNED_AWAY_MAX));
    accept(door, listener, HANDSHAKES_MAX, move |stream, gate, stop| {
        let turned_away = turned_away.clone();
        let (mut public, app, api) = (public.clone(), app.clone(), api.clone());
        async move {
            let address = stream
                .peer_addr()
                .map(|address| address.to_string())
                .unwrap_or_default();
            let refuse = |why: String| {
                api.client_refused();
                events::log("client.refused", json!({ "address": address, "why": why }));
            };
            let acceptor = TlsAcceptor::from(public.borrow_and_update().config.clone());
            let stream = match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => return refuse(error.to_string()),
                Err(_) => return refuse("the handshake took too long".to_owned()),
            };
            let chain: Vec<CertificateDer<'static>> = stream
                .get_ref()
                .1
                .peer_certificates()
                .map(<[_]>::to_vec)
                .unwrap_or_default();
            let Some(shown) = chain.first().and_then(shown_by) else {
                return refuse(
                    "the certificate names no participant, operator or auditor".to_owned(),
                );
            };
            drop(gate);
            let place = match api
                .counts
                .places
                .take(&format!("{:?}", shown.name), &api.http)
            {
                Ok(place) => place,
                Err(full) => {
                    api.cut(Cut::Full);
                    if let Ok(_room) = turned_away.try_acquire() {
                        let app = no_room(&api, full.to_string());
                        let _ = timeout(TURNED_AWAY, serve(stream, app, &api, None, stop)).await;
                    }
                    return;
                }
            };
            let whose = shown.name.to_string();
            let app = app.layer(Extension(shown));
            tokio::select! {
                () = serve(stream, app, &api, Some(Arc::new(place)), stop) => {}
                why = no_longer_admitted(&mut public, &chain) => {
                    api.client_refused();
                    events::log(
                        "client.ended",
                        json!({ "address": address, "client": whose, "why": why }),
                    );
                }
            }
        }
    })
    .await;
}

/// Waits until a connection's chain would be refused, and says why.
async fn no_longer_admitted(
    public: &mut watch::Receiver<PublicTls>,
    chain: &[CertificateDer<'static>],
) -> String {
    while public.changed().await.is_ok() {
        let now = public.borrow_and_update().clone();
        if let Err(error) = now.admits(chain) {
            return error.to_string();
        }
    }
    // Nobody changes them any more.
    std::future::pending().await
}

/// Serves probes and figures without TLS until the door is closed.
pub async fn plain(door: &Door, api: Arc<Api>, listener: TcpListener) {
    let app = plain_router(&api);
    accept(door, listener, PROBES_MAX, move |stream, gate, stop| {
        let (app, api) = (app.clone(), api.clone());
        async move {
            serve(stream, app, &api, None, stop).await;
            drop(gate);
        }
    })
    .await;
}

/// Answers whatever is asked with the reason for which there is no more to be had.
fn no_room(api: &Arc<Api>, why: String) -> Router {
    let answer = move || async move { closing(Problem::new(Code::Busy, why)) };
    Router::new()
        .fallback(answer)
        .layer(from_fn_with_state(api.clone(), bound))
}

async fn accept<F>(
    door: &Door,
    listener: TcpListener,
    at_once: usize,
    connected: impl Fn(TcpStream, OwnedSemaphorePermit, watch::Receiver<bool>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut stop = door.stop.subscribe();
    let gate = Arc::new(Semaphore::new(at_once));
    loop {
        let Ok(passed) = gate.clone().acquire_owned().await else {
            return;
        };
        let stream = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match stream {
            Ok((stream, _)) => {
                let _ = stream.set_nodelay(true);
                let connection = connected(stream, passed, door.stop.subscribe());
                let open = door.open.clone();
                tokio::spawn(async move {
                    let _open = open.acquire_owned().await;
                    connection.await;
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
    api: &Api,
    place: Option<Arc<Place>>,
    mut stop: watch::Receiver<bool>,
) {
    let conversation = Arc::new(Conversation::default());
    let cuts = api.counts.cuts.clone();
    let stream = Guarded::new(stream, api.http, conversation.clone(), cuts);
    let app = app.layer(Extension(Connection {
        conversation,
        place,
    }));
    let connection = http1::Builder::new()
        // The stream knows more: how long the client was idle, and since when it is sending a head.
        .header_read_timeout(None)
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
