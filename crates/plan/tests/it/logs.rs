//! A quorum around a data node is not all that an election asks for: voters refuse whom they are ahead of. The planner sees a
//! leader exactly where one is found however far each voter's log reaches when the failure comes.

use clearspan_plan::{Damage, Layout, Part, Serves, Timing, examine};

#[derive(Clone, Copy)]
struct Voter {
    site: usize,
    witness: bool,
    up: bool,
}

/// Elects whoever can be, witnesses too; each brings the voters it reaches to its own log. True when a data node gets its turn.
fn somebody_leads(voters: &[Voter], cut: &[(usize, usize)], mut logs: Vec<u8>) -> bool {
    let talk = |a: &Voter, b: &Voter| {
        let pair = (a.site.min(b.site), a.site.max(b.site));
        a.up && b.up && (a.site == b.site || !cut.contains(&pair))
    };
    loop {
        let before = logs.clone();
        for (at, own) in voters.iter().enumerate() {
            let votes = voters.iter().zip(&logs);
            let votes = votes
                .filter(|(other, log)| talk(own, other) && **log <= logs[at])
                .count();
            if votes * 2 <= voters.len() {
                continue;
            }
            if !own.witness {
                return true;
            }
            for (other, voter) in voters.iter().enumerate() {
                if talk(own, voter) {
                    logs[other] = logs[at];
                }
            }
        }
        if logs == before {
            return false;
        }
    }
}

fn check(layout: &Layout, parts: &[Part]) {
    let verdict = examine(layout, Timing::of(layout, 0), &Damage::of(layout, parts));
    let mut voters = Vec::new();
    for (site, spec) in layout.sites().iter().enumerate() {
        for number in 0..spec.data_nodes + spec.witnesses {
            let node = voters.len();
            voters.push(Voter {
                site,
                witness: number >= spec.data_nodes,
                up: !parts.contains(&Part::Site(site)) && !parts.contains(&Part::Node(node)),
            });
        }
    }
    let cut: Vec<(usize, usize)> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Link(a, b) => Some((*a.min(b), *a.max(b))),
            _ => None,
        })
        .collect();
    let incumbent = layout.standing_order(0)[0];
    let own = voters[incumbent];
    let keeps = voters.iter().filter(|other| {
        let pair = (own.site.min(other.site), own.site.max(other.site));
        own.up && other.up && (own.site == other.site || !cut.contains(&pair))
    });
    let stays = keeps.count() * 2 > voters.len();
    let count = u32::try_from(voters.len()).unwrap();
    let mut all_logs = (0..3_u32.pow(count)).map(|code| -> Vec<u8> {
        let log = |at| u8::try_from(code / 3_u32.pow(at) % 3).unwrap();
        (0..count).map(log).collect()
    });
    let stuck = all_logs.find(|logs| !somebody_leads(&voters, &cut, logs.clone()));
    assert_eq!(
        verdict.serves == Serves::All,
        stays || stuck.is_none(),
        "{} after {parts:?}: {verdict:?}, stuck with {stuck:?}",
        layout.sites_text()
    );
}

#[test]
fn whoever_is_ahead_a_data_node_comes_to_lead() {
    for text in [
        "A:1,B:1,W:witness",
        "A:2,B:2,W:witness",
        "A:3,B:3,W:witness",
        "A:1,B:1,C:1",
        "A:2,B:1,W:witness",
        "A:3,B:2,W:witness",
        "A:3,B:1,C:1",
        "A:2,B:2,C:2",
        "A:1,B:1,C:1,D:1,E:1",
        "A:2,B:2,C:2,W:witness",
    ] {
        let layout = crate::layout(text, 700_000, 1, None);
        let sites = layout.sites().len();
        let nodes: u16 = layout
            .sites()
            .iter()
            .map(|site| site.data_nodes + site.witnesses)
            .sum();
        let mut parts: Vec<Part> = (0..usize::from(nodes)).map(Part::Node).collect();
        parts.extend((0..sites).map(Part::Site));
        for a in 0..sites {
            parts.extend((a + 1..sites).map(|b| Part::Link(a, b)));
        }
        for (at, &first) in parts.iter().enumerate() {
            for &second in &parts[at..] {
                check(&layout, &[first, second]);
            }
        }
    }
}
