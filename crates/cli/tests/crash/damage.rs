//! I17 and the disk rules: what an interrupted write left is repaired without a word, a log that lost what was synced is
//! refused by shard and index, and damage anywhere is named, never served and never skipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::days::{Day, Place, scratch};
use crate::outcome::{Outcome, of, undisturbed};
use crate::process::{Ended, clearspan};
use crate::rng::Rng;

/// Bytes flipped per file; short files are flipped throughout.
const FLIPS_PER_FILE: u64 = 12;
/// A snapshot is taken several times a day, or at its end alone.
const SMALL_KIB: u32 = 12;
const LARGE_KIB: u32 = 1 << 20;

/// A directory as a killed process left it, kept in memory. Log files are mostly zeros at their end, which are left out.
struct Picture {
    root: PathBuf,
    files: BTreeMap<PathBuf, (Vec<u8>, u64)>,
}

impl Picture {
    fn of(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        gather(root, &mut files);
        Self {
            root: root.to_owned(),
            files,
        }
    }

    fn restore(&self) {
        std::fs::remove_dir_all(&self.root).expect("remove what a test did");
        for (path, (bytes, length)) in &self.files {
            std::fs::create_dir_all(path.parent().expect("it lies in a directory"))
                .expect("create a directory");
            std::fs::write(path, bytes).expect("write a file back");
            File::options()
                .write(true)
                .open(path)
                .and_then(|file| file.set_len(*length))
                .expect("give it its length");
        }
    }

    /// Files below a part of the data directory.
    fn below(&self, part: &str) -> Vec<(&PathBuf, &Vec<u8>)> {
        let dir = self.root.join("data").join(part);
        self.files
            .iter()
            .filter(|(path, _)| path.starts_with(&dir))
            .map(|(path, (bytes, _))| (path, bytes))
            .collect()
    }

    /// The newest log file and how many of its bytes are in use.
    fn log_end(&self) -> (PathBuf, usize) {
        let newest = self.below("log").into_iter().rfind(|(path, bytes)| {
            path.extension().is_some_and(|ending| ending == "raftlog") && !bytes.is_empty()
        });
        let (path, bytes) = newest.expect("there is a log");
        (path.clone(), bytes.len())
    }
}

fn gather(dir: &Path, files: &mut BTreeMap<PathBuf, (Vec<u8>, u64)>) {
    for entry in std::fs::read_dir(dir).expect("list a directory") {
        let path = entry.expect("an entry of a directory").path();
        if path.is_dir() {
            gather(&path, files);
        } else {
            let mut bytes = std::fs::read(&path).expect("read a file");
            let length = bytes.len() as u64;
            let used = bytes
                .iter()
                .rposition(|&byte| byte != 0)
                .map_or(0, |at| at + 1);
            bytes.truncate(used);
            files.insert(path, (bytes, length));
        }
    }
}

struct Scene {
    _root: tempfile::TempDir,
    place: Place,
    outcome: Outcome,
}

fn crash(place: &Place, label: &str, hit: u64) {
    let mut command = place.command();
    command.env("CLEARSPAN_CRASH_AT", format!("{label}:{hit}"));
    let ended = place.start(command).wait();
    assert_eq!(
        ended.stderr.lines().last(),
        Some(format!("crash point {label}").as_str())
    );
}

/// A day in its middle, killed just after a sync: all of its log is promised.
fn middle_of_a_day(snapshot_after_kib: u32) -> Scene {
    let root = scratch();
    let (input, outcome) = undisturbed(root.path(), Day::Netting);
    let mut place = Place::new(root.path(), &input, "out");
    place.snapshot_after_kib = snapshot_after_kib;
    crash(&place, "after-marker-write", 24);
    Scene {
        _root: root,
        place,
        outcome,
    }
}

/// Further on: snapshots stand, the log was cut and goes on after them. A cut is not synced, nor is how far a shard was
/// committed, so its last bytes need not be promised.
fn late_in_a_day() -> Scene {
    let scene = middle_of_a_day(SMALL_KIB);
    crash(&scene.place, "before-cycle", 2);
    crash(&scene.place, "before-log-append", 20);
    scene
}

fn run_on(scene: &Scene, journal: &[u8]) -> Ended {
    std::fs::write(&scene.place.acknowledgements, journal).expect("write the journal back");
    scene.place.run()
}

#[test]
fn what_an_interrupted_write_left_is_repaired_and_what_was_synced_is_missed() {
    let scene = middle_of_a_day(LARGE_KIB);
    let place = &scene.place;
    let (file, synced) = Picture::of(&place.out).log_end();
    let journal = std::fs::read(&place.acknowledgements).expect("read the journal");
    // The next write that grows the log; what is synced at the opening writes nothing.
    let before = Picture::of(&place.out);
    let picture = (1..10)
        .find_map(|hit| {
            before.restore();
            crash(place, "after-log-append-before-sync", hit);
            let picture = Picture::of(&place.out);
            (picture.log_end().1 > synced).then_some(picture)
        })
        .expect("something is written");
    let (same, written) = picture.log_end();
    assert_eq!(same, file);
    assert!(written > synced, "{written} {synced}");
    let open = || {
        File::options()
            .write(true)
            .open(&file)
            .expect("open the log")
    };

    // Torn: any part of the last write, cut off or holding zeros.
    let mut repaired = 0;
    for cut in (synced..written).step_by(((written - synced) / 12).max(1)) {
        for zeros in [false, true] {
            picture.restore();
            if zeros {
                open()
                    .write_all_at(&vec![0; written - cut], cut as u64)
                    .expect("write zeros");
            } else {
                open().set_len(cut as u64).expect("cut the log");
            }
            let ended = run_on(&scene, &journal);
            assert!(ended.status.success(), "cut at {cut}: {}", ended.stderr);
            of(place, &ended).check_against(&scene.outcome);
            repaired += 1;
        }
    }

    // Lost: less than what was synced, by a byte, by a record, by a lot.
    let mut refused = 0;
    for missing in [1, 30, 200, 2000, synced / 2] {
        picture.restore();
        let cut = synced - missing.min(synced - 1);
        open().set_len(cut as u64).expect("cut the log");
        let before = std::fs::read(&file).expect("read the log");
        for _ in 0..2 {
            let ended = run_on(&scene, &journal);
            assert_eq!(ended.status.code(), Some(1), "{missing} missing: {ended:?}");
            assert!(ended.stderr.contains("shard "), "{}", ended.stderr);
            assert!(
                ended.stderr.contains("synced") || ended.stderr.contains("missing"),
                "{}",
                ended.stderr
            );
            // Refused again and again: nothing was changed to get past it.
            assert_eq!(std::fs::read(&file).expect("read the log"), before);
            refused += 1;
        }
    }
    println!("{repaired} torn writes repaired, {refused} lost tails refused");
}

#[test]
fn behind_a_snapshot_a_lost_tail_is_refused_unless_nothing_was_promised_in_it() {
    let scene = late_in_a_day();
    let picture = Picture::of(&scene.place.out);
    let journal = std::fs::read(&scene.place.acknowledgements).expect("read the journal");
    let (file, length) = picture.log_end();
    let mut refused = 0;
    for missing in [1, 20, 100, 300, 1000, length / 2] {
        picture.restore();
        File::options()
            .write(true)
            .open(&file)
            .and_then(|log| log.set_len((length - missing) as u64))
            .expect("cut the log");
        let ended = run_on(&scene, &journal);
        if ended.status.success() {
            of(&scene.place, &ended).check_against(&scene.outcome);
        } else {
            assert!(ended.stderr.contains("shard "), "{}", ended.stderr);
            refused += 1;
        }
    }
    assert!(refused > 0);
}

/// Whether it is refused by name; otherwise what was flipped is in no use, because the day comes to the same.
fn flip(scene: &Scene, picture: &Picture, journal: &[u8], path: &Path, at: u64) -> bool {
    picture.restore();
    let (bytes, _) = &picture.files[path];
    let at_index = usize::try_from(at).expect("an index");
    let flipped = [bytes[at_index] ^ 0x10];
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.write_all_at(&flipped, at))
        .expect("flip a bit");
    let ended = run_on(scene, journal);
    let name = path.strip_prefix(&picture.root).expect("it lies below");
    if ended.status.success() {
        of(&scene.place, &ended).check_against(&scene.outcome);
        // A damaged snapshot is named too, though an older one and the log do in its place.
        let file = path.file_name().expect("a file").to_string_lossy();
        return ended.stderr.contains("warning: ") && ended.stderr.contains(&*file);
    }
    // A panic would be no answer.
    assert!(
        ended.status.code() == Some(1) || ended.stderr.contains("stopping: "),
        "{} byte {at}: {ended:?}",
        name.display()
    );
    let part = name
        .iter()
        .nth(1)
        .expect("a part of the data")
        .to_string_lossy();
    let names_it = ended.stderr.contains(&*part) || ended.stderr.contains("shard ");
    assert!(names_it, "{} byte {at}: {}", name.display(), ended.stderr);
    true
}

#[test]
fn a_flipped_bit_anywhere_is_named_or_in_no_use() {
    let scene = late_in_a_day();
    let picture = Picture::of(&scene.place.out);
    let journal = std::fs::read(&scene.place.acknowledgements).expect("read the journal");
    let mut rng = Rng::new(77);
    for part in ["log", "snapshots", "packages", "CLUSTER", "SYNCED"] {
        let files = picture.below(part);
        assert!(!files.is_empty(), "{part}");
        let (mut named, mut unused) = (0, 0);
        for (path, bytes) in files {
            let length = bytes.len() as u64;
            let count = FLIPS_PER_FILE.min(length);
            for region in 0..count {
                let (low, high) = (region * length / count, (region + 1) * length / count);
                if flip(&scene, &picture, &journal, path, rng.between(low, high - 1)) {
                    named += 1;
                } else {
                    unused += 1;
                }
            }
        }
        println!("{part}: {named} flipped bits named, {unused} in no use");
        // Of the two slots of SYNCED the whole one counts, and what a power cut leaves of the other looks like damage.
        assert!(named > 0 || part == "SYNCED", "{part}");
    }
}

/// A reader of a stopped node is told too.
#[test]
fn a_query_names_damage_of_the_log() {
    let scene = middle_of_a_day(LARGE_KIB);
    let picture = Picture::of(&scene.place.out);
    let (path, length) = picture.log_end();
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("open the log");
    let at = length as u64 - 20;
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("read a byte");
    file.write_all_at(&[byte[0] ^ 1], at).expect("flip a bit");
    let output = clearspan()
        .arg("query")
        .arg(&scene.place.out)
        .arg("cycle")
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("shard "), "{said}");
    assert_eq!(output.stdout, b"");
}
