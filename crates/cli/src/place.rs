//! Sites and the distances between them, as every command takes them.

use clap::Args;
use clearspan_lab::topology::{Distance, Quality, Topology};

#[derive(Debug, Args)]
pub(crate) struct SitesAndDistances {
    /// Sites with their numbers of data nodes, or `witness`; a preset brings its own
    #[arg(long, value_name = "NAME:NODES,…")]
    pub(crate) sites: Option<String>,
    /// Fibre between sites, 5 microseconds per km: one number, or A-B=70,A-W=30,B-W=50
    #[arg(long, group = "distance")]
    pub(crate) km: Option<String>,
    /// Round trip between sites: one number, or A-B=32,A-C=69,B-C=97
    #[arg(long, group = "distance")]
    pub(crate) rtt_ms: Option<String>,
    /// metro-0, metro-20, metro-50, metro-70, tokyo-seoul-singapore or oregon-frankfurt
    #[arg(long, group = "distance")]
    pub(crate) preset: Option<String>,
}

impl SitesAndDistances {
    /// Whether nothing was said of them.
    pub(crate) fn is_open(&self) -> bool {
        let Self {
            sites,
            km,
            rtt_ms,
            preset,
        } = self;
        [sites, km, rtt_ms, preset]
            .iter()
            .all(|said| said.is_none())
    }

    pub(crate) fn topology(self, quality: Quality) -> anyhow::Result<Topology> {
        let distance = self
            .km
            .map(Distance::Km)
            .or(self.rtt_ms.map(Distance::RttMs))
            .or(self.preset.map(Distance::Preset));
        Ok(Topology::parse(
            self.sites.as_deref(),
            distance.as_ref(),
            quality,
        )?)
    }
}
