//! How true the relay is on this machine: the round trip seen for the one asked, and how much it carries.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde::Serialize;

use crate::clock::{MILLI_NS, SECOND_NS, now_ns};
use crate::relay::{Relay, Shape};

/// The round trips that are checked: a campus, 70 km, and two pairs of regions.
pub const CHECKED_RTT_NS: [u64; 4] = [200_000, 700_000, 32 * MILLI_NS, 156 * MILLI_NS];
/// Bytes of a request and its echo: an urgent payment's order of size.
const ECHO_BYTES: usize = 256;
/// Between echoes, so that each finds the relay asleep, as a quiet line would.
const PAUSE: Duration = Duration::from_millis(1);
/// The fewest echoes; long lines get no more.
const ECHOES_MIN: u64 = 30;
/// The most echoes.
const ECHOES_MAX: u64 = 1000;
/// Time for echoes over one line, where that gives more than the fewest.
const ECHO_TIME_NS: u64 = SECOND_NS;
/// How long bytes are counted, after the line has filled.
const CEILING_TIME_NS: u64 = SECOND_NS;
/// What is written at once.
const WRITE_BYTES: usize = 256 << 10;
/// Nothing stands still for this long.
const STALL: Duration = Duration::from_secs(30);

/// What was seen over one line.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Seen {
    /// The round trip asked for; `None` for a connection without a relay, which is what the machine itself takes.
    pub asked_rtt_ns: Option<u64>,
    /// How many round trips were timed.
    pub echoes: u64,
    /// The shortest.
    pub rtt_min_ns: u64,
    /// Half are no longer.
    pub rtt_p50_ns: u64,
    /// All but one in a hundred are no longer.
    pub rtt_p99_ns: u64,
    /// One connection, one way, as fast as it goes.
    pub ceiling_bytes_per_s: u64,
}

/// Measures a connection without a relay, then each of the round trips.
///
/// # Errors
/// As the system says.
pub fn relay_check(rtts_ns: &[u64]) -> io::Result<Vec<Seen>> {
    let mut seen = vec![measure(None)?];
    for &rtt_ns in rtts_ns {
        seen.push(measure(Some(rtt_ns))?);
    }
    Ok(seen)
}

fn measure(asked_rtt_ns: Option<u64>) -> io::Result<Seen> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let target = listener.local_addr()?;
    let relay = Relay::start()?;
    let address = match asked_rtt_ns {
        None => target,
        Some(rtt_ns) => {
            let shape = Shape {
                delay_ns: rtt_ns / 2,
                ..Shape::default()
            };
            relay.route(target, relay.line(shape)?, relay.line(shape)?)?
        }
    };
    let connect = || {
        let near = TcpStream::connect(address)?;
        let (far, _) = listener.accept()?;
        for end in [&near, &far] {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(STALL))?;
            end.set_write_timeout(Some(STALL))?;
        }
        io::Result::Ok((near, far))
    };
    let (near, far) = connect()?;
    let mut rtts_ns = echoes(near, far, asked_rtt_ns.unwrap_or(0))?;
    rtts_ns.sort_unstable();
    let (near, far) = connect()?;
    let ceiling_bytes_per_s = ceiling(near, far, asked_rtt_ns.unwrap_or(0))?;
    Ok(Seen {
        asked_rtt_ns,
        echoes: rtts_ns.len() as u64,
        rtt_min_ns: rtts_ns.first().copied().unwrap_or(0),
        rtt_p50_ns: quantile(&rtts_ns, 50),
        rtt_p99_ns: quantile(&rtts_ns, 99),
        ceiling_bytes_per_s,
    })
}

/// The smallest that so many percent do not exceed; 0 of none.
#[must_use]
pub fn quantile(sorted: &[u64], percent: usize) -> u64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(0)
}

fn echoes(mut near: TcpStream, mut far: TcpStream, rtt_ns: u64) -> io::Result<Vec<u64>> {
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; ECHO_BYTES];
        while far.read_exact(&mut buffer).is_ok() && far.write_all(&buffer).is_ok() {}
    });
    let count = (ECHO_TIME_NS / (rtt_ns + MILLI_NS)).clamp(ECHOES_MIN, ECHOES_MAX);
    let mut seen_ns = Vec::new();
    let mut buffer = [1; ECHO_BYTES];
    for _ in 0..count {
        std::thread::sleep(PAUSE);
        let start_ns = now_ns();
        near.write_all(&buffer)?;
        near.read_exact(&mut buffer)?;
        seen_ns.push(now_ns() - start_ns);
    }
    drop(near);
    let _ = echo.join();
    Ok(seen_ns)
}

/// Bytes per second that one connection carries one way, once the line is full.
fn ceiling(mut near: TcpStream, mut far: TcpStream, rtt_ns: u64) -> io::Result<u64> {
    let writer = std::thread::spawn(move || {
        let part = vec![7; WRITE_BYTES];
        while near.write_all(&part).is_ok() {}
    });
    let mut buffer = vec![0; WRITE_BYTES];
    let mut read_for = |ns: u64| {
        let (start_ns, mut bytes) = (now_ns(), 0_u64);
        loop {
            bytes += far.read(&mut buffer)? as u64;
            let took_ns = now_ns() - start_ns;
            if took_ns >= ns {
                return io::Result::Ok((bytes, took_ns));
            }
        }
    };
    read_for(2 * rtt_ns + 100 * MILLI_NS)?;
    let (bytes, took_ns) = read_for(CEILING_TIME_NS)?;
    drop(far);
    let _ = writer.join();
    let rate = u128::from(bytes) * u128::from(SECOND_NS) / u128::from(took_ns.max(1));
    Ok(u64::try_from(rate).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{quantile, relay_check};

    #[test]
    fn a_check_sees_no_round_trip_shorter_than_asked() {
        let seen = relay_check(&[200_000]).unwrap();
        let [direct, line] = seen.as_slice() else {
            panic!("{seen:?}");
        };
        assert_eq!(direct.asked_rtt_ns, None);
        assert!(line.rtt_min_ns >= 200_000, "{line:?}");
        for seen in [direct, line] {
            assert!(seen.rtt_p99_ns >= seen.rtt_p50_ns, "{seen:?}");
            assert!(seen.ceiling_bytes_per_s > 1_000_000, "{seen:?}");
        }
    }

    #[test]
    fn quantiles() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&hundred, 50), 50);
        assert_eq!(quantile(&hundred, 99), 99);
        assert_eq!(quantile(&[5], 99), 5);
        assert_eq!(quantile(&[], 99), 0);
    }
}
