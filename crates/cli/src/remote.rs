//! How a command reaches a running cluster.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use clearspan_node::client::{Client, ClientError};
use clearspan_node::cluster::join::JoinError;

/// A cluster and who asks.
#[derive(Clone, Debug, Args)]
pub(crate) struct Remote {
    /// A node's client address, host:port; give several, so that one may be down
    #[arg(
        long = "node",
        value_name = "URL",
        env = "CLEARSPAN_NODE",
        value_delimiter = ',',
        required = true
    )]
    pub(crate) nodes: Vec<String>,
    /// The certificate that says who asks
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_CERT")]
    cert: PathBuf,
    /// Its key
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_KEY")]
    key: PathBuf,
    /// The certificate of the nodes' authority
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_CA")]
    ca: PathBuf,
    /// For how many seconds a request is tried again before it is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    patience: u64,
}

/// The same for a command that can do without a cluster.
#[derive(Clone, Debug, Args)]
pub(crate) struct MaybeRemote {
    /// A node's client address, host:port; give several, so that one may be down
    #[arg(
        long = "node",
        value_name = "URL",
        env = "CLEARSPAN_NODE",
        value_delimiter = ','
    )]
    nodes: Vec<String>,
    /// The certificate that says who asks
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_CERT")]
    cert: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_KEY")]
    key: Option<PathBuf>,
    /// The certificate of the nodes' authority
    #[arg(long, value_name = "FILE", env = "CLEARSPAN_CA")]
    ca: Option<PathBuf>,
    /// For how many seconds a request is tried again before it is given up
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    patience: u64,
}

impl MaybeRemote {
    /// The cluster, when all that it takes was given.
    pub(crate) fn remote(&self) -> anyhow::Result<Remote> {
        let given = |path: &Option<PathBuf>, name: &str| {
            path.clone().with_context(|| {
                format!("--{name} (or CLEARSPAN_{}) is missing", name.to_uppercase())
            })
        };
        if self.nodes.is_empty() {
            bail!("--node (or CLEARSPAN_NODE) is missing");
        }
        Ok(Remote {
            nodes: self.nodes.clone(),
            cert: given(&self.cert, "cert")?,
            key: given(&self.key, "key")?,
            ca: given(&self.ca, "ca")?,
            patience: self.patience,
        })
    }
}

impl Remote {
    pub(crate) fn client(&self) -> Result<Client, ClientError> {
        Client::new(
            &self.nodes,
            &self.cert,
            &self.key,
            &self.ca,
            Duration::from_secs(self.patience),
        )
    }

    /// A client of one node, which does not go on to another or try again, and waits for no longer than this.
    pub(crate) fn one(&self, node: &str, limit: Duration) -> Result<Client, ClientError> {
        let nodes = [node.to_owned()];
        let client = Client::new(&nodes, &self.cert, &self.key, &self.ca, Duration::ZERO)?;
        Ok(client.with_limit(limit))
    }
}

const UNREACHABLE: u8 = 3;
/// The act waits for a second operator.
const WAITS: u8 = 4;
const REFUSED: u8 = 5;

/// The request that was noted instead of an act that takes two operators.
pub(crate) fn waits_for(error: &anyhow::Error) -> Option<&str> {
    match client_error(error) {
        Some(ClientError::Refused { request, .. }) => request.as_deref(),
        _ => None,
    }
}

/// What the cluster said, also to a step of several.
fn client_error(error: &anyhow::Error) -> Option<&ClientError> {
    error
        .downcast_ref::<ClientError>()
        .or_else(|| match error.downcast_ref::<JoinError>() {
            Some(JoinError::Cluster(error)) => Some(error),
            _ => None,
        })
}

/// What a failed command ends with.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    match client_error(error) {
        Some(ClientError::Unreachable(_)) => ExitCode::from(UNREACHABLE),
        Some(ClientError::Refused { status: 503, .. }) => ExitCode::from(UNREACHABLE),
        Some(ClientError::Refused {
            request: Some(_), ..
        }) => ExitCode::from(WAITS),
        Some(ClientError::Refused { .. }) => ExitCode::from(REFUSED),
        _ => ExitCode::FAILURE,
    }
}

/// What a command ends with when no node answers.
pub(crate) fn unreachable() -> ExitCode {
    ExitCode::from(UNREACHABLE)
}
