//! Uploading packs, and reading objects with their digests.

use std::fs::File as DiskFile;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;

use crate::backend::Backend;
use crate::bucket::{Bucket as _, Content};
use crate::change::Uploaded;
use crate::clock::Clock as _;
use crate::digest::{BLOCK_BYTES, Digest, Digester, Digests};
use crate::manifest::{File, FileKind, Layer, LayerKind, Object, Pack};
use crate::name::{self, UploadId};
use crate::repository::Repository;
use crate::{Error, ErrorKind, Result};

/// The number of bytes that are read from the store at once.
const PART_BYTES: u64 = 8 << 20;

/// The number of objects that are written or read at the same time.
pub(crate) const AT_ONCE: usize = 8;

/// A file that is to be uploaded.
#[derive(Clone, Debug)]
pub struct NewFile {
    kind: FileKind,
    content: Content,
    digests: Digests,
}

impl NewFile {
    /// Takes the bytes of a file.
    pub fn from_bytes(kind: FileKind, bytes: Bytes) -> Self {
        let mut digester = Digester::default();
        digester.update(&bytes);
        NewFile {
            kind,
            content: Content::Bytes(bytes),
            digests: digester.finish(),
        }
    }

    /// Takes a file of this machine, which must not change, and reads it once.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn from_path(kind: FileKind, path: &Path) -> Result<Self> {
        let (content, digests) = read_digests(path)?;
        Ok(NewFile {
            kind,
            content,
            digests,
        })
    }

    /// Returns the kind.
    pub fn kind(&self) -> FileKind {
        self.kind
    }
}

/// Reads a file of this machine once, for its digests.
fn read_digests(path: &Path) -> Result<(Content, Digests)> {
    let mut file = DiskFile::open(path).context(ErrorKind::Io, "cannot open", path)?;
    let mut digester = Digester::default();
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        let read = file.read(&mut buffer);
        match read.context(ErrorKind::Io, "cannot read", path)? {
            0 => break,
            len => digester.update(&buffer[..len]),
        }
    }
    Ok((Content::File(path.to_owned()), digester.finish()))
}

/// A pack that is to be uploaded.
#[derive(Clone, Debug)]
pub struct NewPack {
    /// The checksum in its name.
    pub id: ObjectId,
    /// The number of objects.
    pub objects: u32,
    /// Whether it was received from a promisor remote.
    pub is_promisor: bool,
    /// The files, with pack and index at least.
    pub files: Vec<NewFile>,
}

impl NewPack {
    /// Returns the record of the manifest, and the files with their names.
    fn plan(&self, upload: UploadId) -> (Pack, Vec<(String, Content)>) {
        let mut files = self.files.clone();
        let pack = files.iter().find(|file| file.kind == FileKind::Pack);
        let sums = pack.map(|file| Bytes::from(file.digests.blocks.clone()));
        files.extend(sums.map(|bytes| NewFile::from_bytes(FileKind::Sums, bytes)));
        files.sort_unstable_by_key(|file| file.kind);
        let record = |file: &NewFile| File {
            kind: file.kind,
            size_bytes: file.digests.len,
            digest: file.digests.whole,
        };
        let pack = Pack {
            id: self.id,
            upload,
            objects: self.objects,
            is_promisor: self.is_promisor,
            files: files.iter().map(record).collect(),
        };
        let contents = files.into_iter().map(|file| {
            let name = name::pack(&self.id, upload, file.kind.extension());
            (name, file.content)
        });
        (pack, contents.collect())
    }
}

impl<B: Backend> Repository<B> {
    /// Writes the files of a pack. Nothing refers to them before a commit. One round trip.
    ///
    /// # Errors
    /// Those of the store; the files cannot be read.
    pub async fn upload(&self, pack: &NewPack) -> Result<Uploaded> {
        let (record, contents) = pack.plan(self.upload_id());
        let begun = self.backend.clock().now();
        self.write(contents).await?;
        Ok(Uploaded {
            pack: record,
            begun,
        })
    }

    /// Writes a file as a layer. Nothing refers to it before a commit.
    pub(crate) async fn upload_layer(
        &self,
        kind: LayerKind,
        id: ObjectId,
        path: &Path,
    ) -> Result<Layer> {
        let (content, digests) = read_digests(path)?;
        let layer = Layer {
            kind,
            id,
            upload: self.upload_id(),
            size_bytes: digests.len,
            digest: digests.whole,
        };
        self.write(vec![(layer.object().name, content)]).await?;
        Ok(layer)
    }

    /// For the simulation: returns a pack as if it were uploaded, and its files.
    #[cfg(test)]
    pub(crate) fn pretend(&self, pack: &NewPack) -> (Uploaded, Vec<(String, Content)>) {
        let (pack, contents) = pack.plan(self.upload_id());
        let begun = self.backend.clock().now();
        (Uploaded { pack, begun }, contents)
    }

    /// Writes objects, several at once.
    pub(crate) async fn write(&self, contents: Vec<(String, Content)>) -> Result<()> {
        let calls = contents.into_iter().map(|(name, content)| async move {
            let name = format!("{}{name}", self.prefix);
            self.persist(|| self.backend.bucket().put(&name, &content))
                .await
        });
        let mut calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        while calls.try_next().await?.is_some() {}
        Ok(())
    }

    /// Reads an object, gives its bytes to `sink` in order, and compares size and digest. The bytes are
    /// not to be used if this fails.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::Corrupt`]; those of `sink` and of the store.
    pub async fn read_object(
        &self,
        object: &Object,
        mut sink: impl FnMut(&[u8]) -> Result<()> + Send,
    ) -> Result<()> {
        let name = format!("{}{}", self.prefix, object.name);
        let mut digester = Digester::default();
        let mut at = 0;
        loop {
            let len = PART_BYTES.min(object.size_bytes - at);
            let read = || self.backend.bucket().get_range(&name, at, len);
            let Some(bytes) = self.persist(read).await? else {
                return Err(self.missing(&name));
            };
            if bytes.len() as u64 != len {
                let message = format!(
                    "object has {} bytes instead of {}",
                    at + bytes.len() as u64,
                    object.size_bytes
                );
                return Err(Error::new(ErrorKind::Corrupt, message).at_path(name));
            }
            digester.update(&bytes);
            sink(&bytes)?;
            at += len;
            if at == object.size_bytes {
                break;
            }
        }
        check_digest(&name, digester.finish().whole, object.digest)
    }

    /// Returns the bytes of an object of at most `most` bytes.
    ///
    /// # Errors
    /// As for [`read_object`](Self::read_object).
    pub async fn object(&self, object: &Object, most: u64) -> Result<Vec<u8>> {
        if object.size_bytes > most {
            let message = format!("object of {} bytes is too large", object.size_bytes);
            return Err(Error::new(ErrorKind::Unsupported, message).at_path(&object.name));
        }
        let mut all = Vec::new();
        let sink = |bytes: &[u8]| {
            all.extend_from_slice(bytes);
            Ok(())
        };
        self.read_object(object, sink).await?;
        Ok(all)
    }

    fn missing(&self, name: &str) -> Error {
        let message = "object of a generation is not in the store";
        let hint = "run `pronto store verify` to see which generations are complete";
        Error::new(ErrorKind::Missing, message)
            .at_path(name)
            .with_hint(hint)
    }
}

/// Compares the digest of an object with that in the manifest.
pub(crate) fn check_digest(name: &str, found: Digest, wanted: Digest) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let message = format!("object has the digest {found} instead of {wanted}");
    Err(Error::new(ErrorKind::Corrupt, message).at_path(name))
}
