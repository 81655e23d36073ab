//! What a cluster is made of, on disk: its definition, each node's own settings, its certificates, and how all of them are
//! written for a new one.

pub mod definition;
pub mod init;
pub mod join;
pub mod keys;
pub mod node_config;
pub mod pki;
pub mod renewal;

#[cfg(test)]
mod tests;

/// Why a cluster's definition or a node's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("read {path}")]
    Read {
        /// Which file.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is not TOML, has a key that there is none of or lacks one, or a value makes no sense.
    #[error("{path}: line {line}: {what}")]
    Value {
        /// Which file.
        path: std::path::PathBuf,
        /// Where it stands.
        line: usize,
        /// What is wrong and what to do.
        what: String,
    },
}
