//! A full disk. It takes a volume of its own, and so root: without it the scenario says so and passes, but under `CI=true`.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use super::Form;
use crate::stage::Stage;

const VOLUME_MIB: u64 = 192;
/// Less than a node keeps in reserve.
const LEFT_BYTES: u64 = 512 << 10;

/// Unmounts when dropped.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

fn free_bytes(path: &Path) -> u64 {
    let space = rustix::fs::statvfs(path).expect("ask for free space");
    space.f_bavail.saturating_mul(space.f_frsize)
}

/// One node's disk fills up while it works, and is freed: the others serve, it takes part again by itself.
pub(super) fn full(stage: &mut Stage, _: Form) {
    let nodes = stage.data_nodes(None);
    let node = nodes[stage.rng.below(nodes.len())].clone();
    let data = stage.data_dir(&node);
    stage.kill(&node);
    let aside = data.with_extension("aside");
    std::fs::rename(&data, &aside).expect("data can be moved");
    std::fs::create_dir(&data).expect("a directory can be made");
    let mounted = Command::new("mount")
        .args([
            "-t",
            "tmpfs",
            "-o",
            &format!("size={VOLUME_MIB}m"),
            "clearspan",
        ])
        .arg(&data)
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "a full disk cannot be tested here: mount fails"
        );
        eprintln!("SKIPPED: a full disk cannot be tested here: mount fails");
        std::fs::remove_dir(&data).expect("an empty directory can be removed");
        std::fs::rename(&aside, &data).expect("data can be moved back");
        return;
    }
    stage.keep_until_the_end(Box::new(Mounted(data.clone())));
    let copied = Command::new("cp")
        .arg("-a")
        .arg(aside.join("."))
        .arg(&data)
        .status();
    assert!(copied.expect("cp runs").success(), "data can be copied");
    stage.restart(&node);
    stage.await_ready();
    stage.record.act(format!("fill the disk of {node}"));
    let ballast = data.join("ballast");
    let mut file = File::create(&ballast).expect("create the ballast");
    let piece = vec![1_u8; 128 << 10];
    while free_bytes(&data) > LEFT_BYTES && file.write_all(&piece).is_ok() {}
    drop(file);
    let left = stage.others(std::slice::from_ref(&node));
    stage.until(&format!("{node} says that its disk is full"), |stage| {
        stage.says_disk_full(&node)
    });
    stage.await_acknowledged(&left, 10);
    stage.await_service(2);
    stage.record.act(format!("free the disk of {node}"));
    std::fs::remove_file(&ballast).expect("remove the ballast");
    stage.until(&format!("{node} has room again"), |stage| {
        !stage.says_disk_full(&node)
    });
}
