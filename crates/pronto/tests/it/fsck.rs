//! Tests of fsck: arbitrary bytes result in findings, never in a panic.

use gix_object::Kind as ObjectKind;
use pronto::fsck::{FsckInspector, FsckSeverity, InspectionScope, Levels, Message};
use pronto_hash::{Kind, ObjectId, oid};
use pronto_pack::indexer::{IndexedObjects, Inspect};

/// A pack in which every object is this blob.
struct Only<'a>(&'a [u8]);

impl IndexedObjects for Only<'_> {
    fn kind(&self, _id: &oid) -> Option<ObjectKind> {
        Some(ObjectKind::Blob)
    }

    fn find(&self, _id: &oid, out: &mut Vec<u8>) -> Result<Option<ObjectKind>, pronto_pack::Error> {
        out.clear();
        out.extend_from_slice(self.0);
        Ok(Some(ObjectKind::Blob))
    }
}

/// Returns the findings of an object, and whether it is refused.
fn look(levels: &Levels, kind: ObjectKind, content: &[u8]) -> (Vec<String>, bool) {
    let scope = InspectionScope {
        objects: true,
        ..InspectionScope::default()
    };
    let inspector = FsckInspector::new(Kind::Sha1, levels, scope);
    let result = inspector.object(kind, &ObjectId::null(Kind::Sha1), content);
    let result = result.and_then(|()| inspector.complete(&Only(content)));
    let reports = inspector.take_reports();
    (
        reports
            .into_iter()
            .map(|report| report.to_string())
            .collect(),
        result.is_err(),
    )
}

/// Small objects of all checked types.
fn sound() -> Vec<(ObjectKind, Vec<u8>)> {
    let id = "0123456789012345678901234567890123456789";
    let me = "A U Thor <author@example.com> 1112911993 -0700";
    let commit = format!("tree {id}\nparent {id}\nauthor {me}\ncommitter {me}\n\nmessage\n");
    let tag = format!("object {id}\ntype commit\ntag v1\ntagger {me}\n\nmessage\n");
    let mut tree = Vec::new();
    for name in [
        "100644 .gitattributes",
        "100644 .gitmodules",
        "120000 a",
        "40000 a.b",
    ] {
        tree.extend_from_slice(name.as_bytes());
        tree.extend_from_slice(b"\0abcdefghijklmnopqrst");
    }
    vec![
        (ObjectKind::Commit, commit.into_bytes()),
        (ObjectKind::Tag, tag.into_bytes()),
        (ObjectKind::Tree, tree),
    ]
}

#[test]
fn sound_objects_are_accepted_and_broken_ones_never_panic() {
    let (strict, lax) = (Levels::strict(), Levels::default());
    let mut state = 7u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (kind, content) in sound() {
        if kind != ObjectKind::Tree {
            assert_eq!(look(&strict, kind, &content), (vec![], false), "{kind}");
        }
        for end in 0..content.len() {
            look(&strict, kind, &content[..end]);
        }
        for _ in 0..20_000 {
            let mut broken = content.clone();
            for _ in 0..=random(4) {
                let at = random(broken.len());
                let byte = b"\0 <>\n/\\.:~-+0g\xe2\x80\x8c\xff"[random(18)];
                match random(3) {
                    0 => broken[at] = byte,
                    1 => broken.insert(at, byte),
                    _ => {
                        broken.remove(at);
                    }
                }
            }
            look(&lax, kind, &broken);
        }
    }
}

#[test]
fn files_of_modules_never_panic() {
    let levels = Levels::default();
    let tree = [b"100644 .gitmodules\0".as_slice(), b"abcdefghijklmnopqrst"].concat();
    let modules = b"[submodule \"a/b\"]\n\tpath = a\n\turl = ../x%0a\n\tupdate = !x\n";
    for end in 0..modules.len() {
        let scope = InspectionScope {
            objects: true,
            ..InspectionScope::default()
        };
        let inspector = FsckInspector::new(Kind::Sha1, &levels, scope);
        let id = ObjectId::null(Kind::Sha1);
        inspector
            .object(ObjectKind::Tree, &id, &tree)
            .expect("the tree is sound");
        let refused = inspector.complete(&Only(&modules[..end])).is_err();
        assert!(!refused || end > 40, "{end}");
    }
}

#[test]
fn levels_are_what_was_said_last() {
    let mut levels = Levels::strict();
    assert_eq!(levels.of(Message::HasDot), FsckSeverity::Error);
    assert_eq!(Levels::default().of(Message::HasDot), FsckSeverity::Warn);
    levels
        .set_all("hasdot=ignore,BADDATE:warn| missingEmail=error".into())
        .expect("it is well formed");
    assert_eq!(levels.of(Message::HasDot), FsckSeverity::Ignore);
    assert_eq!(levels.of(Message::BadDate), FsckSeverity::Warn);
    for wrong in [
        "hasDot",
        "skiplist",
        "hasDot=x",
        "what=warn",
        "nulInHeader=warn",
    ] {
        assert!(levels.set_all(wrong.into()).is_err(), "{wrong}");
    }
    for message in Message::ALL {
        assert_eq!(Message::named(message.name().as_bytes()), Some(*message));
    }
}
