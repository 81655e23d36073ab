//! `[http]` of `node.toml`: what the public interface holds against clients.

use std::time::Duration;

use serde::Deserialize;
use toml::Spanned;

use crate::api::HttpLimits;
use crate::cluster::keys::{self, Fault, Key};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileHttp {
    connections: Option<Spanned<i64>>,
    connections_per_client: Option<Spanned<i64>>,
    bodies_per_client_mib: Option<Spanned<i64>>,
    head_kib: Option<Spanned<i64>>,
    head_timeout_ms: Option<Spanned<i64>>,
    idle_timeout_ms: Option<Spanned<i64>>,
    request_timeout_ms: Option<Spanned<i64>>,
    floor_bytes_per_s: Option<Spanned<i64>>,
    grace_ms: Option<Spanned<i64>>,
}

fn time(key: &Key, setting: Option<&Spanned<i64>>) -> Result<Duration, Fault> {
    Ok(Duration::from_millis(key.number(setting)?))
}

fn count(key: &Key, setting: Option<&Spanned<i64>>) -> Result<usize, Fault> {
    Ok(usize::try_from(key.number(setting)?).unwrap_or(usize::MAX))
}

impl FileHttp {
    pub(super) fn check(&self) -> Result<HttpLimits, Fault> {
        let bodies = keys::BODIES.bytes(self.bodies_per_client_mib.as_ref())?;
        Ok(HttpLimits {
            connections_max: count(&keys::CONNECTIONS, self.connections.as_ref())?,
            connections_per_client_max: count(
                &keys::CLIENT_CONNECTIONS,
                self.connections_per_client.as_ref(),
            )?,
            head_max_bytes: count(&keys::HEAD, self.head_kib.as_ref())? << 10,
            bodies_per_client_max_bytes: usize::try_from(bodies).unwrap_or(usize::MAX),
            head_timeout: time(&keys::HEAD_TIMEOUT, self.head_timeout_ms.as_ref())?,
            idle_timeout: time(&keys::IDLE_TIMEOUT, self.idle_timeout_ms.as_ref())?,
            request_timeout: time(&keys::REQUEST_TIMEOUT, self.request_timeout_ms.as_ref())?,
            floor_bytes_per_s: keys::FLOOR.number(self.floor_bytes_per_s.as_ref())?,
            grace: time(&keys::GRACE, self.grace_ms.as_ref())?,
        })
    }
}
