//! Asks a node over HTTP, in its simplest form.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A node that takes longer to say whether it is ready is not.
const TIMEOUT: Duration = Duration::from_millis(1000);
/// The most of an answer that is read.
const ANSWER_MAX_BYTES: u64 = 64 << 10;

/// The status and the body of an answer.
pub(super) fn get(address: &str, path: &str) -> io::Result<(u16, String)> {
    let address: SocketAddr = address.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX_BYTES).read_to_end(&mut answer)?;
    parse(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "the answer is no HTTP"))
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some((status, body.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn answers() {
        let says = |text: &str| Some((503, text.to_owned()));
        assert_eq!(
            parse("HTTP/1.1 503 Service Unavailable\r\nA: b\r\n\r\nno leader\n"),
            says("no leader")
        );
        assert_eq!(parse("HTTP/1.1 503\r\n\r\n"), says(""));
        assert_eq!(parse("HTTP/1.1 5\r\n\r\n"), None);
        assert_eq!(parse("SSH-2.0"), None);
        assert_eq!(parse(""), None);
    }
}
