//! How true the relay is on this machine, and how much it carries.

use clearspan_lab::measure::{CHECKED_RTT_NS, relay_check};

use super::{ClusterError, Figure, io};

const PART: &str = "relay";

pub(super) fn measure(show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    for seen in relay_check(&CHECKED_RTT_NS).map_err(io("measure the relay"))? {
        let name = seen.asked_rtt_ns.map_or_else(
            || "no relay".to_owned(),
            |ns| format!("{} ms asked", ns as f64 / 1e6),
        );
        for (what, ns) in [("p50", seen.rtt_p50_ns), ("p99", seen.rtt_p99_ns)] {
            let name = format!("{name}: round trip {what}");
            show(Figure::new(PART, name, "ms", vec![ns as f64 / 1e6]));
        }
        let rate = seen.ceiling_bytes_per_s as f64 / 1e6;
        let name = format!("{name}: one connection carries");
        show(Figure::new(PART, name, "MB/s", vec![rate]));
    }
    Ok(())
}
