//! Figures that can be followed by hand.

use clearspan_plan::{Entry, Kernel, Load, Plan, Rpo, Serves, Timing, Verdict};

const MS: u64 = 1_000_000;
const LOCAL_NS: u64 = 1_450_000;

fn load(entry: Entry) -> Load {
    Load {
        bulk_per_s: 100_000,
        urgent_per_s: 1_000,
        bulk_bytes: 300,
        urgent_bytes: 1_000,
        entry,
    }
}

fn plan(sites: &str, rtt_ns: u64, entry: Entry, kernel: Option<Kernel>) -> Plan {
    let layout = crate::layout(sites, rtt_ns, 4, None);
    let timing = Timing::of(&layout, LOCAL_NS);
    Plan::new(layout, timing, load(entry), kernel)
}

fn verdict<'a>(verdicts: &'a [Verdict], failure: &str) -> &'a Verdict {
    let names: Vec<&str> = verdicts
        .iter()
        .map(|verdict| verdict.failure.as_str())
        .collect();
    let found = verdicts.iter().find(|verdict| verdict.failure == failure);
    found.unwrap_or_else(|| panic!("no {failure} among {names:?}"))
}

#[test]
fn a_payment_costs_one_round_trip_to_the_nearest_quorum() {
    let plan = plan("A:3,B:3,W:witness", 700_000, Entry::Any, None);
    // Four of seven: three at home, the fourth over the line.
    let a = &plan.leaders[0];
    assert_eq!((a.site.as_str(), a.shards), ("A", 2));
    assert_eq!((a.quorum_rtt_ns, a.answer_ns), (700_000, 2_150_000));
    assert_eq!(a.answer_from_ns, [("B".to_owned(), 2_850_000)]);
    // Three at home are a quorum of five.
    let near = super_plan("A:3,B:2");
    assert_eq!(near.leaders[0].quorum_rtt_ns, 0);
    assert_eq!(near.leaders[1].quorum_rtt_ns, 32 * MS);
}

fn super_plan(sites: &str) -> Plan {
    plan(sites, 32 * MS, Entry::Leader, None)
}

#[test]
fn every_copy_goes_over_the_line_once() {
    // 100,000 x 300 + 1,000 x 1,000 bytes per second.
    let plan = plan("A:3,B:3,W:witness", 10 * MS, Entry::Leader, None);
    let link = |from: &str, to: &str| {
        let found = plan
            .links
            .iter()
            .find(|link| link.from == from && link.to == to);
        found.unwrap().clone()
    };
    // A leads half, and B has three nodes.
    let there = link("A", "B");
    assert_eq!(there.replication_bytes_per_s, 31_000_000 / 2 * 3);
    assert_eq!(there.forwarding_bytes_per_s, 0);
    assert_eq!(there.window_bytes, 31_000_000 / 2 * 3 / 100);
    assert_eq!(link("A", "W").replication_bytes_per_s, 31_000_000 / 2);
    assert_eq!(link("W", "A").replication_bytes_per_s, 0);
}

#[test]
fn what_enters_elsewhere_is_forwarded() {
    let plan = plan("A:1,B:1,W:witness", 10 * MS, Entry::Any, None);
    for link in &plan.links {
        // Half enters here, half of that is led there.
        let both = link.from != "W" && link.to != "W";
        let expected = if both { 31_000_000 / 4 } else { 0 };
        assert_eq!(link.forwarding_bytes_per_s, expected, "{link:?}");
    }
}

#[test]
fn kernels_that_allow_less_are_told_how_much() {
    // One connection carries 15.5 MB/s over 156 ms: 2.4 MB under way, 5 MiB of buffer.
    let kernel = Kernel {
        tcp_rmem: [4096, 131_072, 6 << 20],
        tcp_wmem: [4096, 16_384, 4 << 20],
    };
    let plan = plan("A:1,B:1", 156 * MS, Entry::Leader, Some(kernel));
    assert_eq!(plan.sockets.window_bytes, 15_500_000 * 156 / 1000);
    assert_eq!(plan.sockets.buffer_bytes, 5 << 20);
    assert_eq!(
        plan.sockets.sysctl,
        ["net.ipv4.tcp_wmem = 4096 16384 5242880"]
    );
    assert_eq!(plan.timing.election_ns, 1_560 * MS);
    let near = super::layout("A:1,B:1", 0, 4, None);
    let near = Plan::new(near, plan.timing, load(Entry::Any), Some(kernel));
    assert!(near.sockets.sysctl.is_empty());
}

#[test]
fn a_node_leads_no_more_than_it_may_have_under_way() {
    let plan = plan("A:1,B:1", 156 * MS, Entry::Leader, None);
    let answer_ns = 156 * MS + LOCAL_NS;
    assert_eq!(plan.under_way.led_per_s, 50_000);
    assert_eq!(plan.under_way.bytes, 15_500_000 * answer_ns / 1_000_000_000);
    assert_eq!(
        plan.under_way.ceiling_per_s,
        (32 << 20) * 1_000_000_000 / answer_ns / 300
    );
}

#[test]
fn the_loss_of_a_site_as_it_was_measured() {
    // docs/performance.md: 509 ms (p50) to 575 ms at 70 km, 1,301 ms when only silence tells.
    let plan = plan("A:1,B:1,W:witness", 700_000, Entry::Any, None);
    let site = verdict(&plan.singles, "site A");
    assert_eq!((site.serves, site.rpo), (Serves::All, Rpo::Nothing));
    assert_eq!(site.pause_seen_ns, Some(550 * MS + 4 * 700_000 + LOCAL_NS));
    assert_eq!(
        site.pause_silent_ns,
        Some(1_300 * MS + 4 * 700_000 + LOCAL_NS)
    );
    let witness = verdict(&plan.singles, "witness W");
    assert_eq!(
        (witness.serves, witness.pause_silent_ns),
        (Serves::All, Some(0))
    );
    let line = verdict(&plan.singles, "line A-B");
    assert_eq!(line.serves, Serves::All);
    let takes: Vec<(&str, u16)> = line
        .takes
        .iter()
        .map(|takes| (takes.site.as_str(), takes.shards))
        .collect();
    assert_eq!(takes, [("A", 2), ("B", 2)]);
}

#[test]
fn both_sites_lost_are_lost_with_their_disks() {
    let plan = plan("A:1,B:1,W:witness", 700_000, Entry::Any, None);
    let both = verdict(&plan.doubles, "site A + site B");
    assert_eq!(
        (both.serves, both.rpo),
        (Serves::Nothing, Rpo::NothingWithDisks)
    );
    assert_eq!((both.pause_seen_ns, both.answer_ns), (None, None));
    let lines = verdict(&plan.doubles, "line A-B + line A-W");
    assert_eq!((lines.serves, lines.rpo), (Serves::All, Rpo::Nothing));
    assert_eq!(lines.takes[0].shards, 0);
}

#[test]
fn nodes_that_fare_alike_are_one_line() {
    let plan = plan("A:3,B:3,W:witness", 700_000, Entry::Any, None);
    let names: Vec<&str> = plan
        .singles
        .iter()
        .map(|verdict| verdict.failure.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "a node of A",
            "a node of B",
            "site A",
            "site B",
            "witness W",
            "line A-B",
            "line A-W",
            "line B-W"
        ]
    );
    let two = verdict(&plan.doubles, "2 nodes of A");
    assert_eq!(two.serves, Serves::All);
    let worse = verdict(&plan.doubles, "a node of A + site B");
    assert_eq!(
        (worse.serves, worse.rpo),
        (Serves::Nothing, Rpo::NothingWithDisks)
    );
    assert!(
        !plan
            .doubles
            .iter()
            .any(|verdict| verdict.failure == "a node of A + site A")
    );
}
