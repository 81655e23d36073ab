//! Cheapest layouts, and that nothing cheaper survives.

use clearspan_plan::{Survive, SurviveError, Timing, cheapest};

fn ask(sites: &str, failure: &str) -> Result<String, String> {
    let layout = crate::layout(sites, 700_000, 4, None);
    let survive = Survive::parse(failure).map_err(|error| error.to_string())?;
    let found = cheapest(&layout, &survive, Timing::of(&layout, 0));
    found
        .map(|found| found.sites)
        .map_err(|error| error.to_string())
}

#[test]
fn known_answers() {
    for (sites, failure, answer) in [
        ("A:3,B:3,W:witness", "site", "A:1,B:1,W:witness"),
        ("A:1,B:1,W:witness", "node", "A:2,W:witness"),
        ("A:1,B:1,W:witness", "line", "A:1"),
        ("A:1", "node", "A:3"),
        ("A:1", "two-nodes", "A:5"),
        (
            "A:1,B:1,C:1,D:1,E:1",
            "site+line",
            "A:1,B:1,C:witness,D:witness,E:witness",
        ),
    ] {
        assert_eq!(
            ask(sites, failure).as_deref(),
            Ok(answer),
            "{sites} {failure}"
        );
    }
}

/// Two thirds of three sites and one node more: found by trying, here checked by hand.
#[test]
fn a_site_and_a_node() {
    let found = ask("A:1,B:1,C:1", "site+node").unwrap();
    let layout = crate::layout(&found, 700_000, 4, None);
    assert!(
        Survive::parse("site+node").unwrap().survived_by(&layout),
        "{found}"
    );
    let nodes: Vec<u16> = layout
        .sites()
        .iter()
        .map(|site| site.data_nodes + site.witnesses)
        .collect();
    let all: u16 = nodes.iter().sum();
    let largest = nodes.iter().max().unwrap();
    assert!(all - largest - 1 > all / 2, "{found}");
}

#[test]
fn two_data_sites_alone_never_survive_one() {
    let fault = ask("A:3,B:3", "site").unwrap_err();
    assert!(fault.contains("give more sites with --sites"), "{fault}");
    // With one of three sites gone the line between the other two is all there is.
    assert!(ask("A:1,B:1,C:1", "site+line").is_err());
}

#[test]
fn words_that_are_no_failure_are_named() {
    for (text, named) in [
        ("", "\"\""),
        ("moon", "\"moon\""),
        ("site+moon", "\"moon\""),
        ("node+node+node+node", "node+node+node+node"),
    ] {
        let fault = Survive::parse(text).unwrap_err();
        assert!(matches!(&fault, SurviveError::Text(_)));
        assert!(fault.to_string().contains(named), "{fault}");
    }
    assert_eq!(Survive::parse(" site + node ").unwrap().text(), "site+node");
    assert_eq!(
        Survive::parse("two-nodes").unwrap(),
        Survive::parse("node+node").unwrap()
    );
}
