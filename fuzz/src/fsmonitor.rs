//! Fuzzes the index extension of a file system monitor (`FSMN`), in an index with some entries.

use pronto_hash::{Kind, ObjectId};
use pronto_index::{Entry, Flags, Index, IndexEdit, Stat, Writer, mode};
use std::sync::LazyLock;

const ENTRIES: usize = 130;

static INDEX: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let empty = Index::empty(Kind::Sha1);
    let mut edit = IndexEdit::new(&empty);
    for number in 0..ENTRIES {
        edit.set(Entry {
            path: format!("file{number}").into(),
            id: ObjectId::empty_blob(Kind::Sha1),
            mode: mode::FILE,
            flags: Flags::default(),
            stat: Stat::default(),
        });
    }
    let mut bytes = Writer::default()
        .encode(&edit.content())
        .expect("it is sound");
    bytes.truncate(bytes.len() - Kind::Sha1.len_in_bytes());
    bytes
});

pub(crate) fn run(data: &[u8]) {
    let mut bytes = INDEX.clone();
    bytes.extend_from_slice(b"FSMN");
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&[0; 20]);
    let index = Index::from_bytes(bytes, Kind::Sha1).expect("extensions are not parsed");
    let Ok(Some(fsmonitor)) = index.fsmonitor() else {
        return;
    };
    assert!(fsmonitor.dirty.iter().all(|at| at < ENTRIES));
    let mut edit = IndexEdit::new(&index);
    edit.set_fsmonitor(Some(&fsmonitor));
    let bytes = Writer::default()
        .encode(&edit.content())
        .expect("it is sound");
    let index = Index::from_bytes(bytes, Kind::Sha1).expect("it was encoded");
    let again = index.fsmonitor().expect("sound").expect("it is there");
    assert_eq!(again.token, fsmonitor.token);
    assert!(again.dirty.iter().eq(fsmonitor.dirty.iter()));
}
