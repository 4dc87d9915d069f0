//! Fuzzes an object of any type, checked as by `git fsck`. The first byte selects the type.

use gix_object::Kind as ObjectKind;
use pronto::fsck::{FsckInspector, InspectionScope, Levels};
use pronto_hash::{Kind, ObjectId};
use pronto_pack::indexer::{IndexedObjects, Inspect};

/// A pack in which every object is the same blob.
struct ObjectPack<'a>(&'a [u8]);

impl IndexedObjects for ObjectPack<'_> {
    fn kind(&self, _id: &pronto_hash::oid) -> Option<ObjectKind> {
        Some(ObjectKind::Blob)
    }

    fn find(
        &self,
        _id: &pronto_hash::oid,
        out: &mut Vec<u8>,
    ) -> Result<Option<ObjectKind>, pronto_pack::Error> {
        out.clear();
        out.extend_from_slice(self.0);
        Ok(Some(ObjectKind::Blob))
    }
}

pub(crate) fn run(data: &[u8]) {
    let Some((first, content)) = data.split_first() else {
        return;
    };
    let levels = Levels::default();
    let scope = InspectionScope {
        objects: true,
        links: true,
        ..InspectionScope::default()
    };
    let inspector = FsckInspector::new(Kind::Sha1, &levels, scope);
    let id = ObjectId::null(Kind::Sha1);
    let kind = match first % 4 {
        0 => ObjectKind::Commit,
        1 => ObjectKind::Tag,
        2 => ObjectKind::Tree,
        // The checks of a blob depend on the name under which a tree refers to it.
        _ => {
            let mut tree = b"100644 .gitattributes\0aaaaaaaaaaaaaaaaaaaa".to_vec();
            tree.extend_from_slice(b"100644 .gitmodules\0bbbbbbbbbbbbbbbbbbbb");
            let _ = inspector.object(ObjectKind::Tree, &id, &tree);
            let _ = inspector.complete(&ObjectPack(content));
            return;
        }
    };
    let _ = inspector.object(kind, &id, content);
    let _ = inspector.complete(&ObjectPack(content));
}
