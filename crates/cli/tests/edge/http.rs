//! Requests that are almost HTTP, too large, too slow, or too many.

use std::time::{Duration, Instant};

use clearspan_node::client::Ask;
use hyper::StatusCode;

use crate::node::{ALFA, BRAV, DEADLINE, Node};
use crate::raw::Raw;

const PROBE: &str = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
const LAST_PROBE: &str = "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
const PAUSE: Duration = Duration::from_millis(20);

fn is_served(node: &Node, who: &str) {
    let reply = node.client(who).send(&Ask::get("/healthz")).unwrap();
    assert_eq!(reply.status, StatusCode::OK);
}

#[expect(clippy::disallowed_methods, reason = "a test waits in real time")]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

fn cuts(node: &Node, why: &str) -> u64 {
    node.metric(&format!("clearspan_http_cuts_total{{why=\"{why}\"}}"))
}

fn with_header(bytes: usize) -> String {
    format!(
        "GET /healthz HTTP/1.1\r\nhost: a\r\nx: {}\r\nconnection: close\r\n\r\n",
        "y".repeat(bytes)
    )
}

/// Each stands before a request that must not be answered: what one reader takes for a body is another's next request.
const SMUGGLED: &str = "GET /v1/accounts HTTP/1.1\r\nhost: a\r\n\r\n";

#[test]
fn what_is_not_quite_http_is_refused_and_nothing_is_read_behind_it() {
    let node = Node::start("");
    let post = |headers: &str, body: &str| {
        format!(
            "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-type: application/xml\r\n{headers}\r\n{body}{SMUGGLED}"
        )
    };
    let get = |lines: &str| format!("GET /healthz HTTP/1.1\r\n{lines}\r\n{SMUGGLED}");
    for (name, request, statuses) in [
        (
            "length, then chunks",
            post(
                "content-length: 4\r\ntransfer-encoding: chunked\r\n",
                "0\r\n\r\n",
            ),
            &[411][..],
        ),
        (
            "chunks, then length",
            post(
                "transfer-encoding: chunked\r\ncontent-length: 4\r\n",
                "0\r\n\r\n",
            ),
            &[411],
        ),
        (
            "chunks",
            post("transfer-encoding: chunked\r\n", "0\r\n\r\n"),
            &[411],
        ),
        (
            "an extension",
            post("transfer-encoding: chunked\r\n", "0;a=b\r\n\r\n"),
            &[411],
        ),
        (
            "a huge chunk",
            post("transfer-encoding: chunked\r\n", "ffffffffffffffffff\r\n"),
            &[411],
        ),
        (
            "a bad chunk",
            post("transfer-encoding: chunked\r\n", "-1\r\n"),
            &[411],
        ),
        (
            "chunks not last",
            post("transfer-encoding: chunked, identity\r\n", "0\r\n\r\n"),
            &[400, 411],
        ),
        (
            "chunks twice",
            post(
                "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
                "0\r\n\r\n",
            ),
            &[400, 411],
        ),
        (
            "another coding",
            post("transfer-encoding: xchunked\r\n", "0\r\n\r\n"),
            &[400, 411],
        ),
        (
            "chunks in a tab",
            post("transfer-encoding:\tchunked\r\n", "0\r\n\r\n"),
            &[400, 411],
        ),
        (
            "chunks behind a space",
            post("transfer-encoding : chunked\r\n", "0\r\n\r\n"),
            &[400],
        ),
        (
            "two lengths",
            post("content-length: 0\r\ncontent-length: 44\r\n", ""),
            &[400],
        ),
        (
            "a list of lengths",
            post("content-length: 0, 44\r\n", ""),
            &[400],
        ),
        (
            "a signed length",
            post("content-length: +0\r\n", ""),
            &[400],
        ),
        (
            "a negative length",
            post("content-length: -1\r\n", ""),
            &[400],
        ),
        (
            "a length in hex",
            post("content-length: 0x0\r\n", ""),
            &[400],
        ),
        (
            "a length too long",
            post("content-length: 99999999999999999999\r\n", ""),
            &[400],
        ),
        (
            "a body too large",
            post("content-length: 99999999999\r\n", ""),
            &[413, 503],
        ),
        ("a folded line", get("host: a\r\nx: y\r\n z\r\n"), &[400]),
        (
            "a folded length",
            post("content-length: 0\r\n 1\r\n", ""),
            &[400],
        ),
        ("a name with a space", get("host: a\r\nx y: z\r\n"), &[400]),
        ("no name", get("host: a\r\n: z\r\n"), &[400]),
        ("a bare return", get("host: a\r\nx: y\rz\r\n"), &[400]),
        ("a null", get("host: a\r\nx: y\0z\r\n"), &[400]),
        (
            "HTTP/2 without a word",
            format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{SMUGGLED}"),
            &[400, 505],
        ),
        (
            "another version",
            format!("GET /healthz HTTP/3.1\r\n\r\n{SMUGGLED}"),
            &[400, 505],
        ),
        (
            "no version",
            format!("GET /healthz\r\n\r\n{SMUGGLED}"),
            &[400],
        ),
        (
            "noise",
            format!("\u{1}\u{2}\u{3}\r\n\r\n{SMUGGLED}"),
            &[400],
        ),
    ] {
        let mut raw = Raw::connect(&node, ALFA);
        // It may be refused before all was sent.
        let _ = raw.send(&request);
        let answers = raw.answers();
        let given: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        // HTTP/2's preface is closed upon without an answer.
        let silent = given.is_empty() && request.starts_with("PRI");
        assert!(
            silent || (given.len() == 1 && statuses.contains(&given[0])),
            "{name}: {answers:?}"
        );
        for answer in answers.iter().filter(|answer| answer.status == 411) {
            assert_eq!(answer.code(), "LENGTH", "{name}");
        }
    }
    is_served(&node, ALFA);
}

#[test]
fn heads_have_a_cap_and_requests_may_come_one_behind_another() {
    let node = Node::start("");
    for (bytes, status, code) in [
        (7 << 10, 200, ""),
        (9 << 10, 431, "HEAD_TOO_LARGE"),
        (60 << 10, 431, "HEAD_TOO_LARGE"),
        // Above what HTTP's own buffer holds: no document.
        (1 << 20, 431, ""),
    ] {
        let mut raw = Raw::connect(&node, ALFA);
        let _ = raw.send(with_header(bytes));
        let answers = raw.answers();
        // Bytes behind the refusal may have been lost with the connection, the answer with them.
        if bytes < 64 << 10 || !answers.is_empty() {
            assert_eq!(answers.len(), 1, "{bytes}");
            assert_eq!(
                (answers[0].status, &*answers[0].code()),
                (status, code),
                "{bytes}"
            );
        }
    }
    let many: String = (0..300).map(|at| format!("x-{at}: y\r\n")).collect();
    let mut raw = Raw::connect(&node, ALFA);
    raw.send(format!("GET /healthz HTTP/1.1\r\n{many}\r\n"))
        .unwrap();
    assert_eq!(raw.answers()[0].status, 431);
    // Pipelined: each its own answer, in order.
    let mut raw = Raw::connect(&node, ALFA);
    let nowhere = "GET /v1/nowhere HTTP/1.1\r\nhost: a\r\n\r\n";
    let requests: String = (0..200)
        .map(|at| if at % 3 == 0 { nowhere } else { PROBE })
        .chain([LAST_PROBE])
        .collect();
    raw.send(requests).unwrap();
    let given: Vec<u16> = raw.answers().iter().map(|answer| answer.status).collect();
    let wanted: Vec<u16> = (0..201)
        .map(|at| if at % 3 == 0 && at < 200 { 404 } else { 200 })
        .collect();
    assert_eq!(given, wanted);
    is_served(&node, BRAV);
}

#[test]
fn connections_of_one_client_have_a_cap_that_is_nothing_to_others() {
    let node = Node::start("[http]\nconnections_per_client = 3\n");
    let mut open: Vec<Raw> = (0..3).map(|_| Raw::connect(&node, ALFA)).collect();
    for raw in &mut open {
        raw.send(PROBE).unwrap();
        assert_eq!(raw.answer().status, 200);
    }
    let mut one_more = Raw::connect(&node, ALFA);
    one_more.send(PROBE).unwrap();
    let answers = one_more.answers();
    assert_eq!(answers.len(), 1);
    assert_eq!((answers[0].status, &*answers[0].code()), (503, "BUSY"));
    assert!(answers[0].head.contains("retry-after: "));
    is_served(&node, BRAV);
    assert_eq!(cuts(&node, "full"), 1);
    // The others go on, and a place that is given back can be had.
    for raw in &mut open {
        raw.send(PROBE).unwrap();
        assert_eq!(raw.answer().status, 200);
    }
    drop(open.pop());
    eventually("a place is free again", || {
        let mut raw = Raw::connect(&node, ALFA);
        raw.send(LAST_PROBE).unwrap();
        raw.answers()[0].status == 200
    });
}

#[test]
fn who_is_slow_or_silent_is_cut_and_others_are_served() {
    let node =
        Node::start("[http]\nhead_timeout_ms = 500\ngrace_ms = 500\nidle_timeout_ms = 5000\n");
    let slow = |raw: &mut Raw| {
        let answers = raw.answers();
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!((answers[0].status, &*answers[0].code()), (408, "SLOW"));
    };
    // Slowloris: a head that goes on and on, and one that stops; also as a second request.
    let mut raw = Raw::connect(&node, ALFA);
    raw.trickle(with_header(100_000).as_bytes(), PAUSE);
    slow(&mut raw);
    let mut raw = Raw::connect(&node, ALFA);
    raw.send(PROBE).unwrap();
    assert_eq!(raw.answer().status, 200);
    raw.send("GET /healthz HT").unwrap();
    slow(&mut raw);
    assert_eq!(cuts(&node, "head"), 2);
    // A body that stops, and one that goes on and on.
    let head = "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n";
    let mut raw = Raw::connect(&node, ALFA);
    raw.send(format!("{head}<Document")).unwrap();
    slow(&mut raw);
    let mut raw = Raw::connect(&node, ALFA);
    raw.send(head).unwrap();
    raw.trickle(&[b' '; 99_999], PAUSE);
    slow(&mut raw);
    assert_eq!(cuts(&node, "body"), 2);
    // Somebody who asks for more than all buffers hold and reads none of it.
    let mut raw = Raw::connect(&node, ALFA);
    let document = "GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n";
    raw.send(document.repeat(1_000)).unwrap();
    eventually("who does not read is cut", || cuts(&node, "reader") == 1);
    let got = raw.rest();
    let one = node
        .client(ALFA)
        .send(&Ask::get("/v1/openapi.json"))
        .unwrap();
    assert!(got.len() < 1_000 * one.body.len(), "{}", got.len());
    // Silence is ended without a word.
    let mut raw = Raw::connect(&node, ALFA);
    raw.send(PROBE).unwrap();
    assert_eq!(raw.answer().status, 200);
    assert!(raw.rest().is_empty());
    assert!(cuts(&node, "idle") > 0);
    is_served(&node, BRAV);
}
