//! Damaged files give an error or another valid index, never a panic.

use crate::support::{KINDS, Repository};
use pronto_hash::Kind;
use pronto_index::{ErrorKind, Index};

fn read_all(bytes: Vec<u8>, kind: Kind) -> Result<usize, pronto_index::Error> {
    let index = Index::from_bytes(bytes, kind)?;
    let mut bytes_seen = 0;
    for entry in index.iter() {
        bytes_seen += entry.path.len() + entry.id.as_bytes().len();
        let _ = index.find(entry.path, entry.stage());
        let _ = index.below(entry.path);
    }
    let _ = index.cached_tree();
    let _ = index.resolve_undo();
    let _ = index.fsmonitor();
    if let Some(cache) = index.untracked_cache() {
        let mut bytes = Vec::new();
        cache.encode(&mut bytes);
    }
    let _ = index.verify();
    let _ = pronto_index::IndexEdit::new(&index).content();
    Ok(bytes_seen)
}

fn sample(kind: Kind, version: &str) -> Vec<u8> {
    let repository = Repository::new(kind);
    for path in ["a", "b/c", "b/d/e"] {
        repository.write(path, path);
    }
    repository.git(&["add", "."]);
    repository.git(&["write-tree"]);
    repository.git(&["update-index", "--force-untracked-cache"]);
    repository.git(&[
        "-c",
        "index.threads=2",
        "update-index",
        "--index-version",
        version,
    ]);
    std::fs::read(repository.index_path()).expect("git wrote it")
}

#[test]
fn every_cut_and_every_changed_byte() {
    for kind in KINDS {
        for version in ["2", "4"] {
            let whole = sample(kind, version);
            read_all(whole.clone(), kind).expect("it is sound");
            for cut in 0..whole.len() {
                let _ = read_all(whole[..cut].to_vec(), kind);
            }
            for at in 0..whole.len() {
                for change in [0x00, 0xff, 0x80, 0x01] {
                    let mut broken = whole.clone();
                    broken[at] ^= change;
                    let _ = read_all(broken.clone(), kind);
                    broken[at] = change;
                    let _ = read_all(broken, kind);
                }
            }
        }
    }
}

fn with_extension(signature: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"DIRC\0\0\0\x02\0\0\0\0".to_vec();
    bytes.extend_from_slice(signature);
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes.extend_from_slice(&[0; 20]);
    bytes
}

#[test]
fn headers_and_extensions() {
    let message = |bytes: Vec<u8>| {
        let error = Index::from_bytes(bytes, Kind::Sha1).expect_err("it is broken");
        (error.kind(), error.message().to_owned())
    };
    assert_eq!(
        message(b"DIRC".to_vec()).1,
        "index file smaller than expected"
    );
    let mut bytes = with_extension(b"TREE", b"");
    bytes[3] = b'X';
    let before = |bytes: Vec<u8>| {
        let error = Index::from_bytes(bytes, Kind::Sha1).expect_err("it is broken");
        error.reported_before().map(str::to_owned)
    };
    assert_eq!(message(bytes.clone()).1, "index file corrupt");
    assert_eq!(
        before(bytes.clone()).as_deref(),
        Some("bad signature 0x44495258")
    );
    bytes[3] = b'C';
    bytes[7] = 5;
    assert_eq!(
        message(bytes.clone()),
        (ErrorKind::Unsupported, "index file corrupt".into())
    );
    assert_eq!(
        before(bytes.clone()).as_deref(),
        Some("bad index version 5")
    );
    bytes[7] = 2;
    bytes[8..12].fill(0xff);
    assert_eq!(message(bytes).0, ErrorKind::Corrupt);
    assert_eq!(
        message(with_extension(b"abcd", b"x")),
        (
            ErrorKind::Unsupported,
            "index uses abcd extension, which we do not understand".into()
        )
    );
    let index = Index::from_bytes(with_extension(b"ABCD", b"x"), Kind::Sha1).expect("optional");
    assert_eq!(index.ignored_extensions(), [*b"ABCD"]);
    for data in [
        &b""[..],
        b"\0",
        b"\x005 1\n",
        b"\0-1 99999999\n",
        b"\0-1 -1\n",
    ] {
        let index = Index::from_bytes(with_extension(b"TREE", data), Kind::Sha1).expect("sound");
        assert!(index.cached_tree().is_none());
    }
    let index = Index::from_bytes(with_extension(b"REUC", b"p\x008\0"), Kind::Sha1).expect("sound");
    assert!(index.resolve_undo().is_err());
    let index = Index::from_bytes(with_extension(b"FSMN", b"\0\0\0\x02t\0"), Kind::Sha1);
    assert!(index.expect("sound").fsmonitor().is_err());
}

#[test]
fn deep_trees_do_not_overflow() {
    let data = b"\0-1 1\n".repeat(1_000_000);
    let index = Index::from_bytes(with_extension(b"TREE", &data), Kind::Sha1).expect("sound");
    assert!(index.cached_tree().is_none());
}
