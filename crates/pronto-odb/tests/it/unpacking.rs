//! Packs that are unpacked into loose objects.

use std::sync::Mutex;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_odb::{Quarantine, Store};
use pronto_pack::indexer::{IndexContext, Inspect, Options};

use super::support::{Repository, assert_same, git_with_input};

fn loose_files(store: &Store) -> usize {
    let fanouts = std::fs::read_dir(store.path()).expect("it is there");
    fanouts
        .map(|entry| entry.expect("it can be listed"))
        .filter(|entry| entry.file_name().len() == 2)
        .map(|entry| std::fs::read_dir(entry.path()).map_or(0, Iterator::count))
        .sum()
}

fn temporary_files(store: &Store) -> usize {
    let entries = std::fs::read_dir(store.path()).expect("it is there");
    entries
        .map(|entry| entry.expect("it can be listed").file_name())
        .filter(|name| name.display().to_string().starts_with("tmp"))
        .count()
}

fn whole_pack(repository: &Repository) -> Vec<u8> {
    git_with_input(
        repository.directory.path(),
        &["pack-objects", "--stdout", "--all", "-q"],
        b"",
    )
}

#[test]
fn every_object_becomes_a_loose_one() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        let source = Repository::new(kind);
        source.commit_history(3, 20);
        let listed = source.listed_objects();
        let pack = whole_pack(&source);
        for (threads, big_file_threshold_bytes) in [(1, u64::MAX), (4, 500)] {
            let target = Repository::new(kind);
            let store = target.store();
            let mut options = Options::default();
            options.threads = threads;
            options.big_file_threshold_bytes = big_file_threshold_bytes;
            let outcome = store
                .unpack(&mut &pack[..], &options, &IndexContext::default())
                .expect("the pack is sound");
            assert_eq!(outcome.objects as usize, listed.len());
            assert!(outcome.deltas > 0, "the pack has deltas");
            assert_eq!(loose_files(&store), listed.len());
            assert_eq!(temporary_files(&store), 0);
            assert_same(&store, &listed);
            target.git(&["fsck", "--full", "--strict"]);
        }
    }
}

#[test]
fn bases_of_a_thin_pack_stay_where_they_are() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(4, 10);
    let before = repository.git(&["rev-parse", "main"]);
    let copy = Repository::new(Kind::Sha1);
    let whole = whole_pack(&repository);
    git_with_input(copy.directory.path(), &["index-pack", "--stdin"], &whole);
    let paths = repository.git(&["ls-tree", "-r", "--name-only", "main"]);
    let path = String::from_utf8(paths).expect("ASCII");
    let path = path.lines().next().expect("there is a file");
    let mut content = repository.git(&["cat-file", "blob", &format!("main:{path}")]);
    content.extend_from_slice(b"one line more\n");
    let mut stream = format!(
        "commit refs/heads/main\ncommitter C <c@example.com> 1800000000 +0000\ndata 4\nmore\n\
        from refs/heads/main^0\nM 100644 inline {path}\ndata {}\n",
        content.len()
    )
    .into_bytes();
    stream.extend_from_slice(&content);
    let place = repository.directory.path();
    git_with_input(place, &["fast-import", "--quiet"], &stream);
    let mut wanted = b"main\n^".to_vec();
    wanted.extend_from_slice(&before);
    let thin = git_with_input(
        repository.directory.path(),
        &["pack-objects", "--stdout", "--thin", "--revs", "-q"],
        &wanted,
    );
    let store = copy.store();
    let quarantine = Quarantine::begin(&store).expect("it can be made");
    let outcome = quarantine
        .store()
        .unpack(
            &mut &thin[..],
            &Options::default(),
            &IndexContext::default(),
        )
        .expect("the pack is sound");
    assert!(outcome.added > 0, "the pack is thin");
    assert_eq!(loose_files(&store), 0, "nothing is seen yet");
    quarantine.publish().expect("it can be moved");
    assert_eq!(loose_files(&store) as u32, outcome.objects - outcome.added);
    assert_same(&store, &repository.listed_objects());
    assert_eq!(temporary_files(&store), 0);
}

#[test]
fn objects_that_are_there_are_not_written_again() {
    let repository = Repository::new(Kind::Sha1);
    repository.commit_history(6, 5);
    repository.git(&["repack", "-adq"]);
    repository.git(&["prune-packed", "-q"]);
    let store = repository.store();
    let pack = whole_pack(&repository);
    store
        .unpack(
            &mut &pack[..],
            &Options::default(),
            &IndexContext::default(),
        )
        .expect("the pack is sound");
    assert_eq!(loose_files(&store), 0);
}

#[test]
fn broken_packs_leave_no_temporary_files() {
    let source = Repository::new(Kind::Sha1);
    source.commit_history(7, 5);
    let pack = whole_pack(&source);
    let mut flipped = pack.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    for broken in [&pack[..pack.len() / 2], &flipped, b"PACK", b""] {
        let target = Repository::new(Kind::Sha1);
        let store = target.store();
        store
            .unpack(
                &mut &broken[..],
                &Options::default(),
                &IndexContext::default(),
            )
            .expect_err("the pack is broken");
        assert_eq!(temporary_files(&store), 0);
    }
}

/// Records objects, and refuses tags.
#[derive(Default)]
struct Notes(Mutex<Vec<ObjectId>>);

impl Inspect for Notes {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        _content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        if kind == ObjectKind::Tag {
            let message = "no tags here";
            return Err(pronto_pack::Error::new(
                pronto_pack::ErrorKind::Rejected,
                message,
            ));
        }
        self.0.lock().expect("nobody panics").push(*id);
        Ok(())
    }

    fn large_blob(&self, id: &ObjectId, _size_bytes: u64) -> Result<(), pronto_pack::Error> {
        self.0.lock().expect("nobody panics").push(*id);
        Ok(())
    }
}

#[test]
fn whoever_inspects_sees_each_object_first_and_can_refuse() {
    let source = Repository::new(Kind::Sha1);
    source.commit_history(8, 5);
    let listed = source.listed_objects();
    let notes = Notes::default();
    let context = IndexContext {
        inspect: Some(&notes),
        ..IndexContext::default()
    };
    let target = Repository::new(Kind::Sha1);
    let pack = whole_pack(&source);
    target
        .store()
        .unpack(&mut &pack[..], &Options::default(), &context)
        .expect("there is no tag");
    assert_eq!(notes.0.lock().expect("nobody panics").len(), listed.len());

    source.git(&["tag", "-a", "-m", "refused", "v1", "main"]);
    let pack = whole_pack(&source);
    let error = target
        .store()
        .unpack(&mut &pack[..], &Options::default(), &context)
        .expect_err("there is a tag");
    assert_eq!(error.message(), "no tags here");
}
