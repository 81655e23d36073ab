use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{LineId, Relay, Shape};
use crate::clock::{MILLI_NS, SECOND_NS, now_ns};

/// Nothing here takes a second by itself; a loaded machine may need longer.
const DEADLINE: Duration = Duration::from_secs(60);

fn delay(ns: u64) -> Shape {
    Shape {
        delay_ns: ns,
        ..Shape::default()
    }
}

struct Way {
    relay: Relay,
    there: LineId,
    back: LineId,
    address: SocketAddr,
    listener: TcpListener,
}

fn way(there: Shape, back: Shape) -> Way {
    let relay = Relay::start().unwrap();
    let (there, back) = (relay.line(there).unwrap(), relay.line(back).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = relay
        .route(listener.local_addr().unwrap(), there, back)
        .unwrap();
    Way {
        relay,
        there,
        back,
        address,
        listener,
    }
}

impl Way {
    /// Both ends of a new connection.
    fn connect(&self) -> (TcpStream, TcpStream) {
        let near = TcpStream::connect(self.address).unwrap();
        let (far, _) = self.listener.accept().unwrap();
        for end in [&near, &far] {
            end.set_nodelay(true).unwrap();
            end.set_read_timeout(Some(DEADLINE)).unwrap();
            end.set_write_timeout(Some(DEADLINE)).unwrap();
        }
        (near, far)
    }
}

/// Bytes whose order can be told.
fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x1234_5678_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(&mut next).take(len).collect()
}

fn echo(mut stream: TcpStream) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(count) = stream.read(&mut buffer) {
            if count == 0 || stream.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    })
}

#[test]
fn an_echo_is_never_early() {
    for (there, back) in [(100_000, 100_000), (350_000, 350_000), (3 * MILLI_NS, 0)] {
        let way = way(delay(there), delay(back));
        let (mut near, far) = way.connect();
        let far = echo(far);
        let mut best_ns = u64::MAX;
        for _ in 0..50 {
            let start_ns = now_ns();
            near.write_all(&[7]).unwrap();
            near.read_exact(&mut [0]).unwrap();
            let seen_ns = now_ns() - start_ns;
            assert!(seen_ns >= there + back, "{seen_ns} for {there} + {back}");
            best_ns = best_ns.min(seen_ns);
        }
        // Generous: the machine may be busy, but not for each of fifty.
        assert!(
            best_ns < there + back + 50 * MILLI_NS,
            "{best_ns} for {there} + {back}"
        );
        drop(near);
        far.join().unwrap();
    }
}

#[test]
fn jitter_keeps_the_order_of_megabytes_both_ways() {
    let shape = Shape {
        delay_ns: 200_000,
        jitter_ns: 500_000,
        bytes_per_s: None,
    };
    let way = way(shape, shape);
    let (near, far) = way.connect();
    let sent = pattern(8 << 20);
    let far = echo(far);
    let mut writer = near.try_clone().unwrap();
    let expected = sent.clone();
    let writer = std::thread::spawn(move || {
        // Writes of many lengths.
        for part in sent.chunks(77_777) {
            writer.write_all(part).unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut got = Vec::new();
    (&near).read_to_end(&mut got).unwrap();
    writer.join().unwrap();
    far.join().unwrap();
    assert!(got == expected, "{} of {}", got.len(), expected.len());
}

#[test]
fn one_side_may_end_before_the_other() {
    let way = way(delay(1_000_000), delay(1_000_000));
    let (mut near, mut far) = way.connect();
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut question = Vec::new();
    far.read_to_end(&mut question).unwrap();
    assert_eq!(question, b"question");
    far.write_all(b"answer").unwrap();
    drop(far);
    let mut answer = Vec::new();
    near.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"answer");
    drop(near);
    wait("connections end", || {
        way.relay
            .status()
            .unwrap()
            .iter()
            .all(|line| line.connections == 0 && line.in_flight_bytes == 0)
    });
}

#[test]
fn a_line_carries_no_more_than_its_bandwidth() {
    let rate = 20_000_000;
    let shape = Shape {
        bytes_per_s: Some(rate),
        ..delay(5 * MILLI_NS)
    };
    let way = way(shape, delay(0));
    // Two connections share it.
    let pairs = [way.connect(), way.connect()];
    let len = 2 << 20;
    let start_ns = now_ns();
    let ends: Vec<_> = pairs
        .into_iter()
        .map(|(mut near, mut far)| {
            let writer = std::thread::spawn(move || {
                near.write_all(&pattern(len)).unwrap();
                near
            });
            let reader = std::thread::spawn(move || {
                let mut got = vec![0; len];
                far.read_exact(&mut got).unwrap();
                assert!(got == pattern(len));
            });
            (writer, reader)
        })
        .collect();
    for (writer, reader) in ends {
        reader.join().unwrap();
        writer.join().unwrap();
    }
    let took_ns = now_ns() - start_ns;
    let least_ns = 2 * len as u64 * SECOND_NS / rate + 5 * MILLI_NS;
    assert!(took_ns >= least_ns, "{took_ns} for {least_ns}");
}

#[test]
fn a_reader_that_stops_stops_the_writer_and_memory_is_bounded() {
    let way = way(delay(100_000), delay(100_000));
    let (mut near, mut far) = way.connect();
    near.set_nonblocking(true).unwrap();
    let part = pattern(1 << 16);
    // With nobody reading, the writer is stopped by what the line and the system hold at most.
    let mut written = 0_usize;
    let mut still = 0;
    while still < 200 {
        match near.write(&part) {
            Ok(count) => {
                written += count;
                still = 0;
            }
            Err(_) => {
                still += 1;
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(written < 256 << 20, "nothing stops the writer");
    }
    let status = &way.relay.status().unwrap()[0];
    assert!(status.in_flight_bytes <= 5 << 20, "{status:?}");
    // And goes on from there.
    let mut left = written;
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let count = far.read(&mut buffer).unwrap();
        assert!(count > 0);
        left -= count;
    }
}

#[test]
fn a_cut_stops_bytes_one_way_and_healed_they_go_on() {
    let way = way(delay(20 * MILLI_NS), delay(100_000));
    let (mut near, mut far) = way.connect();
    near.write_all(b"1").unwrap();
    far.read_exact(&mut [0]).unwrap();
    // This is inside the line when it is cut.
    near.write_all(b"2").unwrap();
    wait("bytes are inside", || {
        way.relay.status().unwrap()[0].in_flight_bytes == 1
    });
    way.relay.cut(&[way.there]).unwrap();
    near.write_all(b"3").unwrap();
    far.set_read_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    assert!(
        far.read_exact(&mut [0]).is_err(),
        "a cut line carries bytes"
    );
    // The other way is open.
    far.write_all(b"4").unwrap();
    let mut got = [0];
    near.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"4");
    assert!(way.relay.status().unwrap()[0].cut);

    far.set_read_timeout(Some(DEADLINE)).unwrap();
    let healed_ns = now_ns();
    way.relay.heal(&[way.there]).unwrap();
    let mut got = [0; 2];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"23");
    assert!(
        now_ns() - healed_ns >= 20 * MILLI_NS,
        "what was held back travels its whole way"
    );
}

#[test]
fn no_connection_begins_over_a_cut_line_and_healed_it_does() {
    let way = way(delay(0), delay(0));
    way.relay.cut(&[way.there, way.back]).unwrap();
    way.listener.set_nonblocking(true).unwrap();
    let mut near = TcpStream::connect(way.address).unwrap();
    near.write_all(b"hello").unwrap();
    near.set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    assert!(near.read_exact(&mut [0]).is_err());
    assert!(way.listener.accept().is_err(), "a connection came through");
    // One way is not enough for a connection to begin.
    way.relay.heal(&[way.there]).unwrap();
    assert!(near.read_exact(&mut [0]).is_err());
    assert!(way.listener.accept().is_err(), "a connection came through");
    way.relay.heal(&[way.back]).unwrap();
    way.listener.set_nonblocking(false).unwrap();
    let (mut far, _) = way.listener.accept().unwrap();
    let mut got = [0; 5];
    far.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"hello");
}

#[test]
fn a_target_that_is_not_there_ends_the_connection() {
    let relay = Relay::start().unwrap();
    let line = relay.line(delay(0)).unwrap();
    let target = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let address = relay.route(target, line, line).unwrap();
    let mut near = TcpStream::connect(address).unwrap();
    near.set_read_timeout(Some(DEADLINE)).unwrap();
    assert!(matches!(near.read(&mut [0]), Ok(0) | Err(_)));
    wait("it ends", || relay.status().unwrap()[0].connections == 0);
}

#[test]
fn a_side_that_is_gone_is_told_to_the_other() {
    let way = way(delay(100_000), delay(100_000));
    let (near, mut far) = way.connect();
    drop(near);
    assert_eq!(far.read(&mut [0]).unwrap(), 0);
    // Writing to it fails before long.
    let part = pattern(1 << 16);
    while far.write_all(&part).is_ok() {}
    drop(far);
    wait("it ends", || {
        way.relay.status().unwrap()[0].connections == 0
    });
}

#[test]
fn the_relay_ends_when_dropped() {
    let way = way(delay(0), delay(0));
    let (mut near, _far) = way.connect();
    let Way { relay, address, .. } = way;
    drop(relay);
    assert!(matches!(near.read(&mut [0]), Ok(0) | Err(_)));
    assert!(TcpStream::connect(address).is_err());
}

fn wait(what: &str, condition: impl Fn() -> bool) {
    let start_ns = now_ns();
    while !condition() {
        assert!(
            now_ns() - start_ns < u64::try_from(DEADLINE.as_nanos()).unwrap(),
            "in vain waited for: {what}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}
