//! Readers beside processes that repack and prune.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use pronto_hash::Kind;

use super::support::{Random, Repository};

#[test]
fn nothing_is_missing_while_others_repack_and_prune() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(1, 40);
    let told = repository.told();
    let store = repository.store();
    let done = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (store, told, done, reads) = (&store, &told, &done, &reads);
            scope.spawn(move || {
                let mut random = Random(thread);
                let mut content = Vec::new();
                while !done.load(Relaxed) {
                    let object = &told[random.below(told.len())];
                    let kind = store.find(&object.id, &mut content).expect("no error");
                    assert_eq!(kind, Some(object.kind), "{} is there", object.id);
                    assert!(content == object.content);
                    let header = store.header(&object.id).expect("no error");
                    assert_eq!(header.map(|header| header.kind), Some(object.kind));
                    reads.fetch_add(1, Relaxed);
                }
            });
        }
        for round in 0..50 {
            // Each round makes another pack of the same objects, and now and then loose ones.
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
            }
            repository.git(&["repack", "-adfq", &depth]);
            repository.git(&["prune-packed", "-q"]);
        }
        done.store(true, Relaxed);
    });
    assert!(reads.load(Relaxed) > 100);
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    assert!(open < 100, "{open} descriptors are left open");
}

fn move_loose(from: &std::path::Path, to: &std::path::Path) {
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
