//! `[http]` of `node.toml`: what the public interface holds against clients.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use super::{Fault, number, size};
use crate::api::HttpLimits;

/// A client needs a connection, and a system has so many ports.
const CONNECTIONS_MAX: u64 = 60_000;
/// Of times: below it nobody is served over distance, above it is no limit.
const TIME_MS: (u64, u64) = (50, 3_600_000);
/// Below this the usual headers do not fit; above it HTTP's own buffer ends.
const HEAD_KIB: (u64, u64) = (1, 32);
const FLOOR_MAX_BYTES_PER_S: u64 = 1 << 30;
const BODIES_MIB: (u64, u64) = (64, 1 << 20);

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileHttp {
    connections: Option<Spanned<u64>>,
    connections_per_client: Option<Spanned<u64>>,
    bodies_per_client_mib: Option<Spanned<u64>>,
    head_kib: Option<Spanned<u64>>,
    head_timeout_ms: Option<Spanned<u64>>,
    idle_timeout_ms: Option<Spanned<u64>>,
    request_timeout_ms: Option<Spanned<u64>>,
    floor_bytes_per_s: Option<Spanned<u64>>,
    grace_ms: Option<Spanned<u64>>,
}

fn time(what: &str, setting: Option<&Spanned<u64>>, usual: Duration) -> Result<Duration, Fault> {
    let usual_ms = u64::try_from(usual.as_millis()).unwrap_or(u64::MAX);
    let ms = number(what, setting, usual_ms, TIME_MS.0, TIME_MS.1)?;
    Ok(Duration::from_millis(ms))
}

fn count(
    what: &str,
    setting: Option<&Spanned<u64>>,
    usual: usize,
    (min, max): (u64, u64),
) -> Result<usize, Fault> {
    let found = number(what, setting, usual as u64, min, max)?;
    Ok(usize::try_from(found).unwrap_or(usual))
}

impl FileHttp {
    pub(super) fn check(&self) -> Result<HttpLimits, Fault> {
        let usual = HttpLimits::default();
        let head = self.head_kib.as_ref();
        let head_kib = count("head_kib", head, usual.head_max_bytes >> 10, HEAD_KIB)?;
        let bodies = size(
            "bodies_per_client_mib",
            self.bodies_per_client_mib.as_ref(),
            usual.bodies_per_client_max_bytes as u64,
            BODIES_MIB.0,
            BODIES_MIB.1,
        )?;
        Ok(HttpLimits {
            connections_max: count(
                "connections",
                self.connections.as_ref(),
                usual.connections_max,
                (1, CONNECTIONS_MAX),
            )?,
            connections_per_client_max: count(
                "connections_per_client",
                self.connections_per_client.as_ref(),
                usual.connections_per_client_max,
                (1, CONNECTIONS_MAX),
            )?,
            head_max_bytes: head_kib << 10,
            bodies_per_client_max_bytes: usize::try_from(bodies).unwrap_or(usize::MAX),
            head_timeout: time(
                "head_timeout_ms",
                self.head_timeout_ms.as_ref(),
                usual.head_timeout,
            )?,
            idle_timeout: time(
                "idle_timeout_ms",
                self.idle_timeout_ms.as_ref(),
                usual.idle_timeout,
            )?,
            request_timeout: time(
                "request_timeout_ms",
                self.request_timeout_ms.as_ref(),
                usual.request_timeout,
            )?,
            floor_bytes_per_s: number(
                "floor_bytes_per_s",
                self.floor_bytes_per_s.as_ref(),
                usual.floor_bytes_per_s,
                1,
                FLOOR_MAX_BYTES_PER_S,
            )?,
            grace: time("grace_ms", self.grace_ms.as_ref(), usual.grace)?,
        })
    }
}
