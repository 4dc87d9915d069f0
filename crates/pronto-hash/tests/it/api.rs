//! Tests that the digests equal published values and one another.

use pronto_hash::{DigestMessage, Digester, Kind, ObjectId, TrailerDigester, digest, digest_many};

fn id(hex: &str) -> ObjectId {
    ObjectId::from_hex(hex.as_bytes()).expect("a valid id")
}

#[test]
fn published_values() {
    let sha1 = id("a9993e364706816aba3e25717850c26c9cd0d89d");
    let sha256 = id("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for (kind, expected) in [(Kind::Sha1, sha1), (Kind::Sha256, sha256)] {
        assert_eq!(digest(kind, &[b"a", b"", b"bc"]), Ok(expected));
        let mut digester = Digester::new(kind);
        let mut trailer = TrailerDigester::new(kind);
        for byte in b"abc" {
            digester.update(&[*byte]);
            trailer.update(&[*byte]);
        }
        assert_eq!(digester.finish(), Ok(expected));
        assert_eq!(trailer.finish(), expected);
    }
}

#[test]
fn results_are_appended_in_order() {
    let mut ids = Vec::new();
    digest_many(Kind::Sha1, &[], &mut ids);
    assert!(ids.is_empty());
    digest_many(
        Kind::Sha1,
        &[DigestMessage {
            header: b"tree 0\0",
            body: b"",
        }],
        &mut ids,
    );
    digest_many(
        Kind::Sha256,
        &[
            DigestMessage {
                header: b"blob 3\0",
                body: b"abc",
            },
            DigestMessage {
                header: b"",
                body: b"abc",
            },
        ],
        &mut ids,
    );
    assert_eq!(ids.len(), 3);
    assert_eq!(ids[0], Ok(ObjectId::empty_tree(Kind::Sha1)));
    assert_eq!(ids[1], digest(Kind::Sha256, &[b"blob 3\0abc"]));
    assert_eq!(ids[2], digest(Kind::Sha256, &[b"abc"]));
}
