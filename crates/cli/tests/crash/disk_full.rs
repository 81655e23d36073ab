//! F18: on a full disk intake waits, the process lives, the operator is told; with room it goes on and nothing is lost.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::days::{DAYS, Place};
use crate::outcome::{acknowledgements, of, undisturbed};
use crate::process::{Deadline, Running};
use crate::volume::Volume;

const VOLUME_MIB: u32 = 320;
const FULL: &str = "nothing more is taken in until there is room";
const ROOM: &str = "has room again";

/// Leaves less free than a day keeps in reserve; removing it gives the room back.
fn fill(volume: &Volume) -> PathBuf {
    let path = volume.path().join("ballast");
    let mut file = File::create(&path).expect("create the ballast");
    let piece = vec![1_u8; 256 << 10];
    let free = || {
        let space = rustix::fs::statvfs(volume.path()).expect("ask for free space");
        space.f_bavail.saturating_mul(space.f_frsize)
    };
    while free() > 4 << 20 {
        file.write_all(&piece).expect("there is still room");
    }
    path
}

fn signal(running: &Running, name: &str) {
    let sent = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -{name} {}", running.child.id()))
        .status();
    assert!(sent.expect("sh runs").success());
}

/// Waits until the operator is told, and checks that the process only waits.
fn check_waits(running: &mut Running, place: &Place) {
    Deadline::new().until("the message of the full disk", || {
        assert_eq!(running.ended(), None, "{}", running.stderr());
        running.stderr().contains(FULL).then_some(())
    });
    let told = running.stderr();
    assert!(told.contains("is full ("), "{told}");
    assert!(told.contains("bytes free"), "{told}");
    for volume in ["log", "packages"] {
        let times = told
            .matches(&format!("the disk of the {volume} is full"))
            .count();
        assert!(times <= 1, "told once: {told}");
    }
    let before = acknowledgements(&place.acknowledgements);
    assert_eq!(running.ended(), None);
    assert_eq!(acknowledgements(&place.acknowledgements), before);
}

fn check_goes_on(
    running: Running,
    place: &Place,
    ballast: &Path,
    undisturbed: &crate::outcome::Outcome,
) {
    std::fs::remove_file(ballast).expect("remove the ballast");
    let ended = running.wait();
    assert!(ended.status.success(), "{ended:?}");
    assert!(ended.stderr.contains(ROOM), "{}", ended.stderr);
    of(place, &ended).check_against(undisturbed);
    place.remove();
}

#[test]
fn a_full_disk_stops_intake_and_nothing_else() {
    let Some(volume) = Volume::in_memory(VOLUME_MIB) else {
        return;
    };
    for day in DAYS {
        let (input, outcome) = undisturbed(volume.outside(), day);
        let place = || {
            let mut place = Place::new(&volume.path(), &input, "out");
            // The journal and what is printed lie elsewhere: it is the data's volume that is full.
            place.scratch = volume.outside().join("run");
            std::fs::create_dir_all(&place.scratch).expect("create a directory");
            place.acknowledgements = place.scratch.join("acknowledgements");
            place
        };

        // In the middle of the day: the process is held while its disk is filled.
        let place_held = place();
        let mut running = place_held.start(place_held.command());
        let some = outcome.replies.len() / 3;
        Deadline::new().until("acknowledgements", || {
            assert_eq!(running.ended(), None, "{}", running.stderr());
            (acknowledgements(&place_held.acknowledgements).len() >= some).then_some(())
        });
        signal(&running, "STOP");
        let ballast = fill(&volume);
        signal(&running, "CONT");
        check_waits(&mut running, &place_held);
        check_goes_on(running, &place_held, &ballast, &outcome);

        // From the start of a process, and killed while it waits.
        let place_killed = place();
        let mut command = place_killed.command();
        command.env(
            "CLEARSPAN_CRASH_AT",
            format!("after-acknowledgement:{some}"),
        );
        assert!(!place_killed.start(command).wait().status.success());
        let ballast = fill(&volume);
        for _ in 0..2 {
            let mut running = place_killed.start(place_killed.command());
            check_waits(&mut running, &place_killed);
            assert!(!running.kill().status.success());
        }
        let mut running = place_killed.start(place_killed.command());
        check_waits(&mut running, &place_killed);
        check_goes_on(running, &place_killed, &ballast, &outcome);
    }
}
