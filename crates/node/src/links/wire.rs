//! Frames on a stream: read with caps and patience, written with progress.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use clearspan_codec::frame::{self, Frame, FrameError, HEADER_BYTES, Header};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::LinkFault;
use super::meter::count;

/// A body's memory is taken in steps of this, as its bytes come.
const BODY_STEP_BYTES: usize = 1 << 20;

/// Reads a frame's header. `patience` bounds the wait for it.
pub(super) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
    cluster: [u8; 16],
    patience: Duration,
) -> Result<Header, LinkFault> {
    let mut bytes = [0; HEADER_BYTES];
    timeout(patience, stream.read_exact(&mut bytes))
        .await
        .map_err(|_| LinkFault::Silent)?
        .map_err(LinkFault::read)?;
    Ok(Header::decode(&bytes, cluster)?)
}

/// Reads the body and decodes it. `patience` bounds the wait for each piece of it.
pub(super) async fn read_body(
    stream: &mut (impl AsyncRead + Unpin),
    header: &Header,
    patience: Duration,
) -> Result<Frame, LinkFault> {
    let len = header.body_bytes();
    let mut body = BytesMut::with_capacity(len.min(BODY_STEP_BYTES));
    while body.len() < len {
        let left = len - body.len();
        body.reserve(left.min(BODY_STEP_BYTES));
        let mut piece = (&mut *stream).take(left as u64);
        let read = timeout(patience, piece.read_buf(&mut body))
            .await
            .map_err(|_| LinkFault::Silent)?
            .map_err(LinkFault::read)?;
        if read == 0 {
            return Err(LinkFault::Closed);
        }
    }
    Ok(frame::decode(header, Bytes::from(body))?)
}

/// Writes bytes. `patience` bounds the wait for each step forward: a slow peer is no fault, one that stands still is.
pub(super) async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    patience: Duration,
    sent_bytes: &AtomicU64,
) -> Result<(), LinkFault> {
    while !bytes.is_empty() {
        let written = timeout(patience, stream.write(bytes))
            .await
            .map_err(|_| LinkFault::Stalled)?
            .map_err(LinkFault::Write)?;
        if written == 0 {
            return Err(LinkFault::Closed);
        }
        count(sent_bytes, written);
        bytes = bytes.get(written..).unwrap_or_default();
    }
    timeout(patience, stream.flush())
        .await
        .map_err(|_| LinkFault::Stalled)?
        .map_err(LinkFault::Write)
}

/// One frame's bytes.
pub(super) fn encode_one(cluster: [u8; 16], frame: &Frame) -> Result<Vec<u8>, FrameError> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 64);
    frame::encode(cluster, frame, &mut bytes)?;
    Ok(bytes)
}
