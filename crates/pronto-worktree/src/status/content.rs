//! Compares the content of a file with its entry.

use bstr::BStr;
use pronto_hash::{Digester, Kind, ObjectId, oid};
use pronto_io::dir::{Directory, Metadata};
use std::io::{self, Read};

/// From the contents of a file to those of a blob, as `.gitattributes` and configuration want.
pub trait Conversion: Sync {
    /// Whether the file at `path` is stored as it is.
    fn is_identity(&self, path: &BStr) -> bool;

    /// Returns the id under which `content` of the file at `path` would be stored. `staged` is the
    /// id in the index (null without an entry).
    ///
    /// # Errors
    /// What keeps it from being converted.
    fn to_git(&self, path: &BStr, content: Vec<u8>, staged: &oid) -> io::Result<Vec<u8>>;
}

/// Every file is stored as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unconverted;

impl Conversion for Unconverted {
    fn is_identity(&self, _path: &BStr) -> bool {
        true
    }

    fn to_git(&self, _path: &BStr, content: Vec<u8>, _staged: &oid) -> io::Result<Vec<u8>> {
        Ok(content)
    }
}

/// Bytes of a file that are read and digested at a time.
const CHUNK_BYTES: usize = 128 * 1024;

/// A file that is to be digested.
#[derive(Clone, Copy, Debug)]
pub struct FileToDigest<'a> {
    /// Its directory.
    pub directory: &'a Directory,
    /// Its name there.
    pub name: &'a [u8],
    /// Its metadata.
    pub metadata: &'a Metadata,
    /// Its path from the top of the worktree.
    pub path: &'a BStr,
    /// The object in the index, null if there is none.
    pub staged: &'a oid,
}

/// The id of the blob that `file` would be stored as. Links are stored as their target.
///
/// # Errors
/// Those of reading and converting; `InvalidData` if the file changed meanwhile.
pub fn digest_file(
    file: &FileToDigest<'_>,
    conversion: &dyn Conversion,
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
