//! Real time against log order: what was answered before something else was asked stands before it.

/// One operation: when it was asked, when it was answered (`None`: never, or nobody knows), and its place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it was asked.
    pub invoked_ns: u64,
    /// When it was answered.
    pub returned_ns: Option<u64>,
    /// Its place in the order that is claimed. Two operations may share one when both only read.
    pub position: u64,
    /// Whether it only reads: a read at a position stands behind the write there.
    pub reads: bool,
}

/// Two operations in the wrong order: `later` was asked after `earlier` was answered, and stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inversion {
    /// The place of the one in the list given.
    pub earlier: usize,
    /// The place of the other.
    pub later: usize,
}

/// Sweeps over all moments in order, O(n log n): whatever is asked must stand behind the highest place answered so far. An
/// answer and a question at the same moment are taken as overlapping.
///
/// # Errors
/// The first inversion in time.
pub fn check(operations: &[Interval]) -> Result<(), Inversion> {
    // Questions before answers of the same moment.
    let mut moments: Vec<(u64, bool, usize)> = Vec::with_capacity(operations.len() * 2);
    for (at, operation) in operations.iter().enumerate() {
        moments.push((operation.invoked_ns, false, at));
        if let Some(returned_ns) = operation.returned_ns {
            moments.push((returned_ns, true, at));
        }
    }
    moments.sort_unstable();
    let rank = |at: usize| (operations[at].position, operations[at].reads);
    let mut highest: Option<usize> = None;
    // What stood highest when each was asked, judged when it is asked: its place is known.
    for (_, answered, at) in moments {
        if answered {
            if highest.is_none_or(|known| rank(known) < rank(at)) {
                highest = Some(at);
            }
        } else if let Some(earlier) = highest
            && (rank(at) < rank(earlier)
                || (rank(at) == rank(earlier) && !operations[at].reads && earlier != at))
        {
            return Err(Inversion { earlier, later: at });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Interval, Inversion, check};

    fn write(invoked_ns: u64, returned_ns: u64, position: u64) -> Interval {
        Interval {
            invoked_ns,
            returned_ns: Some(returned_ns),
            position,
            reads: false,
        }
    }

    #[test]
    fn overlapping_may_stand_either_way() {
        assert_eq!(check(&[write(0, 10, 2), write(5, 15, 1)]), Ok(()));
        let touching = [write(0, 10, 2), write(10, 15, 1)];
        assert_eq!(check(&touching), Ok(()));
    }

    #[test]
    fn one_after_the_other_may_not() {
        let swapped = [write(0, 10, 2), write(11, 15, 1)];
        let inversion = Inversion {
            earlier: 0,
            later: 1,
        };
        assert_eq!(check(&swapped), Err(inversion));
        let same = [write(0, 10, 2), write(11, 15, 2)];
        assert_eq!(check(&same), Err(inversion));
    }

    #[test]
    fn what_was_never_answered_binds_nobody() {
        let open = Interval {
            returned_ns: None,
            ..write(0, 0, 9)
        };
        assert_eq!(check(&[open, write(11, 15, 1)]), Ok(()));
        assert!(
            check(&[
                write(11, 15, 1),
                Interval {
                    position: 0,
                    invoked_ns: 20,
                    ..open
                }
            ])
            .is_err()
        );
    }

    #[test]
    fn a_read_sees_what_was_answered_before_it() {
        let read = |invoked_ns, returned_ns, position| Interval {
            reads: true,
            ..write(invoked_ns, returned_ns, position)
        };
        assert_eq!(
            check(&[write(0, 10, 4), read(11, 12, 4), read(13, 14, 4)]),
            Ok(())
        );
        assert!(check(&[write(0, 10, 4), read(11, 12, 3)]).is_err(), "stale");
        assert!(
            check(&[read(0, 10, 4), read(11, 12, 3)]).is_err(),
            "goes back"
        );
        assert!(
            check(&[read(0, 10, 4), write(11, 12, 4)]).is_err(),
            "from the future"
        );
    }

    /// By the definition: every pair.
    fn every_pair(operations: &[Interval]) -> bool {
        let before = |a: &Interval, b: &Interval| {
            a.returned_ns
                .is_some_and(|returned| returned < b.invoked_ns)
        };
        operations.iter().all(|a| {
            operations.iter().all(|b| {
                !before(a, b)
                    || (a.position, a.reads) < (b.position, b.reads)
                    || (b.reads && (a.position, a.reads) == (b.position, b.reads))
            })
        })
    }

    proptest! {
        #[test]
        fn the_sweep_is_the_definition(list in prop::collection::vec(
            (0..40_u64, prop::option::of(0..15_u64), 0..12_u64, any::<bool>()), 0..9))
        {
            let operations: Vec<Interval> = list
                .into_iter()
                .map(|(invoked_ns, length, position, reads)| Interval {
                    invoked_ns,
                    returned_ns: length.map(|length| invoked_ns + length),
                    position,
                    reads,
                })
                .collect();
            prop_assert_eq!(check(&operations).is_ok(), every_pair(&operations));
        }
    }
}
