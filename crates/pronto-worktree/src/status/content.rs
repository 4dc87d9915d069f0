//! Compares the content of a file with its entry.

use bstr::BStr;
use pronto_hash::{Digester, Kind, ObjectId, oid};
use pronto_io::dir::{Directory, Metadata};
use std::io::{self, Read};

/// The conversion of file contents to those of blobs, according to `.gitattributes` and configuration.
pub trait ToBlob: Sync {
    /// Returns whether the file at `path` is stored unchanged.
    fn is_identity(&self, path: &BStr) -> bool;

    /// Returns the content of the blob for `content` of the file at `path`. `staged` is the id in the
    /// index (null without an entry).
    ///
    /// # Errors
    /// Fails if the content cannot be converted.
    fn to_git(&self, path: &BStr, content: Vec<u8>, staged: &oid) -> io::Result<Vec<u8>>;
}

/// A conversion that stores every file unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unconverted;

impl ToBlob for Unconverted {
    fn is_identity(&self, _path: &BStr) -> bool {
        true
    }

    fn to_git(&self, _path: &BStr, content: Vec<u8>, _staged: &oid) -> io::Result<Vec<u8>> {
        Ok(content)
    }
}

/// The number of bytes of a file that are read and digested at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// A file whose blob id is computed.
#[derive(Clone, Copy, Debug)]
pub struct FileToDigest<'a> {
    /// The directory of the file.
    pub directory: &'a Directory,
    /// The name of the file in its directory.
    pub name: &'a [u8],
    /// The metadata of the file.
    pub metadata: &'a Metadata,
    /// The path of the file from the top of the worktree.
    pub path: &'a BStr,
    /// The object id in the index; null without an entry.
    pub staged: &'a oid,
}

/// Computes the id of the blob as which `file` would be stored. A symbolic link is stored as its
/// target.
///
/// # Errors
/// Fails if the file cannot be read or converted, and with `InvalidData` if its size changed in the
/// meantime.
pub fn digest_file(
    file: &FileToDigest<'_>,
    conversion: &dyn ToBlob,
    kind: Kind,
) -> io::Result<ObjectId> {
    let FileToDigest {
        directory,
        name,
        metadata,
        path,
        staged,
    } = *file;
    if metadata.is_symlink() {
        return digest_blob(&directory.read_link(name)?, kind);
    }
    let mut file = directory.open_file(name)?;
    if !conversion.is_identity(path) {
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        return digest_blob(&conversion.to_git(path, content, staged)?, kind);
    }
    let size = metadata.size_bytes;
    let mut digester = Digester::new(kind);
    digester.update(format!("blob {size}\0").as_bytes());
    let room = usize::try_from(size)
        .unwrap_or(CHUNK_BYTES)
        .saturating_add(1);
    let mut chunk = vec![0; room.min(CHUNK_BYTES)];
    let mut total = 0u64;
    loop {
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                digester.update(&chunk[..count]);
                total += count as u64;
                if total == size && count < chunk.len() {
                    break;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    if total != size {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "file changed while it was read",
        ));
    }
    digester
        .finish()
        .map_err(|collision| io::Error::other(format!("{collision:?}")))
}

fn digest_blob(content: &[u8], kind: Kind) -> io::Result<ObjectId> {
    let header = format!("blob {}\0", content.len());
    pronto_hash::digest(kind, &[header.as_bytes(), content])
        .map_err(|collision| io::Error::other(format!("{collision:?}")))
}
