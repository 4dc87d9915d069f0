//! Threads that read ahead in the input: they change only the duration.

use test_support::Random;

use super::support::{Maker, Repository, delta, files, id_of, paths};
use gix_object::Kind as ObjectKind;
use pronto_hash::Kind;
use pronto_pack::Error;
use pronto_pack::entry::EntryHeader;
use pronto_pack::indexer::{IndexContext, Options, index_stream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tempfile::TempDir;

const BLOB: EntryHeader = EntryHeader::Object(ObjectKind::Blob);

fn noise(random: &mut Random, len: usize) -> Vec<u8> {
    (0..len).map(|_| random.below(256) as u8).collect()
}

/// A pack of many segments with entries of all kinds: some are larger than a batch or a segment,
/// some are far from their base, and some blobs look like packs.
fn large() -> Vec<u8> {
    let mut random = Random::new(9);
    let mut inner = Maker::new(200);
    for number in 0..200 {
        inner.blob(format!("entry {number} of a pack that is a blob").as_bytes());
    }
    let inner = inner.finish().repeat(40);
    let stored = sirocco::compress(sirocco::Format::Zlib, sirocco::deflate::Level::NONE, &inner);
    let count = 6000;
    let mut maker = Maker::new(count);
    let base = noise(&mut random, 100);
    for number in 0..count {
        match number {
            0 => maker.blob(&base),
            1000 | 3000 => maker.blob(&noise(&mut random, 700_000)),
            2000 | 4000 | 4001 => maker.raw(BLOB, inner.len() as u64, &stored),
            _ if number % 3 == 0 => {
                let delta = delta(100, format!("delta {number}").as_bytes());
                let distance = maker.bytes.len() as u64 - maker.offsets[0];
                maker.entry(
                    EntryHeader::OffsetDelta { distance },
                    delta.len() as u64,
                    &delta,
                );
            }
            _ if number % 100 == 1 => {
                let delta = delta(100, format!("delta by id {number}").as_bytes());
                let base = id_of(ObjectKind::Blob, &base);
                maker.entry(EntryHeader::RefDelta { base }, delta.len() as u64, &delta);
            }
            _ => {
                let len = random.below(3000) as usize;
                maker.blob(&noise(&mut random, len));
            }
        }
    }
    maker.finish()
}

fn index(
    pack: &[u8],
    threads: usize,
    context: &IndexContext<'_>,
) -> (TempDir, Result<Vec<u8>, Error>) {
    let directory = TempDir::new().expect("a temporary directory");
    let mut options = Options::default();
    options.threads = threads;
    options.sync = pronto_io::sync::SyncMethod::No;
    let outcome = index_stream(&mut &pack[..], directory.path(), &options, context);
    (directory, outcome.map(|outcome| outcome.leftover))
}

#[test]
fn looking_ahead_changes_nothing() {
    let mut pack = large();
    let expected = Repository::empty(Kind::Sha1).index_with_git(&pack, &[]);
    pack.extend_from_slice(b"and more");
    let asked = AtomicU32::new(0);
    let now_and_then = || asked.fetch_add(1, Relaxed) % 5 < 2;
    for threads in [2, 3, 9] {
        for ready in [&(|| true) as &(dyn Fn() -> bool + Sync), &now_and_then] {
            let context = IndexContext {
                ready: Some(ready),
                ..IndexContext::default()
            };
            let (directory, leftover) = index(&pack, threads, &context);
            assert_eq!(leftover.expect("the pack is sound"), b"and more");
            assert!(files(directory.path()) == expected, "{threads} threads");
        }
    }
    assert!(asked.into_inner() > 20);
}

#[test]
fn damage_is_found_where_it_is() {
    let pack = large();
    let context = IndexContext {
        ready: Some(&|| true),
        ..IndexContext::default()
    };
    let mut random = Random::new(3);
    for _ in 0..30 {
        let mut broken = pack.clone();
        let at = random.below(pack.len() as u64) as usize;
        match random.below(4) {
            0 => broken.truncate(at),
            _ => broken[at] ^= 1 << random.below(8),
        }
        let (_, expected) = index(&broken, 1, &IndexContext::default());
        let (directory, found) = index(&broken, 3, &context);
        let (expected, found) = (expected.expect_err("broken"), found.expect_err("broken"));
        assert_eq!(found.to_string(), expected.to_string(), "byte {at}");
        assert!(paths(directory.path()).is_empty(), "nothing may stay");
    }
}
