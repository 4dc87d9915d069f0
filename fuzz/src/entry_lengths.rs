//! Fuzzes the recorded lengths of index entries (`index.pronto`), with a valid checksum.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pronto_hash::Kind;
use pronto_index::Index;

/// The number of entries: enough for a file beside the index.
const ENTRIES: u32 = 4096;

/// An index, and the file beside it.
struct FuzzIndex {
    index: PathBuf,
    kept: Vec<u8>,
}

fn beside(index: &Path) -> PathBuf {
    index.with_file_name("index.pronto")
}

fn made() -> &'static FuzzIndex {
    static MADE: OnceLock<FuzzIndex> = OnceLock::new();
    MADE.get_or_init(|| {
        let directory = std::env::temp_dir().join(format!("lengths-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let mut bytes = Vec::from(*b"DIRC\0\0\0\x02");
        bytes.extend_from_slice(&ENTRIES.to_be_bytes());
        for number in 0..ENTRIES {
            let name = format!("d{:02}/{number:04}", number / 64);
            let start = bytes.len();
            bytes.resize(start + 60, 0);
            bytes.extend_from_slice(&(name.len() as u16).to_be_bytes());
            bytes.extend_from_slice(name.as_bytes());
            bytes.resize(start + ((62 + name.len() + 8) & !7), 0);
        }
        bytes.resize(bytes.len() + 20, 0);
        let index = directory.join("index");
        std::fs::write(&index, bytes).expect("a file");
        Index::open(&index, Kind::Sha1)
            .expect("it is sound")
            .keep_lengths();
        let kept = std::fs::read(beside(&index)).expect("it is kept");
        FuzzIndex { index, kept }
    })
}

pub(crate) fn run(data: &[u8]) {
    let FuzzIndex { index, kept } = made();
    let mut bytes = kept.clone();
    let from = bytes.len() - 4 - ENTRIES as usize;
    for (at, byte) in data.iter().take(ENTRIES as usize).enumerate() {
        // Most inputs are the valid lengths with small changes.
        bytes[from + at] = bytes[from + at].wrapping_add(*byte);
    }
    let end = bytes.len() - 4;
    let crc = crc32fast::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(beside(index), bytes).expect("a file");
    let opened = Index::open(index, Kind::Sha1).expect("the index itself is sound");
    for number in 0..opened.len() {
        let _ = opened.entry(number);
        let _ = opened.c_path(number, 1);
        let _ = opened.plain(number, 0);
    }
    let _ = opened.find("d07/0450".into(), 0);
    let _ = opened.cached_tree();
}
