//! F2: the process dies at every labelled place, several times each, many times in a row in one directory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use clearspan_node::crash_points::all_crash_points;

use crate::days::{DAYS, Day, Place, scratch};
use crate::outcome::{Outcome, of, undisturbed};
use crate::rng::Rng;

const CRASH_AT: &str = "CLEARSPAN_CRASH_AT";
const SIGABRT: i32 = 6;
/// Which hit of a place is the last thing a process does. Many places are passed once per run, most a hundred times.
const HITS: [u64; 8] = [1, 1, 1, 1, 2, 3, 4, 7];
/// Further hits per place, by lot.
const RANDOM_HITS: usize = 3;
const RANDOM_HIT_MAX: u64 = 60;
/// Fresh directories in which a place that has not been reached is tried again.
const TRIES_MAX: u32 = 3;
/// At the least so many crashes per round.
const CRASHES_MIN: usize = 170;

struct Rehearsal {
    label: &'static str,
    hit: u64,
    tries: u32,
}

/// A longer form: `CLEARSPAN_CRASH_RUNS=2000` crashes about so often per test.
pub(crate) fn rounds() -> u64 {
    let wanted: u64 = match std::env::var("CLEARSPAN_CRASH_RUNS") {
        Ok(text) => text.parse().expect("CLEARSPAN_CRASH_RUNS is a number"),
        Err(_) => 200,
    };
    (wanted / 200).max(1)
}

fn rehearsals(rng: &mut Rng) -> VecDeque<Rehearsal> {
    let mut list = Vec::new();
    for label in all_crash_points() {
        list.extend(HITS.map(|hit| (label, hit)));
        for _ in 0..RANDOM_HITS {
            list.push((label, rng.between(2, RANDOM_HIT_MAX)));
        }
    }
    rng.shuffle(&mut list);
    list.into_iter()
        .map(|(label, hit)| Rehearsal {
            label,
            hit,
            tries: 0,
        })
        .collect()
}

/// The directory in hand; it is given up for a fresh one once its day is done.
struct Scene<'a> {
    root: &'a Path,
    days: Vec<(Day, PathBuf, Outcome)>,
    finished: usize,
    place: Place,
    /// What was done in this directory, for whoever looks at a failure.
    history: Vec<String>,
}

impl<'a> Scene<'a> {
    fn new(root: &'a Path) -> Self {
        let days: Vec<_> = DAYS
            .iter()
            .map(|&day| {
                let (input, outcome) = undisturbed(root, day);
                (day, input, outcome)
            })
            .collect();
        let place = Place::new(root, &days[0].1, "0");
        Self {
            root,
            days,
            finished: 0,
            place,
            history: Vec::new(),
        }
    }

    /// Checks what the day came to and turns to the next.
    fn finish(&mut self, last: &crate::process::Ended) {
        let (day, _, undisturbed) = &self.days[self.finished % self.days.len()];
        eprintln!("{day:?} after {}", self.history.join(", "));
        of(&self.place, last).check_against(undisturbed);
        self.place.remove();
        self.finished += 1;
        self.history.clear();
        let (_, input, _) = &self.days[self.finished % self.days.len()];
        self.place = Place::new(self.root, input, &self.finished.to_string());
    }

    /// Whether it crashed there.
    fn crash(&mut self, label: &str, hit: u64) -> bool {
        let mut command = self.place.command();
        command.env(CRASH_AT, format!("{label}:{hit}"));
        let ended = self.place.start(command).wait();
        if ended.status.success() {
            self.finish(&ended);
            return false;
        }
        self.history.push(format!("{label}:{hit}"));
        let history = &self.history;
        assert_eq!(
            ended.status.signal(),
            Some(SIGABRT),
            "{history:?}: {} {}",
            ended.status,
            ended.stderr
        );
        assert_eq!(
            ended.stderr.lines().last(),
            Some(format!("crash point {label}").as_str()),
            "{history:?}: {}",
            ended.stderr
        );
        true
    }
}

#[test]
fn killed_at_every_labelled_place_nothing_is_lost_and_nothing_done_twice() {
    let root = scratch();
    let mut scene = Scene::new(root.path());
    let mut reached: BTreeMap<&str, usize> = BTreeMap::new();
    // Hits that a whole day went by without: no use to try them, or later ones, again.
    let mut beyond: BTreeMap<&str, u64> = BTreeMap::new();
    for round in 0..rounds() {
        let mut waiting = rehearsals(&mut Rng::new(round + 1));
        while let Some(mut rehearsal) = waiting.pop_front() {
            let Rehearsal { label, hit, tries } = rehearsal;
            if beyond.get(label).is_some_and(|&never| never <= hit) {
                continue;
            }
            let fresh = scene.history.is_empty();
            if scene.crash(label, hit) {
                *reached.entry(label).or_default() += 1;
            } else if !reached.contains_key(label) && tries < TRIES_MAX {
                // The day went by without it: try in a fresh directory.
                rehearsal.tries += 1;
                waiting.push_front(rehearsal);
            } else if fresh {
                beyond.insert(label, hit);
            } else {
                // Perhaps the directory was too far on.
                rehearsal.tries += 1;
                if tries < 1 {
                    waiting.push_front(rehearsal);
                }
            }
        }
    }
    let last = scene.place.run();
    scene.finish(&last);
    let missed: Vec<_> = all_crash_points()
        .filter(|label| !reached.contains_key(label))
        .collect();
    assert!(missed.is_empty(), "no run reached {missed:?}");
    let crashes: usize = reached.values().sum();
    println!(
        "{crashes} crashes at {} places, {} days ended: {reached:?}",
        reached.len(),
        scene.finished
    );
    assert!(
        crashes >= CRASHES_MIN,
        "only {crashes} crashes: {reached:?}"
    );
}

/// The lists name what is in the sources, so that no place is forgotten.
#[test]
fn the_lists_of_labels_are_complete() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for name in std::fs::read_dir(crates).unwrap() {
        labels_in(&name.unwrap().path().join("src"), &mut found);
    }
    let listed: BTreeSet<String> = all_crash_points().map(str::to_owned).collect();
    assert_eq!(found, listed);
    assert_eq!(
        listed.len(),
        all_crash_points().count(),
        "one is listed twice"
    );
}

fn labels_in(dir: &Path, found: &mut BTreeSet<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.expect("an entry of a directory").path();
        if path.is_dir() {
            labels_in(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            for call in text.split("crash_point(\"").skip(1) {
                let label = call.split('"').next().unwrap_or_default();
                found.insert(label.to_owned());
            }
        }
    }
}
