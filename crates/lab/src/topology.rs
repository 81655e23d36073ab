//! Which sites there are and how far apart they are.

use clearspan_node::cluster::init::{SiteSpec, parse_sites};
use serde::{Deserialize, Serialize};

use crate::clock::{MILLI_NS, SECOND_NS};
use crate::relay::Shape;

/// Light in fibre: 5 microseconds per km one way, so 10 there and back.
pub const RTT_NS_PER_KM: u64 = 10_000;
/// More is a mistake in the unit: twice round the Earth.
const RTT_MAX_NS: u64 = 2 * SECOND_NS;
/// Less bandwidth than this is a mistake in the unit.
const BANDWIDTH_MIN_BYTES_PER_S: u64 = 10_000;

/// Sites and the lines between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// The sites, in order.
    pub sites: Vec<Site>,
    /// Every pair of sites, each once, the earlier site first.
    pub pairs: Vec<Pair>,
}

/// A site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its name.
    pub name: String,
    /// How many data nodes.
    pub data_nodes: u16,
    /// How many witnesses.
    pub witnesses: u16,
}

/// Two sites and what is between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The sites' names.
    pub sites: [String; 2],
    /// There and back.
    pub rtt_ns: u64,
    /// Up to this much longer, each way.
    pub jitter_ns: u64,
    /// Each way.
    pub bytes_per_s: Option<u64>,
}

impl Pair {
    /// One of its two ways: half the round trip.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            delay_ns: self.rtt_ns / 2,
            jitter_ns: self.jitter_ns,
            bytes_per_s: self.bytes_per_s,
        }
    }
}

/// How far apart sites are, as given on a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distance {
    /// In km of fibre: one number for all pairs, or `A-B=70,A-W=30,B-W=50`.
    Km(String),
    /// As a round trip in ms: one number for all pairs, or `A-B=32,A-C=69,B-C=97`.
    RttMs(String),
    /// By name; see [`PRESETS`].
    Preset(String),
}

/// What all lines have beside their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Up to this is added to each way.
    pub jitter_ns: u64,
    /// Each way of each pair of sites.
    pub bytes_per_s: Option<u64>,
}

/// A distance by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The sites when none are given.
    pub sites: &'static str,
    /// Round trips of the pairs of sites in order (1-2, 1-3, 2-3, …), or one for all pairs.
    pub rtt_ns: &'static [u64],
}

const METRO_SITES: &str = "A:3,B:3,W:witness";

/// The distances that have names.
pub const PRESETS: [Preset; 6] = [
    Preset {
        name: "metro-0",
        sites: METRO_SITES,
        rtt_ns: &[0],
    },
    Preset {
        name: "metro-20",
        sites: METRO_SITES,
        rtt_ns: &[20 * RTT_NS_PER_KM],
    },
    Preset {
        name: "metro-50",
        sites: METRO_SITES,
        rtt_ns: &[50 * RTT_NS_PER_KM],
    },
    Preset {
        name: "metro-70",
        sites: METRO_SITES,
        rtt_ns: &[70 * RTT_NS_PER_KM],
    },
    // Public cloud regions: Tokyo-Seoul, Tokyo-Singapore, Seoul-Singapore.
    Preset {
        name: "tokyo-seoul-singapore",
        sites: "Tokyo:1,Seoul:1,Singapore:witness",
        rtt_ns: &[32 * MILLI_NS, 69 * MILLI_NS, 97 * MILLI_NS],
    },
    Preset {
        name: "oregon-frankfurt",
        sites: "Oregon:1,Frankfurt:1",
        rtt_ns: &[156 * MILLI_NS],
    },
];

/// Why sites and distances make no topology.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// The sites cannot be read.
    #[error("--sites: {0}")]
    Sites(String),
    /// There is no such preset.
    #[error("there is no preset {name:?}; there are {known}")]
    Preset {
        /// What was given.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The preset is for another number of sites.
    #[error("preset {name} is for {wanted} sites, in order; {given} are given")]
    PresetSites {
        /// The preset.
        name: &'static str,
        /// How many sites it has.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// A number that cannot be read or makes no sense.
    #[error("{text:?} is no {what}: {hint}")]
    Number {
        /// What was given.
        text: String,
        /// What it should be.
        what: &'static str,
        /// What to give.
        hint: String,
    },
    /// Something between commas that is not `A-B=number`.
    #[error("{0:?} names no pair of sites: give one number for all, or A-B=number for every pair")]
    Pair(String),
    /// A site that is not among the sites.
    #[error("{pair:?}: there is no site {site:?}")]
    NoSite {
        /// Where it stands.
        pair: String,
        /// The name.
        site: String,
    },
    /// A pair that stands there twice.
    #[error("{0}-{1} is given twice")]
    Twice(String, String),
    /// A pair that is missing.
    #[error("nothing is said of {0}-{1}: give A-B=number for every pair")]
    Missing(String, String),
    /// No sites and none from a preset.
    #[error("give --sites, such as {METRO_SITES}, or a preset")]
    NoSites,
}

impl Topology {
    /// From what a command line gives; without a distance, none.
    ///
    /// # Errors
    /// Says what is wrong and what to give.
    pub fn parse(
        sites: Option<&str>,
        distance: Option<&Distance>,
        quality: Quality,
    ) -> Result<Self, TopologyError> {
        let preset = match distance {
            Some(Distance::Preset(name)) => Some(preset(name)?),
            _ => None,
        };
        let text = sites
            .or(preset.map(|preset| preset.sites))
            .ok_or(TopologyError::NoSites)?;
        let site = |spec: SiteSpec| Site {
            name: spec.name,
            data_nodes: spec.data_nodes,
            witnesses: spec.witnesses,
        };
        let sites = parse_sites(text).map_err(|fault| TopologyError::Sites(fault.to_string()))?;
        let sites: Vec<Site> = sites.into_iter().map(site).collect();
        let names: Vec<&str> = sites.iter().map(|site| site.name.as_str()).collect();
        let rtts = match (distance, preset) {
            (_, Some(preset)) => preset_rtts(preset, names.len())?,
            (Some(Distance::Km(text)), None) => rtts(text, &names, km)?,
            (Some(Distance::RttMs(text)), None) => rtts(text, &names, rtt_ms)?,
            (_, None) => vec![0; pairs(names.len()).count()],
        };
        if let Some(rate) = quality.bytes_per_s
            && rate < BANDWIDTH_MIN_BYTES_PER_S
        {
            return Err(TopologyError::Number {
                text: rate.to_string(),
                what: "bandwidth in bytes per second",
                hint: format!("give {BANDWIDTH_MIN_BYTES_PER_S} or more"),
            });
        }
        let pair = |((a, b), rtt_ns): ((usize, usize), u64)| Pair {
            sites: [names[a].to_owned(), names[b].to_owned()],
            rtt_ns,
            jitter_ns: quality.jitter_ns,
            bytes_per_s: quality.bytes_per_s,
        };
        let pairs = pairs(names.len()).zip(rtts).map(pair).collect();
        Ok(Self { sites, pairs })
    }

    /// The sites as a new cluster wants them.
    #[must_use]
    pub fn site_specs(&self) -> Vec<SiteSpec> {
        let spec = |site: &Site| SiteSpec {
            name: site.name.clone(),
            data_nodes: site.data_nodes,
            witnesses: site.witnesses,
            host: None,
        };
        self.sites.iter().map(spec).collect()
    }
}

/// Milliseconds with decimals, as nanoseconds.
///
/// # Errors
/// Says what to give.
pub fn ms(text: &str) -> Result<u64, TopologyError> {
    decimal(text, MILLI_NS)
        .filter(|&ns| ns <= RTT_MAX_NS)
        .ok_or_else(|| number(text, "time in ms", RTT_MAX_NS / MILLI_NS))
}

/// Pairs of places, in the order 0-1, 0-2, 1-2, 0-3, … that lists of round trips have.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |b| (0..b).map(move |a| (a, b)))
}

fn preset(name: &str) -> Result<&'static Preset, TopologyError> {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .ok_or_else(|| TopologyError::Preset {
            name: name.to_owned(),
            known: PRESETS.map(|preset| preset.name).join(", "),
        })
}

fn preset_rtts(preset: &'static Preset, sites: usize) -> Result<Vec<u64>, TopologyError> {
    let count = pairs(sites).count();
    if preset.sites == METRO_SITES {
        return Ok(preset.rtt_ns.repeat(count));
    }
    if preset.rtt_ns.len() == count {
        return Ok(preset.rtt_ns.to_vec());
    }
    Err(TopologyError::PresetSites {
        name: preset.name,
        wanted: preset.sites.split(',').count(),
        given: sites,
    })
}

fn rtts(
    text: &str,
    names: &[&str],
    read: fn(&str) -> Result<u64, TopologyError>,
) -> Result<Vec<u64>, TopologyError> {
    if !text.contains('=') {
        return Ok(vec![read(text.trim())?; pairs(names.len()).count()]);
    }
    let mut found: Vec<Option<u64>> = vec![None; pairs(names.len()).count()];
    for part in text.split(',') {
        let part = part.trim();
        let (pair, value) = part
            .split_once('=')
            .ok_or_else(|| TopologyError::Pair(part.to_owned()))?;
        let (a, b) = split_pair(pair, names)?;
        let place = pairs(names.len()).position(|pair| pair == (a.min(b), a.max(b)));
        let slot = place
            .and_then(|place| found.get_mut(place))
            .ok_or_else(|| TopologyError::Pair(part.to_owned()))?;
        if slot.replace(read(value)?).is_some() {
            return Err(TopologyError::Twice(
                names[a].to_owned(),
                names[b].to_owned(),
            ));
        }
    }
    found
        .into_iter()
        .zip(pairs(names.len()))
        .map(|(rtt, (a, b))| {
            rtt.ok_or_else(|| TopologyError::Missing(names[a].to_owned(), names[b].to_owned()))
        })
        .collect()
}

/// Names may hold hyphens themselves: any hyphen that has a site on both sides will do.
fn split_pair(pair: &str, names: &[&str]) -> Result<(usize, usize), TopologyError> {
    let place = |name: &str| names.iter().position(|&known| known == name);
    let found = pair.match_indices('-').find_map(|(at, _)| {
        let (a, b) = (pair.get(..at)?, pair.get(at + 1..)?);
        Some((place(a)?, place(b)?))
    });
    if let Some(found) = found {
        return Ok(found);
    }
    let (a, b) = pair
        .split_once('-')
        .ok_or_else(|| TopologyError::Pair(pair.to_owned()))?;
    let site = if place(a).is_none() { a } else { b };
    Err(TopologyError::NoSite {
        pair: pair.to_owned(),
        site: site.to_owned(),
    })
}

fn km(text: &str) -> Result<u64, TopologyError> {
    decimal(text, RTT_NS_PER_KM)
        .filter(|&ns| ns <= RTT_MAX_NS)
        .ok_or_else(|| number(text, "distance in km", RTT_MAX_NS / RTT_NS_PER_KM))
}

fn rtt_ms(text: &str) -> Result<u64, TopologyError> {
    decimal(text, MILLI_NS)
        .filter(|&ns| ns <= RTT_MAX_NS)
        .ok_or_else(|| number(text, "round trip in ms", RTT_MAX_NS / MILLI_NS))
}

fn number(text: &str, what: &'static str, max: u64) -> TopologyError {
    TopologyError::Number {
        text: text.to_owned(),
        what,
        hint: format!("give a number from 0 to {max}, such as 70 or 0.7"),
    }
}

/// A number with decimals, times a unit, without rounding up.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| {
        let good = (1..=9).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        good.then(|| text.parse::<u64>().ok()).flatten()
    };
    let scale = 10_u64.checked_pow(u32::try_from(decimals.len()).ok()?)?;
    let whole = digits(whole)?.checked_mul(unit)?;
    let part = digits(decimals)?.checked_mul(unit)? / scale;
    whole.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::{Distance, Quality, Topology};

    fn rtts(sites: Option<&str>, distance: &Distance) -> Result<Vec<(String, u64)>, String> {
        Topology::parse(sites, Some(distance), Quality::default())
            .map(|topology| {
                let pairs = topology.pairs.into_iter();
                pairs
                    .map(|pair| (pair.sites.join("-"), pair.rtt_ns / 1000))
                    .collect()
            })
            .map_err(|fault| fault.to_string())
    }

    fn pairs(list: &[(&str, u64)]) -> Result<Vec<(String, u64)>, String> {
        Ok(list
            .iter()
            .map(|&(pair, us)| (pair.to_owned(), us))
            .collect())
    }

    #[test]
    fn distances() {
        let sites = Some("A:3,B:3,W:witness");
        let km = |text: &str| Distance::Km(text.to_owned());
        let ms = |text: &str| Distance::RttMs(text.to_owned());
        let preset = |text: &str| Distance::Preset(text.to_owned());
        let all = |us| pairs(&[("A-B", us), ("A-W", us), ("B-W", us)]);
        assert_eq!(rtts(sites, &km("70")), all(700));
        assert_eq!(rtts(sites, &km("0")), all(0));
        assert_eq!(rtts(sites, &ms("0.25")), all(250));
        assert_eq!(rtts(None, &preset("metro-50")), all(500));
        assert_eq!(
            rtts(sites, &km("A-B=70, W-A=12.5,B-W=30")),
            pairs(&[("A-B", 700), ("A-W", 125), ("B-W", 300)])
        );
        assert_eq!(
            rtts(None, &preset("tokyo-seoul-singapore")),
            pairs(&[
                ("Tokyo-Seoul", 32_000),
                ("Tokyo-Singapore", 69_000),
                ("Seoul-Singapore", 97_000)
            ])
        );
        assert_eq!(
            rtts(Some("us-west:1,eu:1"), &ms("us-west-eu=156")),
            pairs(&[("us-west-eu", 156_000)])
        );
        assert_eq!(rtts(Some("A:1"), &km("70")), pairs(&[]));
    }

    #[test]
    fn faults_say_what_to_give() {
        let sites = Some("A:1,B:1,W:witness");
        let km = |text: &str| Distance::Km(text.to_owned());
        for (distance, says) in [
            (km("far"), "\"far\" is no distance in km"),
            (km("-1"), "\"-1\" is no distance in km"),
            (km(""), "is no distance in km"),
            (km("1e3"), "is no distance in km"),
            (km("300000"), "from 0 to 200000"),
            (km("A-B=1,A-W=1"), "nothing is said of B-W"),
            (km("A-B=1,B-A=2,A-W=1,B-W=1"), "B-A is given twice"),
            (km("A-C=1"), "there is no site \"C\""),
            (km("AB=1"), "names no pair of sites"),
            (km("A-A=1"), "names no pair of sites"),
            (km("A-B=1,7"), "\"7\" names no pair of sites"),
            (
                Distance::RttMs("A-B=x,A-W=1,B-W=1".to_owned()),
                "is no round trip",
            ),
            (
                Distance::Preset("mars".to_owned()),
                "there are metro-0, metro-20",
            ),
            (
                Distance::Preset("oregon-frankfurt".to_owned()),
                "is for 2 sites, in order; 3 are given",
            ),
        ] {
            let fault = rtts(sites, &distance).unwrap_err();
            assert!(fault.contains(says), "{fault:?} does not say {says:?}");
        }
        let fault = rtts(Some("A"), &km("1")).unwrap_err();
        assert!(fault.contains("A:3,B:3,W:witness"), "{fault}");
        let fault = rtts(None, &km("1")).unwrap_err();
        assert!(fault.contains("--sites"), "{fault}");
    }
}
