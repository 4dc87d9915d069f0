//! Tests of writing and reading manifests, and of malformed ones.

use super::*;

fn id(byte: u8) -> ObjectId {
    ObjectId::from_bytes_or_panic(&[byte; 20])
}

fn object(byte: u8) -> Digest {
    Digest::of(&[byte])
}

pub(super) fn sample() -> Manifest {
    let file = |kind| StoredFile {
        kind,
        size_bytes: 1234,
        digest: object(1),
    };
    let pack = |upload, is_promisor| StoredPack {
        id: id(upload),
        upload: UploadId(upload.into()),
        objects: 12,
        is_promisor,
        files: [FileKind::Pack, FileKind::Index, FileKind::Sums]
            .map(file)
            .to_vec(),
    };
    Manifest {
        repository: Nonce([7; 16]),
        number: 42,
        replaces: Some(object(2)),
        writer: 9,
        nonce: Nonce([3; 16]),
        time_ms: 1_795_674_312_345,
        hash: Kind::Sha1,
        policy: RetentionPolicy::default(),
        dropped: 37,
        pruned: 12,
        is_removed: false,
        config: Bytes::from_static(b"[core]\n\tbare = true\n"),
        packs: vec![pack(1, false), pack(2, true)],
        layers: vec![RepositoryLayer {
            kind: LayerKind::Graph,
            id: id(4),
            upload: UploadId(5),
            size_bytes: 77,
            digest: object(6),
        }],
        tables: vec![
            TableRecord {
                min: 1,
                max: 10,
                upload: UploadId(8),
                place: TableStorage::Object {
                    size_bytes: 400,
                    digest: object(8),
                },
            },
            TableRecord {
                min: 11,
                max: 11,
                upload: UploadId(9),
                place: TableStorage::Inline(Bytes::from_static(b"any\n\0bytes\n")),
            },
        ],
        drops: vec!["pack/a-1.idx".into(), "pack/a-1.pack".into()],
    }
}

#[test]
fn what_is_written_is_read() {
    let mut manifest = sample();
    let bytes = manifest.encode().expect("it fits");
    assert_eq!(Manifest::decode(&bytes).expect("it is one"), manifest);
    let names: Vec<String> = manifest.objects().map(|object| object.name).collect();
    assert_eq!(names.len(), 2 * 3 + 1 + 1);
    assert!(names.iter().all(|name| name::is_content(name)), "{names:?}");
    assert_eq!(manifest.next_update_index(), 12);
    manifest.number = 1;
    assert!(manifest.encode().is_err(), "the first one replaces nothing");
    manifest.replaces = None;
    manifest.dropped = 0;
    assert!(manifest.encode().is_err(), "objects of later ones are gone");
    manifest.pruned = 1;
    manifest.drops.clear();
    let bytes = manifest.encode().expect("it fits");
    assert_eq!(Manifest::decode(&bytes).expect("it is one"), manifest);
}

#[test]
fn any_changed_or_missing_byte_is_noticed() {
    let bytes = sample().encode().expect("it fits");
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1;
        let read = Manifest::decode(&changed.into());
        let error = read.expect_err("a changed byte");
        assert!(
            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
            "{at}"
        );
        assert!(Manifest::decode(&bytes.slice(..at)).is_err(), "{at}");
    }
}

/// Manifests with a valid checksum that were not written by this program.
#[test]
fn malformed_manifests_are_errors() {
    let bytes = sample().encode().expect("it fits");
    let text = String::from_utf8(bytes.to_vec()).expect("text");
    let (body, _) = text.split_once("checksum ").expect("a last line");
    let decode = |body: String| {
        let digest = Digest::of(body.as_bytes());
        Manifest::decode(&format!("{body}checksum {digest}\n").into())
    };
    decode(body.to_owned()).expect("unchanged");
    for (from, to) in [
        ("number 42", "number 042"),
        ("number 42", "number 0"),
        ("number 42", "number 37"),
        ("dropped 37", "dropped 42"),
        ("hash sha1", "hash md5"),
        ("hash sha1", "hash sha256"),
        ("config 20", "config 21"),
        ("config 20", "config 99999999999"),
        ("grace 86400", "grace 3599"),
        ("retention 604800", "retention 86399"),
        ("inline 11 11", "inline 10 11"),
        ("inline 11 11", "inline 12 11"),
        ("drop pack/a-1.idx", "drop ../a-1.idx"),
        ("drop pack/a-1.idx", "drop pack/z-1.idx"),
        ("file pack", "file pakc"),
        ("file idx", "file pack"),
        (" 12 promisor", " 4294967296 promisor"),
        (" 12 promisor", " 12  promisor"),
        ("layer graph", "layer gravy"),
        ("time ", "time -"),
    ] {
        assert!(body.contains(from), "{from}");
        let read = decode(body.replacen(from, to, 1));
        let error = read.expect_err(to);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{to}");
    }
}

#[test]
fn what_a_generation_drops_is_what_it_has_no_longer() {
    let before = sample();
    let mut after = before.clone();
    after.number = 43;
    after.drop_of(&before);
    assert_eq!((after.dropped, after.drops.len()), (42, 0));
    let mut last = after.clone();
    last.number = 44;
    last.packs.remove(0);
    last.drop_of(&after);
    assert_eq!((last.dropped, last.drops.len()), (42, 3));
}
