use std::fs;
use std::io::Read;

use clearspan_replica::{LogPosition, MemberId, Membership, SnapshotMark};
use clearspan_storage::{ClusterId, DataDir, Layout, SnapshotError, Snapshots};

use crate::support::{ONE, TWO, data_dir, identity, new_dir};

fn mark(index: u64) -> SnapshotMark {
    let member = |number| MemberId::new(number).unwrap();
    let membership = Membership {
        voters: vec![member(1), member(2)],
        learners: vec![member(u64::MAX)],
        voters_outgoing: vec![member(3)],
        learners_next: vec![member(4)],
        auto_leave: true,
    };
    SnapshotMark {
        position: LogPosition { term: 7, index },
        membership,
    }
}

fn body(index: u64) -> Vec<u8> {
    index.to_le_bytes().into_iter().cycle().take(3000).collect()
}

fn write(snapshots: &Snapshots, index: u64) -> std::path::PathBuf {
    snapshots
        .write(ONE, &mark(index), |out| {
            // In uneven pieces, as a state writes itself.
            body(index)
                .chunks(700)
                .try_for_each(|piece| out.write_all(piece))
        })
        .unwrap()
}

fn open(layout: &Layout) -> (DataDir, Snapshots) {
    let data = data_dir(layout);
    let snapshots = Snapshots::open(&data);
    (data, snapshots)
}

#[test]
fn the_newest_two_are_kept_and_read_back() {
    let (_dir, layout) = new_dir();
    let (_data, snapshots) = open(&layout);
    assert!(snapshots.list(ONE).unwrap().is_empty());
    for index in [5, 100, 20, 1000] {
        write(&snapshots, index);
    }
    let found = snapshots.list(ONE).unwrap();
    let positions: Vec<u64> = found.iter().map(|file| file.position.index).collect();
    assert_eq!(positions, [1000, 100]);
    for file in &found {
        let index = file.position.index;
        assert_eq!(file.checked.as_ref().unwrap(), &mark(index));
        let mut reader = snapshots.read(ONE, file.position).unwrap();
        assert_eq!((reader.mark(), reader.length_bytes()), (&mark(index), 3000));
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, body(index));
    }
    assert!(snapshots.list(TWO).unwrap().is_empty());
}

#[test]
fn every_changed_byte_and_every_cut_is_named_and_the_older_one_stays() {
    let (_dir, layout) = new_dir();
    let (_data, snapshots) = open(&layout);
    write(&snapshots, 1);
    let path = write(&snapshots, 2);
    let whole = fs::read(&path).unwrap();
    let damaged = |what: &str| {
        let found = snapshots.list(ONE).unwrap();
        assert_eq!(found[0].path, path);
        let fault = found[0].checked.as_ref().unwrap_err();
        assert!(
            fault.to_string().contains(&path.display().to_string()),
            "{what}: {fault}"
        );
        assert_eq!(found[1].checked.as_ref().unwrap(), &mark(1), "{what}");
    };
    for at in (0..200).chain((200..whole.len()).step_by(53)) {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        fs::write(&path, &bad).unwrap();
        damaged(&format!("byte {at}"));
        fs::write(&path, &whole[..at]).unwrap();
        damaged(&format!("cut to {at}"));
    }
    fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
    damaged("longer");
    // A damaged body fails at its end when read.
    let mut bad = whole.clone();
    *bad.last_mut().unwrap() ^= 1;
    fs::write(&path, &bad).unwrap();
    let mut reader = snapshots.read(ONE, mark(2).position).unwrap();
    assert!(reader.read_to_end(&mut Vec::new()).is_err());
}

#[test]
fn a_whole_file_in_the_wrong_place_is_named() {
    let (_dir, layout) = new_dir();
    let (data, snapshots) = open(&layout);
    let path = write(&snapshots, 2);
    let fault = |snapshots: &Snapshots, shard| {
        let mut found = snapshots.list(shard).unwrap();
        match found.remove(0).checked {
            Err(SnapshotError::Damaged { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    let elsewhere = layout.snapshots.join(TWO.to_string());
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(&path, elsewhere.join(path.file_name().unwrap())).unwrap();
    assert_eq!(fault(&snapshots, TWO), "it is another shard's");
    fs::rename(
        &path,
        path.with_file_name(format!("{:020}-{:020}.snap", 3, 7)),
    )
    .unwrap();
    assert_eq!(fault(&snapshots, ONE), "its name says another position");
    drop(data);
    // The same files in another cluster's directory.
    let other = Layout {
        root: layout.root.join("other"),
        ..layout.clone()
    };
    let mut theirs = identity();
    theirs.cluster = ClusterId::from_bytes([9; 16]);
    let empty = Layout {
        snapshots: layout.root.join("other/snapshots"),
        ..Layout::under(other.root.clone())
    };
    drop(DataDir::create(empty, theirs).unwrap());
    let (_data, snapshots) = open(&other);
    assert_eq!(fault(&snapshots, TWO), "it is another cluster's");
}

#[test]
fn a_failed_write_leaves_the_older_one_and_no_rest() {
    let (_dir, layout) = new_dir();
    let (_data, snapshots) = open(&layout);
    write(&snapshots, 1);
    let failed = snapshots.write(ONE, &mark(2), |out| {
        out.write_all(b"part")?;
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    });
    assert!(matches!(
        failed,
        Err(SnapshotError::Io { step: "write", .. })
    ));
    let files = fs::read_dir(layout.snapshots.join(ONE.to_string()))
        .unwrap()
        .count();
    assert_eq!(files, 1);
    assert_eq!(
        snapshots.list(ONE).unwrap()[0].checked.as_ref().unwrap(),
        &mark(1)
    );
}
