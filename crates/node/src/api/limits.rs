//! What the public interface holds against those who send too much, too slowly, or do not read (ADR 0026).

use std::time::Duration;

/// Limits of the public interface. They bound what one client can hold, not what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// Connections at once; further ones are told so and closed.
    pub connections_max: usize,
    /// The same of one participant, operator or auditor.
    pub connections_per_client_max: usize,
    /// Of a request's head: its first line and all headers.
    pub head_max_bytes: usize,
    /// Of all requests' bodies of one client that are read or worked at.
    pub bodies_per_client_max_bytes: usize,
    /// From a head's first byte to its last.
    pub head_timeout: Duration,
    /// Without a request.
    pub idle_timeout: Duration,
    /// From a request's head to its answer's, the body included.
    pub request_timeout: Duration,
    /// How fast a body must come, and an answer be taken, on the average.
    pub floor_bytes_per_s: u64,
    /// How long either may stand still.
    pub grace: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            // With files and links below the usual 8,192 open files of a service.
            connections_max: 4_096,
            // What `clearspan submit --in-flight` may open.
            connections_per_client_max: 256,
            head_max_bytes: 8 << 10,
            // Four of the largest messages.
            bodies_per_client_max_bytes: 4 * super::BODY_MAX_BYTES,
            head_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(30),
            // Above the longest poll and the longest wait for an outcome.
            request_timeout: Duration::from_secs(120),
            // A modem; slower is no participant.
            floor_bytes_per_s: 4 << 10,
            grace: Duration::from_secs(10),
        }
    }
}
