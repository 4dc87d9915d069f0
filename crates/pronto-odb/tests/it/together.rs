//! Readers beside processes that repack and prune.
//!
//! `PRONTO_ROUNDS=1000 cargo test --release -p pronto-odb --test it together` sets the number of
//! rounds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pronto_hash::Kind;

use test_support::Random;

use super::support::Repository;

const READERS: u64 = 16;

fn rounds() -> usize {
    std::env::var("PRONTO_ROUNDS").map_or(15, |rounds| rounds.parse().expect("a number"))
}

#[test]
fn nothing_is_missing_while_others_repack_and_prune() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(1, 40);
    let rounds = rounds();
    let listed = repository.listed_objects();
    let store = repository.store();
    let done = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..READERS {
            let (store, listed, done, reads) = (&store, &listed, &done, &reads);
            scope.spawn(move || {
                let mut random = Random::new(thread);
                let mut content = Vec::new();
                while !done.load(Relaxed) {
                    let object = &listed[random.index(listed.len())];
                    let kind = store.find(&object.id, &mut content).expect("no error");
                    assert_eq!(kind, Some(object.kind), "{} is there", object.id);
                    assert!(content == object.content);
                    let header = store.header(&object.id).expect("no error");
                    assert_eq!(header.map(|header| header.kind), Some(object.kind));
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        for round in 0..rounds {
            // Each round creates another pack of the same objects, and sometimes loose ones.
            let depth = format!("--depth={}", 1 + round % 7);
            if round % 5 == 4 {
                let pack = repository.pack_file("pack");
                let aside = repository.directory.path().join("aside.pack");
                std::fs::copy(&pack, &aside).expect("a copy");
                let bytes = std::fs::read(&aside).expect("it can be read");
                let empty = repository.directory.path().join(format!("empty{round}"));
                super::support::git_in(
                    repository.directory.path(),
                    &["init", "-q", "--bare", &empty.display().to_string()],
                );
                super::support::git_with_input(&empty, &["unpack-objects", "-q"], &bytes);
                move_loose(&empty.join("objects"), &repository.objects());
                std::fs::remove_dir_all(&empty).expect("it is ours");
            }
            repository.git(&["repack", "-adfq", &depth]);
            match round % 3 {
                0 => repository.git(&["prune-packed", "-q"]),
                1 => repository.git(&["multi-pack-index", "write"]),
                _ => repository.git(&["prune", "--expire=now"]),
            };
        }
        done.store(true, Relaxed);
    });
    assert!(reads.load(Relaxed) > 100);
    store.refresh().expect("it can be listed");
    assert_eq!(in_use(repository.directory.path()).1, Vec::<String>::new());
    let maps = in_use(repository.directory.path()).0;
    let gone = maps.iter().filter(|line| line.ends_with("(deleted)"));
    assert_eq!(gone.count(), 0, "{maps:?}");
    // One pack, its index, and the multi-pack-index.
    assert!(maps.len() <= 3, "{maps:?}");
    drop(store);
    assert_eq!(in_use(repository.directory.path()).0, Vec::<String>::new());
}

/// Returns the mappings and file descriptors of this process below `directory`.
fn in_use(directory: &Path) -> (Vec<String>, Vec<String>) {
    let directory = directory.display().to_string();
    let has = |text: &String| text.contains(&directory);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let maps = maps.lines().map(str::to_owned).filter(has).collect();
    let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let descriptors = descriptors
        .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
        .map(|target| target.display().to_string())
        .filter(has)
        .collect();
    (maps, descriptors)
}

fn move_loose(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be listed");
        if entry.file_name().len() != 2 {
            continue;
        }
        let target = to.join(entry.file_name());
        std::fs::create_dir_all(&target).expect("it can be made");
        for file in std::fs::read_dir(entry.path()).expect("it is there") {
            let file = file.expect("it can be listed");
            let _ = std::fs::rename(file.path(), target.join(file.file_name()));
        }
    }
}
