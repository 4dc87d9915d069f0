//! Fuzzes `.gitmodules` as `git status` reads it and as `git fsck` checks it.

use gix_object::Kind as ObjectKind;
use pronto::fsck::{FsckInspector, InspectionScope, Levels};
use pronto::gitmodules::{Gitmodules, is_safe_name};
use pronto_hash::{Kind, ObjectId};
use pronto_pack::indexer::{IndexedObjects, Inspect};

/// A pack in which every object is the same blob.
struct GitmodulesPack<'a>(&'a [u8]);

impl IndexedObjects for GitmodulesPack<'_> {
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

pub(crate) fn run(content: &[u8]) {
    if let Ok(modules) = Gitmodules::parse(content.to_vec()) {
        for name in modules.names() {
            assert!(is_safe_name(name));
            for variable in ["path", "url", "ignore", "update", "branch"] {
                let _ = modules.value(name, variable);
            }
        }
    }
    let levels = Levels::default();
    let scope = InspectionScope {
        objects: true,
        links: true,
        ..InspectionScope::default()
    };
    let inspector = FsckInspector::new(Kind::Sha1, &levels, scope);
    let tree = b"100644 .gitmodules\0bbbbbbbbbbbbbbbbbbbb";
    let _ = inspector.object(ObjectKind::Tree, &ObjectId::null(Kind::Sha1), tree);
    let _ = inspector.complete(&GitmodulesPack(content));
}
