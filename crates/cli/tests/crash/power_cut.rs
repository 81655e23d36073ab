//! F12: the power goes. What was not synced is gone, which a file system shut down under the process shows honestly.

use crate::days::{DAYS, Place};
use crate::kills::start_until_a_moment;
use crate::labels::rounds;
use crate::outcome::{Outcome, of, undisturbed};
use crate::rng::Rng;
use crate::volume::Volume;

const VOLUME_MIB: u32 = 512;
/// Cuts in a row in one directory.
const CUTS: usize = 8;

/// Runs a day and cuts the power at some moment; false when it ended before.
fn cut_once(volume: &Volume, place: &Place, outcome: &Outcome, rng: &mut Rng) -> bool {
    let (running, ended) = start_until_a_moment(place, outcome, rng);
    volume.cut_power();
    // Until it meets the dead disk it may say more; that counts as acknowledged like all the rest.
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
    for day in DAYS {
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
