//! Reads objects and files that are compared.

use super::conversion::Converter;
use crate::path;
use bstr::BStr;
use pronto_hash::{ObjectId, oid};
use pronto_io::dir::Directory;
use pronto_io::untrusted;
use pronto_odb::Store;
use pronto_worktree::diff::Side;
use pronto_worktree::status::{Conversion, digest_file};

/// Puts the tree `id` into `content`.
pub(crate) fn read_tree(
    store: &Store,
    id: &oid,
    content: &mut Vec<u8>,
) -> Result<(), pronto_worktree::Error> {
    use pronto_worktree::ErrorKind as Kind;
    if *id == *ObjectId::empty_tree(id.kind()) {
        content.clear();
        return Ok(());
    }
    match store.find(id, content) {
        Ok(Some(gix_object::Kind::Tree)) => Ok(()),
        Ok(_) => Err(pronto_worktree::Error::new(
            Kind::MissingObject,
            format!("unable to read tree ({id})"),
        )),
        Err(error) => Err(error.map_kind(|_| Kind::CorruptObject)),
    }
}

/// Contents of objects and files, for renames.
pub(crate) struct Contents<'a> {
    pub(crate) store: &'a Store,
    pub(crate) root: &'a Directory,
    pub(crate) converter: &'a Converter<'a>,
}

impl Contents<'_> {
    /// The object that the file would be stored as, or null.
    pub(crate) fn id(&self, path: &BStr, kind: pronto_hash::Kind) -> ObjectId {
        let (directory, name) = path::split(path);
        let digest = || {
            let directory = self.root.open_beneath(directory)?;
            let metadata = directory.metadata(name)?;
            let how = (self.converter as &dyn Conversion, kind);
            digest_file((&directory, name), &metadata, (path, &kind.null()), how)
        };
        digest().unwrap_or(kind.null())
    }

    /// The content of `side`: of the object, or of the file as it would be stored.
    pub(crate) fn read(&self, path: &BStr, side: &Side) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        if matches!(self.store.find(&side.id, &mut content), Ok(Some(_))) {
            return Some(content);
        }
        let (directory, name) = path::split(path);
        let file = self
            .root
            .open_beneath(directory)
            .ok()?
            .open_file(name)
            .ok()?;
        content = untrusted::read_open(&file, u64::MAX).ok()?;
        self.converter.to_git(path, content, &side.id).ok()
    }
}
