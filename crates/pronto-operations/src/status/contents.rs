//! Reads the contents of objects and files for comparisons.

use super::conversion::Converter;
use crate::path;
use bstr::BStr;
use pronto_diff::DifferenceSide;
use pronto_hash::ObjectId;
use pronto_io::dir::Directory;
use pronto_io::untrusted;
use pronto_odb::Store;
use pronto_worktree::status::ToBlob as _;
use pronto_worktree::status::{FileToDigest, digest_file};

/// Reads contents of objects and files for the detection of renames.
pub(crate) struct RenameContents<'a> {
    pub(crate) store: &'a Store,
    pub(crate) root: &'a Directory,
    pub(crate) converter: &'a Converter<'a>,
}

impl RenameContents<'_> {
    /// Returns the object id of the converted file, or the null id if the file cannot be read.
    pub(crate) fn id(&self, path: &BStr, kind: pronto_hash::Kind) -> ObjectId {
        let (directory, name) = path::split(path);
        let digest = || {
            let directory = self.root.open_beneath(directory)?;
            let metadata = directory.metadata(name)?;
            let file = FileToDigest {
                directory: &directory,
                name,
                metadata: &metadata,
                path,
                staged: &kind.null(),
            };
            digest_file(&file, self.converter, kind)
        };
        digest().unwrap_or(kind.null())
    }

    /// Returns the content of `side`: the object, or the converted file.
    pub(crate) fn read(&self, path: &BStr, side: &DifferenceSide) -> Option<Vec<u8>> {
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
