//! Ports for a cluster: several labs may run at once, and nothing else may take a port between two lives of a node.

use std::io::{self, ErrorKind};
use std::net::TcpListener;

/// Below the ports that systems give to outgoing connections, which begin at 32,768.
const FIRST: u16 = 10_240;
const BLOCK_PORTS: u16 = 256;
const BLOCKS: u16 = 84;
/// Nodes of one block: three ports each, and the guard.
const NODES_MAX: u16 = 64;

const _: () = assert!(FIRST as u32 + BLOCKS as u32 * BLOCK_PORTS as u32 <= 32_768);
const _: () = assert!(3 * NODES_MAX < BLOCK_PORTS);

/// A block of ports that is this lab's for as long as the guard lives: every lab asks for a block by listening at its
/// first port.
#[derive(Debug)]
pub struct Ports {
    /// Keeps others from the block.
    pub guard: TcpListener,
    /// The first of as many ports as there are nodes, for other nodes. The block's other ports may be divided otherwise.
    pub peer: u16,
    /// The first for clients.
    pub client: u16,
    /// The first for metrics and health.
    pub http: u16,
}

/// The block that a lab had before, by the first of its ports.
///
/// # Errors
/// When something else listens there by now.
pub(crate) fn again(first: u16) -> io::Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", first.saturating_sub(1)))
}

/// A block for so many nodes.
///
/// # Errors
/// When there are more nodes than fit, or every block is taken.
pub fn free(nodes: usize) -> io::Result<Ports> {
    let count = u16::try_from(nodes)
        .ok()
        .filter(|&count| count <= NODES_MAX)
        .ok_or_else(|| io::Error::other(format!("more than {NODES_MAX} nodes")))?;
    // Labs that start at the same time begin to look at different places.
    let start = std::process::id() % u32::from(BLOCKS);
    for at in (0..u32::from(BLOCKS)).map(|at| (start + at) % u32::from(BLOCKS)) {
        let first = FIRST + u16::try_from(at).unwrap_or(0) * BLOCK_PORTS;
        let Ok(guard) = TcpListener::bind(("127.0.0.1", first)) else {
            continue;
        };
        let (peer, client, http) = (first + 1, first + 1 + NODES_MAX, first + 1 + 2 * NODES_MAX);
        let mut wanted = [peer, client, http]
            .into_iter()
            .flat_map(|port| port..port + count);
        if wanted.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return Ok(Ports {
                guard,
                peer,
                client,
                http,
            });
        }
    }
    Err(io::Error::new(
        ErrorKind::AddrInUse,
        "every block of ports is taken",
    ))
}
