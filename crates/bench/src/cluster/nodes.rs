//! What a payment costs with one, three and seven nodes.

use clearspan_ledger::message::Settlement;

use super::load::Crowd;
use super::reception::{cost, named};
use super::{ClusterError, Figure, Options, Stage};

const PART: &str = "nodes";
/// Nodes, and their sites.
const CLUSTERS: [(usize, &str); 3] = [(1, "A:1"), (3, "A:1,B:1,C:1"), (7, "A:3,B:3,W:witness")];

pub(super) fn measure(options: &Options, show: &mut dyn FnMut(Figure)) -> Result<(), ClusterError> {
    let name = named(options);
    for (count, sites) in CLUSTERS {
        let mut stage = Stage::up(options, sites, "")?;
        let mut crowd = Crowd::connect(&stage.senders)?;
        let (mut rates, mut each, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Vec::new();
        for _ in 0..options.repeats {
            let load = stage.draw(
                options.payments,
                options.package_len,
                Settlement::Net,
                options.text,
            );
            let cost = cost(&mut stage, &mut crowd, &load)?;
            let millions = cost.run.payments() as f64 / 1e6;
            let seconds: f64 = cost.nodes.iter().sum();
            rates.push(cost.run.rate());
            all.push(seconds / millions);
            each.push(seconds / millions / cost.nodes.len().max(1) as f64);
            bytes.push(cost.carried_bytes as f64 / cost.run.payments() as f64);
        }
        let figure = |what: &str, unit, values| Figure::new(PART, what.to_owned(), unit, values);
        show(figure(
            &format!("{count} nodes ({sites}), {name}"),
            "payments/s",
            rates,
        ));
        show(figure("  CPU per million payments, each node", "s", each));
        show(figure("  CPU per million payments, all nodes", "s", all));
        show(figure("  between sites", "bytes/payment", bytes));
    }
    Ok(())
}
