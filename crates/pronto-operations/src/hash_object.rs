//! Computes object ids of files and other contents: `git hash-object`.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use bstr::BStr;
use gix_object::Kind as ObjectKind;
use pronto_hash::{Digester, ObjectId};
use pronto_index::Index;
use pronto_odb::Store;
use pronto_worktree::filter::{SafeCrlf, ToGit};

use crate::errors::from_worktree;
use crate::objects::from_odb;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result, attributes};
use pronto_repository::Notice;

/// The number of bytes of a stream that are held in memory.
const CHUNK_BYTES: usize = 128 << 10;

/// Hashes contents one after another, and optionally stores the objects.
pub struct ContentHasher<'a> {
    repository: &'a Repository,
    kind: ObjectKind,
    /// The store for the objects, if they are written.
    store: Option<&'a Store>,
    streamed_from: u64,
    /// The converter, created when the first content has to be converted. As in Git, attributes
    /// come from files only: the index is not read.
    converter: Option<ToGit>,
}

/// Returns a hasher of contents as objects of `kind` (`-t`). The objects are stored if `writes` is
/// true (`-w`).
///
/// # Errors
/// Fails if a setting is malformed, or the object store cannot be opened.
pub fn content_hasher(
    repository: &Repository,
    kind: ObjectKind,
    writes: bool,
) -> Result<ContentHasher<'_>> {
    support::require(repository, Operation::ReadAttributes)?;
    let files = crate::packs::indexer_options(repository.config(), repository.object_hash())?;
    Ok(ContentHasher {
        repository,
        kind,
        store: writes.then(|| repository.objects()).transpose()?,
        streamed_from: files.big_file_threshold_bytes,
        converter: None,
    })
}

impl ContentHasher<'_> {
    /// Returns the object id of a file. With a `path` (relative to the top of the worktree), the
    /// content is converted with the attributes of that path (`--path`). A large file that needs no
    /// conversion is streamed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, with [`ErrorKind::Object`] if the
    /// object cannot be stored, and with [`ErrorKind::Interrupted`] if the operation is
    /// interrupted. Also fails if the content cannot be converted.
    pub fn file(&mut self, file: &File, path: Option<&BStr>) -> Result<ObjectId> {
        let unreadable = |error: io::Error| Error::new(ErrorKind::Io, "cannot read").because(error);
        let metadata = file.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(Error::new(ErrorKind::Io, "is a directory"));
        }
        let path = path.filter(|_| self.kind == ObjectKind::Blob);
        let size = metadata.len();
        let is_large = metadata.is_file() && size > self.streamed_from;
        if is_large && self.keeps(path)? {
            return self.stream(size, &mut &*file);
        }
        let mut content = Vec::new();
        (&mut &*file)
            .read_to_end(&mut content)
            .map_err(unreadable)?;
        self.content(&content, path)
    }

    /// Returns the object id of `content`, converted with the attributes of `path` if there is one.
    ///
    /// # Errors
    /// Fails if the content cannot be converted, or the object cannot be stored.
    pub fn content(&mut self, content: &[u8], path: Option<&BStr>) -> Result<ObjectId> {
        let (kind, store) = (self.kind, self.store);
        let hash = self.repository.object_hash();
        let finish = |content: &[u8]| match store {
            Some(store) => store.write(kind, content).map_err(from_odb),
            None => {
                let header = gix_object::encode::loose_header(kind, content.len() as u64);
                pronto_hash::digest(hash, &[&header, content]).map_err(collided)
            }
        };
        let Some(path) = path.filter(|_| kind == ObjectKind::Blob) else {
            return finish(content);
        };
        let repository = self.repository;
        let converter = self.converter()?;
        let mut in_index = |_: &mut Vec<u8>| Ok(false);
        let converted = converter.convert(path, content, &mut in_index);
        let result = converted
            .map_err(from_worktree)
            .and_then(|content| finish(&content));
        for warning in converter.take_warnings() {
            repository.notify(Notice::Conversion(warning));
        }
        result
    }

    fn keeps(&mut self, path: Option<&BStr>) -> Result<bool> {
        match path {
            Some(path) => self.converter()?.keeps(path).map_err(from_worktree),
            None => Ok(true),
        }
    }

    fn converter(&mut self) -> Result<&mut ToGit> {
        if self.converter.is_none() {
            let repository = self.repository;
            let mut settings = repository.filter_settings()?;
            if self.store.is_none() {
                settings.safe_crlf = SafeCrlf::Ignore;
                settings.tolerates_encodings = true;
            }
            let index = Index::empty(repository.object_hash());
            let attributes = attributes::attributes_of_files(repository, &index)?;
            self.converter = Some(ToGit::new(attributes.stack(), Arc::new(settings)));
        }
        match &mut self.converter {
            Some(converter) => Ok(converter),
            None => unreachable!("it was just made"),
        }
    }

    fn stream(&self, size: u64, from: &mut dyn Read) -> Result<ObjectId> {
        if let Some(store) = self.store {
            let from = &mut from.take(size);
            return store.write_stream(self.kind, size, from).map_err(from_odb);
        }
        digest_stream(self.repository.object_hash(), self.kind, size, from)
            .map_err(|error| Error::new(ErrorKind::Io, "cannot read").because(error))
    }
}

impl std::fmt::Debug for ContentHasher<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ContentHasher").finish_non_exhaustive()
    }
}

/// Reads the blob of `path` in the index (for an unmerged path, our side) into `out`. Returns
/// whether there is one.
pub(crate) fn staged_blob(index: &Index, objects: &Store, path: &BStr, out: &mut Vec<u8>) -> bool {
    let at = index.find(path, 0).or_else(|_| index.find(path, 2));
    let found = at.map(|at| objects.find(index.entry(at).id, out));
    matches!(found, Ok(Ok(Some(ObjectKind::Blob))))
}

/// Returns the id of an object whose content is streamed.
pub(crate) fn digest_stream(
    hash: pronto_hash::Kind,
    kind: ObjectKind,
    size: u64,
    from: &mut dyn Read,
) -> io::Result<ObjectId> {
    let mut digester = Digester::new(hash);
    digester.update(&gix_object::encode::loose_header(kind, size));
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut rest = from.take(size);
    loop {
        match rest.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => digester.update(&chunk[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if rest.limit() > 0 {
        return Err(io::Error::other("short read"));
    }
    digester.finish().map_err(io::Error::other)
}

fn collided(collision: pronto_hash::Collision) -> Error {
    let message = "SHA-1 appears to be part of a collision attack";
    Error::new(ErrorKind::Object, message).because(collision)
}

/// Checks the format of `content` as an object of `kind`, with the checks of `git fsck --strict`.
///
/// # Errors
/// Fails with [`ErrorKind::Object`] if a check fails.
pub fn check_format(kind: ObjectKind, content: &[u8], hash: pronto_hash::Kind) -> Result<()> {
    let findings = pronto_storage::fsck::findings(kind, content, hash);
    if findings.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| format!("object fails fsck: {finding}"))
        .collect();
    let message = "refusing to create malformed object";
    Err(Error::new(ErrorKind::Object, message).reported_after(lines.join("\n")))
}
