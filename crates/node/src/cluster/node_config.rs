//! node_config
