//! Thin packs, and packs that collide with existing objects.

use super::support::{Maker, Repository, delta, id_of, paths};
use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, oid};
use pronto_pack::entry::EntryHeader;
use pronto_pack::indexer::{ExistingObjects, IndexContext, Options, Outcome, index_stream};
use pronto_pack::{Error, ErrorKind};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tempfile::TempDir;

/// Objects in memory.
#[derive(Default)]
struct Objects {
    objects: BTreeMap<ObjectId, (ObjectKind, Vec<u8>)>,
    asked: AtomicUsize,
    read: AtomicUsize,
}

impl ExistingObjects for Objects {
    fn contains_batch(&self, ids: &[ObjectId], found: &mut Vec<usize>) -> Result<(), Error> {
        self.asked.fetch_add(1, Relaxed);
        assert!(ids.is_sorted());
        found.extend((0..ids.len()).filter(|at| self.objects.contains_key(&ids[*at])));
        Ok(())
    }

    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        self.read.fetch_add(1, Relaxed);
        Ok(self.objects.get(id).map(|(kind, content)| {
            out.clear();
            out.extend_from_slice(content);
            *kind
        }))
    }
}

impl Objects {
    fn of(repository: &Repository, revision: &str) -> Self {
        let listing = repository.git(&["rev-list", "--objects", revision], b"");
        let mut objects = Objects::default();
        for line in String::from_utf8_lossy(&listing).lines() {
            let hex = line.split(' ').next().expect("a line begins with an id");
            let id = ObjectId::from_hex(hex.as_bytes()).expect("it is an id");
            let kind = repository.git(&["cat-file", "-t", hex], b"");
            let kind = ObjectKind::from_bytes(kind.trim_ascii()).expect("it is a kind");
            let content = repository.git(&["cat-file", &kind.to_string(), hex], b"");
            objects.objects.insert(id, (kind, content));
        }
        objects
    }

    fn blob(content: &[u8]) -> Self {
        let mut objects = Objects::default();
        let id = id_of(ObjectKind::Blob, content);
        objects
            .objects
            .insert(id, (ObjectKind::Blob, content.to_vec()));
        objects
    }
}

fn index(
    pack: &[u8],
    existing: &dyn ExistingObjects,
    change: impl FnOnce(&mut Options),
) -> (TempDir, Result<Outcome, Error>) {
    let mut options = Options::default();
    options.sync = pronto_io::sync::SyncMethod::No;
    options.fix_thin = true;
    change(&mut options);
    let context = IndexContext {
        existing: Some(existing),
        ..IndexContext::default()
    };
    let directory = TempDir::new().expect("a temporary directory");
    let outcome = index_stream(&mut &pack[..], directory.path(), &options, &context);
    (directory, outcome)
}

#[test]
fn a_thin_pack_is_completed() {
    let repository = Repository::with_history(Kind::Sha1, 30);
    let existing = Objects::of(&repository, "main~10");
    for arguments in [&["--thin"][..], &["--thin", "--delta-base-offset"]] {
        let pack = repository.pack_of(arguments, "main\n^main~10\n");
        for threads in [1, 2] {
            let (directory, outcome) = index(&pack, &existing, |options| {
                options.threads = threads;
                options.base_cache_bytes = 0;
            });
            let outcome = outcome.expect("all bases exist");
            assert!(outcome.added > 0, "the pack is thin");
            // git writes the same index for the completed pack.
            let pack = std::fs::read(&outcome.pack).expect("it is there");
            let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
            assert!(super::support::files(directory.path()) == expected);
        }
    }
}

#[test]
fn a_thin_pack_is_refused_where_its_bases_are_not() {
    let repository = Repository::with_history(Kind::Sha1, 30);
    let pack = repository.pack_of(&["--thin"], "main\n^main~10\n");
    let existing = Objects::of(&repository, "main~10");
    for (existing, fix) in [(Objects::default(), true), (existing, false)] {
        let (directory, outcome) = index(&pack, &existing, |options| options.fix_thin = fix);
        let error = outcome.expect_err("bases are missing");
        assert_eq!(error.kind(), ErrorKind::Unresolved);
        assert!(error.message().contains("unresolved delta"), "{error}");
        assert!(paths(directory.path()).is_empty());
    }
}

#[test]
fn a_base_that_is_damaged_is_refused() {
    let content = b"the base";
    let mut existing = Objects::blob(content);
    for (_, content) in existing.objects.values_mut() {
        content.push(b'!');
    }
    let mut maker = Maker::new(1);
    let delta = delta(8, b"derived");
    let base = id_of(ObjectKind::Blob, content);
    maker.entry(EntryHeader::RefDelta { base }, delta.len() as u64, &delta);
    let (directory, outcome) = index(&maker.finish(), &existing, |_| ());
    let error = outcome.expect_err("the base is not what it says");
    assert_eq!(error.to_string(), format!("local object {base} is corrupt"));
    assert!(paths(directory.path()).is_empty());
}

#[test]
fn what_exists_is_compared_and_nothing_else_is_read() {
    let repository = Repository::with_history(Kind::Sha1, 30);
    let pack = repository.pack(&["--delta-base-offset"]);
    let existing = Objects::of(&repository, "main~10");
    for cache in [0, 96 << 20] {
        let (_directory, outcome) = index(&pack, &existing, |options| {
            options.base_cache_bytes = cache;
        });
        outcome.expect("they are the same");
        assert_eq!(existing.asked.swap(0, Relaxed), 1);
        assert_eq!(existing.read.swap(0, Relaxed), existing.objects.len());
    }
}

#[test]
fn other_contents_under_an_id_are_a_collision() {
    let repository = Repository::with_history(Kind::Sha1, 30);
    for arguments in [&["--delta-base-offset"][..], &[]] {
        let pack = repository.pack(arguments);
        let mut existing = Objects::of(&repository, "main");
        let ids: Vec<ObjectId> = existing.objects.keys().copied().collect();
        for id in ids.iter().step_by(ids.len() / 7) {
            let sound = existing.objects.insert(*id, (ObjectKind::Blob, vec![]));
            let (directory, outcome) = index(&pack, &existing, |_| ());
            let error = outcome.expect_err("it differs");
            assert_eq!(error.kind(), ErrorKind::Collision);
            assert_eq!(error.message(), format!("SHA1 COLLISION FOUND WITH {id} !"));
            assert!(paths(directory.path()).is_empty());
            existing.objects.extend(sound.map(|sound| (*id, sound)));
        }
    }
}
