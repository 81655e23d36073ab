//! F1: `kill -9` at any moment. When is drawn by lot: after so many acknowledgements, plus a moment that nobody chooses.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use crate::days::{DAYS, Place, scratch};
use crate::labels::rounds;
use crate::outcome::{Outcome, of, undisturbed};
use crate::process::{Deadline, Running};
use crate::rng::Rng;

const SIGKILL: i32 = 9;
/// Of 144 per round; the others come when the day is done.
const KILLS_MIN: u32 = 100;
/// Kills in a row in one directory.
const KILLS_IN_A_ROW: u32 = 8;
/// Messages on their way at once in every third directory.
const MANY: u16 = 32;
/// Directories per day and round.
const DIRECTORIES: u32 = 6;
/// When a run is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// After so many acknowledgements of this run.
    Acknowledgements(usize),
    /// With so many numbered documents written by all runs.
    Documents(usize),
}

impl Moment {
    fn draw(outcome: &Outcome, rng: &mut Rng) -> Self {
        let up_to = |rng: &mut Rng, count: usize| {
            usize::try_from(rng.between(0, count as u64)).expect("it was one before")
        };
        match rng.between(0, 3) {
            0 => Self::Documents(up_to(rng, outcome.documents.len())),
            _ => Self::Acknowledgements(up_to(rng, outcome.replies.len())),
        }
    }

    fn has_come(self, place: &Place, acknowledged_before: usize) -> bool {
        match self {
            Self::Acknowledgements(count) => acknowledged(place) >= acknowledged_before + count,
            Self::Documents(count) => documents(place) >= count,
        }
    }
}

fn acknowledged(place: &Place) -> usize {
    std::fs::read(&place.acknowledgements)
        .map_or(0, |text| text.iter().filter(|&&byte| byte == b'\n').count())
}

fn documents(place: &Place) -> usize {
    let list = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path()))
    };
    list(&place.out.join("outbox"))
        .map(|dir| list(&dir).count())
        .sum()
}

#[test]
fn killed_at_random_nothing_is_lost_and_nothing_done_twice() {
    let root = scratch();
    let (mut killed, mut ended) = (0, 0);
    for day in DAYS {
        let (input, outcome) = undisturbed(root.path(), day);
        for round in 0..rounds() {
            let mut rng = Rng::new(1000 + round);
            for directory in 0..DIRECTORIES {
                let name = format!("{day:?}-{round}-{directory}");
                let mut place = Place::new(root.path(), &input, &name);
                // Many messages on their way at once: in which order they meet is not the same twice, so such a day is held
                // against what was acknowledged and against itself alone.
                let alone = directory % 3 < 2;
                place.window = if alone { 1 } else { MANY };
                for _ in 0..KILLS_IN_A_ROW {
                    killed += u32::from(kill_once(&place, &outcome, &mut rng));
                }
                let came_to = of(&place, &place.run());
                if alone {
                    came_to.check_against(&outcome);
                }
                place.remove();
                ended += 1;
            }
        }
    }
    println!("killed {killed} times, {ended} days ended");
    assert!(killed >= KILLS_MIN, "only {killed} kills");
}

/// Starts a run and waits for some moment; how it ended when it did before.
pub(crate) fn start_until_a_moment(
    place: &Place,
    outcome: &Outcome,
    rng: &mut Rng,
) -> (Running, Option<ExitStatus>) {
    let moment = Moment::draw(outcome, rng);
    let before = acknowledged(place);
    let mut running = place.start(place.command());
    let ended = Deadline::new().until("a moment to kill", || {
        let ended = running.ended();
        (ended.is_some() || moment.has_come(place, before)).then_some(ended)
    });
    if let Some(status) = ended {
        assert!(status.success(), "{status}: {}", running.stderr());
    }
    (running, ended)
}

/// Kills a run at some moment; false when it ended before.
fn kill_once(place: &Place, outcome: &Outcome, rng: &mut Rng) -> bool {
    let (running, ended) = start_until_a_moment(place, outcome, rng);
    if ended.is_some() {
        return false;
    }
    let ended = running.kill();
    // It may have ended by itself meanwhile.
    assert!(
        ended.status.signal() == Some(SIGKILL) || ended.status.success(),
        "{ended:?}"
    );
    ended.status.signal() == Some(SIGKILL)
}
