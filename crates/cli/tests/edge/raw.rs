//! Bytes over TLS with a participant's certificate, as no HTTP library would send them.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use clearspan_node::client::client_tls;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

use crate::node::{DEADLINE, Node};

pub(crate) struct Raw(StreamOwned<ClientConnection, TcpStream>);

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The code of a problem document; empty for any other answer.
    pub(crate) fn code(&self) -> String {
        let value: Option<Value> = serde_json::from_slice(&self.body).ok();
        let code = value.and_then(|value| Some(value.get("code")?.as_str()?.to_owned()));
        code.unwrap_or_default()
    }
}

impl Raw {
    pub(crate) fn connect(node: &Node, who: &str) -> Self {
        let file = |end: &str| node.file(&format!("clients/{who}.{end}"));
        let ca = node.file("pki/nodes-ca.crt");
        let tls = client_tls(&file("crt"), &file("key"), &ca).unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let connection = ClientConnection::new(tls, name).unwrap();
        let stream = TcpStream::connect(node.address()).unwrap();
        // A node that neither answers nor closes fails the test.
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(StreamOwned::new(connection, stream))
    }

    /// Sends what the other end still takes.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.0.write_all(bytes.as_ref())?;
        self.0.flush()
    }

    /// Sends byte by byte until the other end has had enough or all is sent.
    pub(crate) fn trickle(&mut self, bytes: &[u8], pause: Duration) {
        for byte in bytes {
            if self.send([*byte]).is_err() {
                return;
            }
            // The answer that ends it may be there: looked for without waiting.
            self.0.sock.set_nonblocking(true).unwrap();
            let mut one = [0];
            let seen = self.0.sock.peek(&mut one);
            self.0.sock.set_nonblocking(false).unwrap();
            let tickets = self.0.conn.process_new_packets().is_ok();
            let quiet = matches!(&seen, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            if !quiet && tickets && !self.only_tickets() {
                return;
            }
            std::thread::sleep(pause);
        }
    }

    /// Takes what is there; whether it was of TLS alone.
    fn only_tickets(&mut self) -> bool {
        let read = self.0.conn.read_tls(&mut self.0.sock);
        if !matches!(read, Ok(1..)) {
            return false;
        }
        self.0
            .conn
            .process_new_packets()
            .is_ok_and(|state| state.plaintext_bytes_to_read() == 0 && !state.peer_has_closed())
    }

    /// All that comes until the connection is closed; it must be.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut buffer = [0; 1 << 16];
        loop {
            match self.0.read(&mut buffer) {
                Ok(0) => return all,
                Ok(read) => all.extend_from_slice(&buffer[..read]),
                Err(error) => {
                    let kind = error.kind();
                    let waited = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
                    assert!(!waited.contains(&kind), "the connection stays open");
                    return all;
                }
            }
        }
    }

    /// The answers that come until the connection is closed.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let all = self.rest();
        let mut rest = all.as_slice();
        let mut answers = Vec::new();
        while let Some((answer, after)) = answer(rest) {
            answers.push(answer);
            rest = after;
        }
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(rest));
        answers
    }

    /// One answer; the connection stays as it is.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut all = Vec::new();
        let mut one = [0];
        loop {
            if let Some((answer, [])) = answer(&all) {
                return answer;
            }
            assert_eq!(
                self.0.read(&mut one).unwrap(),
                1,
                "an answer that ends early"
            );
            all.extend_from_slice(&one);
        }
    }
}

/// The first answer, when it is whole, and what follows it.
fn answer(bytes: &[u8]) -> Option<(Answer, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let head = head.to_ascii_lowercase();
    let status = head.strip_prefix("http/1.1 ")?.get(..3)?.parse().unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    let body = bytes.get(end..end + length)?.to_vec();
    let answer = Answer { status, head, body };
    Some((answer, &bytes[end + length..]))
}
