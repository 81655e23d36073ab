//! F12: the power goes. What was not synced is gone, which a file system shut down under the process shows honestly.

use crate::days::{Day, Place};
use crate::labels::rounds;
use crate::outcome::{Outcome, acknowledgements, of, undisturbed};
use crate::process::Deadline;
use crate::rng::Rng;
use crate::volume::Volume;

const VOLUME_MIB: u32 = 512;
/// Cuts in a row in one directory.
const CUTS: usize = 6;

/// Runs a day and cuts the power after some acknowledgements; false when it ended before.
fn cut_once(volume: &Volume, place: &Place, outcome: &Outcome, rng: &mut Rng) -> bool {
    let lines = || acknowledgements(&place.acknowledgements).len();
    let wanted = rng.between(0, outcome.replies.len() as u64);
    let wanted = lines() + usize::try_from(wanted).expect("it was one before");
    let mut running = place.start(place.command());
    let ended = Deadline::new().until("a moment to cut", || {
        let ended = running.ended();
        (ended.is_some() || lines() >= wanted).then_some(ended)
    });
    if let Some(status) = ended {
        assert!(status.success(), "{status}: {}", running.stderr());
    }
    volume.cut_power();
    // It may go on for as long as it needs no disk; nothing that it says from here on was durable by luck alone.
    drop(running);
    volume.restore_power();
    ended.is_none()
}

#[test]
fn the_power_goes_and_nothing_acknowledged_is_lost() {
    let Some(volume) = Volume::on_image(VOLUME_MIB) else {
        return;
    };
    let mut cuts = 0;
    for day in [Day::Netting, Day::Example] {
        let (input, outcome) = undisturbed(volume.outside(), day);
        for round in 0..rounds() {
            let mut rng = Rng::new(5000 + round);
            let mut place = Place::new(&volume.path(), &input, "out");
            // What was acknowledged is remembered outside of the machine that fails.
            place.scratch = volume.outside().join(format!("{day:?}-{round}"));
            std::fs::create_dir_all(&place.scratch).expect("create a directory");
            place.acknowledgements = place.scratch.join("acknowledgements");
            for _ in 0..CUTS {
                cuts += usize::from(cut_once(&volume, &place, &outcome, &mut rng));
            }
            of(&place, &place.run()).check_against(&outcome);
            place.remove();
        }
    }
    println!("the power went {cuts} times");
}
