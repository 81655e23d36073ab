use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use clearspan_storage::{DataDir, Layout, Package, PackageError, PackageOptions, PackageStore};

use crate::support::{ONE, TWO, Volume, data_dir, new_dir, open_packages};

fn options() -> PackageOptions {
    PackageOptions {
        reserve_bytes: 0,
        ..PackageOptions::default()
    }
}

fn package(shard: clearspan_replica::ShardId, number: u64, length: usize) -> Package {
    let data: Vec<u8> = number
        .to_le_bytes()
        .into_iter()
        .cycle()
        .take(length)
        .collect();
    Package {
        shard,
        number,
        data: Bytes::from(data),
    }
}

fn open(layout: &Layout) -> (DataDir, PackageStore) {
    let data = data_dir(layout);
    let store = open_packages(&data, options());
    (data, store)
}

#[test]
fn packages_survive_and_belong_to_their_shard() {
    let (_dir, layout) = new_dir();
    let (data, store) = open(&layout);
    let small: Vec<Package> = (1..=100).map(|number| package(ONE, number, 100)).collect();
    let large: Vec<Package> = (1..=50)
        .map(|number| package(TWO, number, 64 << 10))
        .collect();
    store.put(&small).unwrap();
    store.put(&large).unwrap();
    store.put(&large).unwrap();
    store.persist().unwrap();
    drop((store, data));
    let (_data, store) = open(&layout);
    for package in small.iter().chain(&large) {
        assert_eq!(
            store.get(package.shard, package.number).unwrap().as_ref(),
            Some(&package.data)
        );
    }
    assert_eq!(store.get(ONE, 101).unwrap(), None);
    assert_eq!(store.span(ONE).unwrap(), Some((1, 100)));
    assert_eq!(store.span(TWO).unwrap(), Some((1, 50)));
    assert_eq!(
        store.span(clearspan_replica::ShardId::new(3)).unwrap(),
        None
    );
}

#[test]
fn retention_removes_through_a_number_and_no_further() {
    let (_dir, layout) = new_dir();
    let (data, store) = open(&layout);
    let all: Vec<Package> = (0..2500).map(|number| package(ONE, number, 20)).collect();
    store.put(&all).unwrap();
    store.put(&[package(TWO, 0, 20)]).unwrap();
    assert_eq!(store.remove_through(ONE, 2199).unwrap(), 2200);
    assert_eq!(store.remove_through(ONE, 2199).unwrap(), 0);
    store.persist().unwrap();
    drop((store, data));
    let (_data, store) = open(&layout);
    assert_eq!(store.span(ONE).unwrap(), Some((2200, 2499)));
    assert_eq!(store.span(TWO).unwrap(), Some((0, 0)));
    assert_eq!(store.get(ONE, 2199).unwrap(), None);
}

#[test]
fn a_full_volume_is_refused_and_recovers() {
    let (_dir, layout) = new_dir();
    let data = data_dir(&layout);
    let volume = Volume::new(1000);
    let options = PackageOptions {
        free_space: volume.clone(),
        reserve_bytes: 500,
        ..PackageOptions::default()
    };
    let store = open_packages(&data, options);
    let batch = [package(ONE, 1, 1000)];
    let refused = store.put(&batch).unwrap_err();
    assert!(matches!(
        refused,
        PackageError::DiskFull {
            free_bytes: 1000,
            ..
        }
    ));
    assert!(!refused.is_fatal());
    assert_eq!(store.get(ONE, 1).unwrap(), None);
    volume.0.store(10_000, Ordering::Relaxed);
    store.put(&batch).unwrap();
    assert_eq!(store.get(ONE, 1).unwrap().as_ref(), Some(&batch[0].data));
}

/// Whatever byte of the blob files changes, a package is refused by name or reads back; never is another served.
#[test]
fn a_damaged_package_is_never_served() {
    let (_dir, layout) = new_dir();
    let (data, store) = open(&layout);
    let all: Vec<Package> = (1..=20).map(|number| package(ONE, number, 8192)).collect();
    store.put(&all).unwrap();
    store.persist().unwrap();
    store.flush().unwrap();
    drop((store, data));
    let blobs = files(&layout.packages.join("keyspaces"));
    let blob = blobs
        .iter()
        .max_by_key(|path| std::fs::metadata(path).unwrap().len())
        .unwrap();
    let whole = std::fs::read(blob).unwrap();
    assert!(
        whole.len() > 20 * 8192,
        "the packages are in {}",
        blob.display()
    );
    let mut refused = 0;
    for at in (200..20 * 8192).step_by(7919) {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        std::fs::write(blob, &bad).unwrap();
        let (_data, store) = open(&layout);
        for package in &all {
            match store.get(ONE, package.number) {
                Ok(found) => assert_eq!(found.as_ref(), Some(&package.data), "byte {at}"),
                Err(PackageError::Corrupt {
                    shard: ONE, number, ..
                }) => {
                    assert_eq!(number, package.number);
                    refused += 1;
                }
                Err(other) => panic!("byte {at}: {other:?}"),
            }
        }
    }
    assert!(refused >= 15, "{refused}");
}

fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found
}

/// A process killed while it set the store up leaves a journal of zeros, perhaps a place for tables, perhaps a version
/// file that a power cut emptied. Nothing was ever stored, so the next start begins anew.
#[test]
fn a_store_whose_setting_up_was_cut_off_is_set_up_anew() {
    for (journal_length, tables, version) in [
        (Some(0), false, false),
        (Some(64 << 20), true, false),
        (Some(64 << 20), true, true),
        (None, true, false),
    ] {
        let (_dir, layout) = new_dir();
        let data = data_dir(&layout);
        let place = &layout.packages;
        if let Some(length) = journal_length {
            let journal = std::fs::File::create(place.join("0.jnl")).unwrap();
            journal.set_len(length).unwrap();
        }
        std::fs::File::create(place.join("lock")).unwrap();
        if tables {
            std::fs::create_dir(place.join("keyspaces")).unwrap();
        }
        if version {
            std::fs::File::create(place.join("version")).unwrap();
        }
        let store = open_packages(&data, options());
        store.put(&[package(ONE, 1, 100)]).unwrap();
        store.persist().unwrap();
        drop((store, data));
        let (_data, store) = open(&layout);
        assert!(store.get(ONE, 1).unwrap().is_some());
    }
}

#[test]
fn a_store_that_lost_its_version_is_refused_and_left_as_it_is() {
    let (_dir, layout) = new_dir();
    let (data, store) = open(&layout);
    store.put(&[package(ONE, 1, 5000)]).unwrap();
    store.persist().unwrap();
    drop(store);
    std::fs::remove_file(layout.packages.join("version")).unwrap();
    let journal = std::fs::read(layout.packages.join("0.jnl")).unwrap();
    for keep_tables in [true, false] {
        if !keep_tables {
            std::fs::remove_dir_all(layout.packages.join("keyspaces")).unwrap();
        }
        let refused = PackageStore::open(&data, options()).unwrap_err();
        assert!(refused.is_fatal(), "{refused}");
        assert_eq!(
            std::fs::read(layout.packages.join("0.jnl")).unwrap(),
            journal
        );
    }
}

/// Opens and reads everything. Whatever is there is what was put; the rest is refused.
fn read_all(layout: &Layout, put: &[Package]) -> Result<(), PackageError> {
    let data = data_dir(layout);
    let store = PackageStore::open(&data, options())?;
    let mut refused = Ok(());
    for package in put {
        match store.get(package.shard, package.number) {
            Ok(found) => assert!(found.is_none_or(|found| found == package.data)),
            Err(error) => refused = Err(error),
        }
    }
    store.span(ONE)?;
    refused
}

#[test]
fn a_flipped_bit_or_a_cut_in_any_file_is_answered() {
    let (_dir, layout) = new_dir();
    let put: Vec<Package> = (1..=6)
        .map(|number| package(ONE, number, 100 * (1 << number)))
        .collect();
    {
        let (_data, store) = open(&layout);
        store.put(&put[..3]).unwrap();
        store.flush().unwrap();
        store.put(&put[3..]).unwrap();
        store.persist().unwrap();
    }
    // The journal is laid out ahead of what is written to it, in zeros.
    let older = |path: &std::path::Path| path.ends_with("v0") || path.ends_with("v1");
    let whole: Vec<_> = files(&layout.packages)
        .into_iter()
        .filter(|path| !older(path))
        .map(|path| {
            let mut bytes = std::fs::read(&path).unwrap();
            let length = bytes.len() as u64;
            let zeros = bytes.iter().rev().take_while(|&&byte| byte == 0).count();
            bytes.truncate(bytes.len() - zeros);
            (bytes, length, path)
        })
        .collect();
    let restore = || {
        std::fs::remove_dir_all(&layout.packages).unwrap();
        for (bytes, length, path) in &whole {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
            File::options()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(*length)
                .unwrap();
        }
    };
    let (mut refused, mut tried) = (0, 0);
    for (bytes, _, path) in &whole {
        for (at, &byte) in bytes.iter().enumerate() {
            // Blobs and blocks are checksummed: some places of theirs stand for all; of the lists every third byte does.
            let stride = if at < 400 { 3 } else { 53 };
            if at % stride != 0 {
                continue;
            }
            restore();
            let file = File::options().write(true).open(path).unwrap();
            match at / stride % 3 {
                0 => file.write_all_at(&[byte ^ 0x10], at as u64).unwrap(),
                1 => file.write_all_at(&[byte ^ 0x80], at as u64).unwrap(),
                _ => file.set_len(at as u64).unwrap(),
            }
            tried += 1;
            refused += u64::from(read_all(&layout, &put).is_err());
        }
    }
    assert!(refused > tried / 4, "{refused} of {tried}");
    restore();
    read_all(&layout, &put).unwrap();
}
