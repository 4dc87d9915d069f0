//! Fuzzes a segment that a peer sends: a pack that may be thin, in which only some objects are
//! permitted as bases, with the limits for peers.

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId, TrailerDigester, oid};
use pronto_pack::Error;
use pronto_pack::indexer::{ExistingObjects, IndexContext, Options, index_stream};

const BASE: &[u8] = b"something that both sides have, and that deltas build on\n";

/// A single permitted base blob, or no base.
struct OneBase(Option<ObjectId>);

impl ExistingObjects for OneBase {
    fn contains_batch(&self, ids: &[ObjectId], found: &mut Vec<usize>) -> Result<(), Error> {
        found.extend((0..ids.len()).filter(|at| Some(ids[*at]) == self.0));
        Ok(())
    }

    fn find(&self, id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, Error> {
        if self.0.as_deref() != Some(id) {
            return Ok(None);
        }
        out.clear();
        out.extend_from_slice(BASE);
        Ok(Some(ObjectKind::Blob))
    }
}

pub(crate) fn run(data: &[u8]) {
    let header = gix_object::encode::loose_header(ObjectKind::Blob, BASE.len() as u64);
    let base = pronto_hash::digest(Kind::Sha1, &[&header, BASE]).expect("an id");
    let mut pack = b"PACK\0\0\0\x02\0\0\0".to_vec();
    pack.extend_from_slice(data);
    // The fuzzer cannot guess ids, so a mark in the input is replaced by the id of the base.
    let mark = [0xba; 20];
    let mut at = 12;
    while at + mark.len() <= pack.len() {
        if pack[at..at + mark.len()] == mark {
            pack[at..at + mark.len()].copy_from_slice(base.as_slice());
        }
        at += 1;
    }
    let mut digester = TrailerDigester::new(Kind::Sha1);
    digester.update(&pack);
    pack.extend_from_slice(digester.finish().as_slice());
    let directory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let mut options = Options::default();
    options.threads = 1;
    options.sync = pronto_io::sync::SyncMethod::No;
    options.must_end = true;
    options.fix_thin = true;
    options.forbid_duplicates = true;
    options.max_input_size_bytes = Some(64 << 20);
    options.max_object_size_bytes = Some(1 << 20);
    options.big_file_threshold_bytes = 1 << 16;
    let context = IndexContext {
        existing: Some(&OneBase(None)),
        bases: Some(&OneBase(Some(base))),
        ..IndexContext::default()
    };
    if let Ok(outcome) = index_stream(&mut &pack[..], directory.path(), &options, &context) {
        assert!(outcome.added <= 1);
    }
}
