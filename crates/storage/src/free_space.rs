//! How much room a volume has, so that a full disk is refused before any engine meets it.

use std::fmt;
use std::io;
use std::path::Path;

/// Asks a volume for its free bytes; tests answer for it.
pub trait FreeSpace: Send + Sync + fmt::Debug {
    /// Bytes an unprivileged process may still use on the volume of `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;
}

/// The real volume.
#[derive(Clone, Copy, Debug, Default)]
pub struct VolumeSpace;

impl FreeSpace for VolumeSpace {
    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let volume = rustix::fs::statvfs(path)?;
        Ok(volume.f_bavail.saturating_mul(volume.f_frsize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_volume_answers() {
        let dir = tempfile::tempdir().unwrap();
        assert!(VolumeSpace.free_bytes(dir.path()).unwrap() > 0);
        assert!(VolumeSpace.free_bytes(&dir.path().join("absent")).is_err());
    }
}
