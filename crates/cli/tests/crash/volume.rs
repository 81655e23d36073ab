//! Small volumes of a test's own: one in memory that can be filled, one on a disk image whose power can be cut. Both need
//! root; on a developer's machine without it their tests say so and pass, under `CI=true` they fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::days::scratch;

/// `_IOR('X', 125, __u32)`, with the flag that drops the file system's own journal too.
const CUT_POWER: &str = r#"open(my $root, "<", $ARGV[0]) or die "open: $!"; my $flags = pack("L", 2);
ioctl($root, 0x8004587d, $flags) or die "ioctl: $!";"#;

/// A mounted volume, unmounted when dropped.
#[derive(Debug)]
pub(crate) struct Volume {
    dir: TempDir,
    image: Option<PathBuf>,
}

fn try_run(command: &mut Command) -> Result<(), String> {
    let output = command
        .output()
        .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    if output.status.success() {
        Ok(())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{:?}: {}", command.get_program(), said.trim()))
    }
}

/// What cannot be done here is said; where everything must be tested, it is a failure.
fn skip<T>(what: &str, reason: &str) -> Option<T> {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{what} cannot be tested here: {reason}"
    );
    eprintln!("SKIPPED: {what} cannot be tested here: {reason}");
    None
}

impl Volume {
    /// A volume in memory.
    pub(crate) fn in_memory(mib: u32) -> Option<Self> {
        let dir = scratch();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "clearspan"])
            .arg(dir.path().join("mounted"));
        std::fs::create_dir(dir.path().join("mounted")).expect("create a directory");
        match try_run(&mut mount) {
            Ok(()) => Some(Self { dir, image: None }),
            Err(reason) => skip("a full disk", &reason),
        }
    }

    /// An ext4 file system on an image.
    pub(crate) fn on_image(mib: u32) -> Option<Self> {
        let dir = scratch();
        let image = dir.path().join("image");
        let made = std::fs::File::create(&image)
            .and_then(|file| file.set_len(u64::from(mib) << 20))
            .map_err(|error| error.to_string())
            .and_then(|()| try_run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image)));
        std::fs::create_dir(dir.path().join("mounted")).expect("create a directory");
        let volume = Self {
            dir,
            image: Some(image),
        };
        let mounted = made
            .and_then(|()| volume.mount())
            .and_then(|()| try_run(Command::new("perl").args(["-e", "1"])));
        match mounted {
            Ok(()) => Some(volume),
            Err(reason) => skip("a power cut", &reason),
        }
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("mounted")
    }

    /// Beside it.
    pub(crate) fn outside(&self) -> &Path {
        self.dir.path()
    }

    fn mount(&self) -> Result<(), String> {
        let image = self.image.as_ref().expect("it has an image");
        let mut mount = Command::new("mount");
        mount.args(["-o", "loop"]).arg(image).arg(self.path());
        try_run(&mut mount)
    }

    /// What was synced stays, everything else is gone, and nothing works until [`Volume::restore_power`].
    pub(crate) fn cut_power(&self) {
        let mut perl = Command::new("perl");
        perl.args(["-e", CUT_POWER]).arg(self.path());
        try_run(&mut perl).expect("the file system can be shut down");
    }

    pub(crate) fn restore_power(&self) {
        try_run(Command::new("umount").arg(self.path())).expect("it can be unmounted");
        self.mount().expect("it can be mounted again");
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        // Also while processes of a failed test still hold it.
        let _ = try_run(Command::new("umount").arg("-l").arg(self.path()));
    }
}
