//! Which node a connection is from: what its certificate says, what its greeting says, and what the cluster's definition
//! says must be one.

use clearspan_codec::frame::{Frame, Hello, Kind, Lane};
use clearspan_storage::NodeId;
use rustls::CommonState;
use rustls::pki_types::ServerName;

use super::wire::{read_body, read_header};
use super::{LinkFault, Shared};
use crate::cluster::pki::{node_name, node_of_certificate};

/// The name under which a node is dialled.
pub(super) fn server_name(node: NodeId) -> Result<ServerName<'static>, LinkFault> {
    ServerName::try_from(node_name(node)).map_err(|_| LinkFault::Certificate)
}

/// The peer's certificate, which the TLS handshake has verified, is that of this node and of no other.
pub(super) fn check_certificate(connection: &CommonState, node: NodeId) -> Result<(), LinkFault> {
    let certificate = connection
        .peer_certificates()
        .and_then(|chain| chain.first())
        .ok_or(LinkFault::Certificate)?;
    if node_of_certificate(certificate) == Some(node) {
        Ok(())
    } else {
        Err(LinkFault::Certificate)
    }
}

/// Reads the greeting: nothing else is parsed before it.
pub(super) async fn read_hello(
    shared: &Shared,
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> Result<Hello, LinkFault> {
    let patience = shared.limits.handshake_timeout;
    let header = read_header(stream, shared.cluster, patience).await?;
    if !matches!(header.kind(), Kind::Hello | Kind::NotAdmitted) {
        return Err(LinkFault::Unexpected(header.kind()));
    }
    match read_body(stream, &header, patience).await? {
        Frame::Hello(hello) => Ok(hello),
        Frame::NotAdmitted(why) => Err(LinkFault::NotAdmitted(why)),
        _ => Err(LinkFault::Unexpected(header.kind())),
    }
}

/// Reads what follows a greeting: the life before this one.
pub(super) async fn read_life(
    shared: &Shared,
    stream: &mut (impl tokio::io::AsyncRead + Unpin),
) -> Result<u64, LinkFault> {
    let patience = shared.limits.handshake_timeout;
    let header = read_header(stream, shared.cluster, patience).await?;
    if header.kind() != Kind::Life {
        return Err(LinkFault::Unexpected(header.kind()));
    }
    match read_body(stream, &header, patience).await? {
        Frame::Life { previous } => Ok(previous),
        _ => Err(LinkFault::Unexpected(header.kind())),
    }
}

/// This node's greeting.
pub(super) fn hello(shared: &Shared, lane: Lane) -> Frame {
    Frame::Hello(Hello {
        node: shared.node.to_bytes(),
        member: shared.me,
        incarnation: shared.incarnation,
        version: clearspan_codec::frame::VERSION,
        lane,
    })
}
