//! The rows that can be chosen.

use super::report::{FIRST, Kind, NEAR, PhaseName};
use crate::cluster::Where;

/// What one row runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowSpec {
    /// Its name.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// What it shows.
    pub kind: Kind,
    /// Sites as `clearspan lab up` takes them.
    pub sites: &'static str,
    /// Round trips between sites in microseconds: first and second, first and third, second and third.
    pub rtt_us: [u64; 3],
    /// Distance in km, where it is one.
    pub km: Option<u64>,
    /// The phase in which the first site is lost.
    pub fault: Option<PhaseName>,
}

/// Two data sites and a witness.
const METRO: &str = "A:1,B:1,W:witness";

impl RowSpec {
    const fn new(
        name: &'static str,
        title: &'static str,
        kind: Kind,
        sites: &'static str,
        rtt_us: [u64; 3],
    ) -> Self {
        Self {
            name,
            title,
            kind,
            sites,
            rtt_us,
            km: None,
            fault: None,
        }
    }

    const fn metro(name: &'static str, title: &'static str, km: u64) -> Self {
        let place = Where::km(title, km);
        Self {
            km: Some(km),
            ..Self::new(name, title, Kind::Distance, METRO, place.rtt_us)
        }
    }

    const fn lost(name: &'static str, title: &'static str, phase: PhaseName) -> Self {
        Self {
            kind: Kind::Fault,
            fault: Some(phase),
            ..Self::metro(name, title, 70)
        }
    }

    /// The row of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        ROWS.iter().find(|row| row.name == name)
    }

    pub(super) const fn place(&self) -> Where {
        Where {
            name: self.title,
            rtt_us: self.rtt_us,
        }
    }
}

/// All rows, in the order in which they run.
pub const ROWS: [RowSpec; 12] = [
    RowSpec::new(
        FIRST,
        "1 node without peers",
        Kind::Single,
        "A:1",
        [0, 0, 0],
    ),
    RowSpec::metro(NEAR, "2 data sites and a witness, 0 km", 0),
    RowSpec::metro("km-20", "2 data sites and a witness, 20 km", 20),
    RowSpec::metro("km-50", "2 data sites and a witness, 50 km", 50),
    RowSpec::metro("km-70", "2 data sites and a witness, 70 km", 70),
    RowSpec::new(
        "regions",
        "3 nodes in Tokyo, 3 in Seoul, a witness in Singapore",
        Kind::Regions,
        "Tokyo:3,Seoul:3,Singapore:witness",
        Where::REGIONS.rtt_us,
    ),
    RowSpec::new("scale-1", "1 node, held", Kind::Scaling, "A:1", [0, 0, 0]),
    RowSpec::new("scale-2", "2 nodes, held", Kind::Scaling, "A:2", [0, 0, 0]),
    RowSpec::new("scale-4", "4 nodes, held", Kind::Scaling, "A:4", [0, 0, 0]),
    RowSpec::lost(
        "lost-reception",
        "70 km, a site lost in reception",
        PhaseName::Reception,
    ),
    RowSpec::lost(
        "lost-netting",
        "70 km, a site lost in netting",
        PhaseName::Netting,
    ),
    RowSpec::lost(
        "lost-receipts",
        "70 km, a site lost in receipts",
        PhaseName::Receipts,
    ),
];

#[test]
fn names_are_unique() {
    let mut names: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ROWS.len());
}
