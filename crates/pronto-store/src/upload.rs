//! Uploading packs.

use std::fs::File as DiskFile;
use std::io::Read as _;
use std::path::Path;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto::Watch;
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;

use crate::backend::StoreBackend;
use crate::bucket::{Bucket as _, UploadContent};
use crate::change::Uploaded;
use crate::clock::Clock as _;
use crate::digest::{BLOCK_BYTES, BlockDigester, StreamDigests};
use crate::error::interrupted;
use crate::manifest::{FileKind, LayerKind, RepositoryLayer, StoredFile, StoredPack};
use crate::name::{self, UploadId};
use crate::repository::StoreRepository;
use crate::{ErrorKind, Result};

/// The number of objects that are written, or checked, concurrently.
pub(crate) const AT_ONCE: usize = 8;

/// A file to upload.
#[derive(Clone, Debug)]
pub struct UploadFile {
    kind: FileKind,
    content: UploadContent,
    digests: StreamDigests,
}

impl UploadFile {
    /// Creates a file from bytes.
    pub fn from_bytes(kind: FileKind, bytes: Bytes) -> Self {
        let mut digester = BlockDigester::default();
        digester.update(&bytes);
        UploadFile {
            kind,
            content: UploadContent::Bytes(bytes),
            digests: digester.finish(),
        }
    }

    /// Creates a file from a path on this machine. The file must not change, and is read once.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read.
    pub fn from_path(kind: FileKind, path: &Path) -> Result<Self> {
        let (content, digests) = read_digests(path)?;
        Ok(UploadFile {
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

/// Reads a file of this machine once, to compute its digests.
fn read_digests(path: &Path) -> Result<(UploadContent, StreamDigests)> {
    let mut file = DiskFile::open(path).context(ErrorKind::Io, "cannot open", path)?;
    let mut digester = BlockDigester::default();
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        let read = file.read(&mut buffer);
        match read.context(ErrorKind::Io, "cannot read", path)? {
            0 => break,
            len => digester.update(&buffer[..len]),
        }
    }
    Ok((UploadContent::File(path.to_owned()), digester.finish()))
}

/// A pack to upload.
#[derive(Clone, Debug)]
pub struct NewPack {
    /// The checksum in the file name of the pack.
    pub id: ObjectId,
    /// The number of objects.
    pub objects: u32,
    /// Whether the pack was received from a promisor remote.
    pub is_promisor: bool,
    /// The files of the pack, which include at least the pack and its index.
    pub files: Vec<UploadFile>,
}

impl NewPack {
    /// Returns the path of the file of this kind, if the file is on the disk.
    pub(crate) fn path_of(&self, kind: FileKind) -> Option<&Path> {
        let file = self.files.iter().find(|file| file.kind == kind)?;
        match &file.content {
            UploadContent::File(path) => Some(path),
            UploadContent::Bytes(_) => None,
        }
    }

    /// Returns the entry for the manifest, and the files with their names.
    fn plan(&self, upload: UploadId) -> (StoredPack, Vec<(String, UploadContent)>) {
        let mut files = self.files.clone();
        let pack = files.iter().find(|file| file.kind == FileKind::Pack);
        let sums = pack.map(|file| Bytes::from(file.digests.blocks.clone()));
        files.extend(sums.map(|bytes| UploadFile::from_bytes(FileKind::Sums, bytes)));
        files.sort_unstable_by_key(|file| file.kind);
        let record = |file: &UploadFile| StoredFile {
            kind: file.kind,
            size_bytes: file.digests.len,
            digest: file.digests.whole,
        };
        let pack = StoredPack {
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

impl<B: StoreBackend> StoreRepository<B> {
    /// Writes the files of a pack, which are unreferenced until a commit. The cost is one round
    /// trip.
    ///
    /// # Errors
    /// Fails with the errors of the store, and with [`ErrorKind::Io`] if a file cannot be read.
    pub async fn upload(&self, pack: &NewPack) -> Result<Uploaded> {
        self.upload_watched(pack, &Watch::none()).await
    }

    /// Does the same as [`upload`](Self::upload), with progress and interruption.
    pub(crate) async fn upload_watched(
        &self,
        pack: &NewPack,
        watch: &Watch<'_>,
    ) -> Result<Uploaded> {
        let (record, contents) = pack.plan(self.upload_id());
        let begun = self.backend.clock().now();
        self.write_watched(contents, watch).await?;
        Ok(Uploaded {
            pack: record,
            begun,
        })
    }

    /// Writes a file as a layer, which is unreferenced until a commit.
    pub(crate) async fn upload_layer(
        &self,
        kind: LayerKind,
        id: ObjectId,
        path: &Path,
    ) -> Result<RepositoryLayer> {
        let (content, digests) = read_digests(path)?;
        let layer = RepositoryLayer {
            kind,
            id,
            upload: self.upload_id(),
            size_bytes: digests.len,
            digest: digests.whole,
        };
        self.write(vec![(layer.object().name, content)]).await?;
        Ok(layer)
    }

    /// Returns a pack as if it were uploaded, and its files, for the simulation.
    #[cfg(test)]
    pub(crate) fn pretend(&self, pack: &NewPack) -> (Uploaded, Vec<(String, UploadContent)>) {
        let (pack, contents) = pack.plan(self.upload_id());
        let begun = self.backend.clock().now();
        (Uploaded { pack, begun }, contents)
    }

    /// Writes objects, several concurrently.
    pub(crate) async fn write(&self, contents: Vec<(String, UploadContent)>) -> Result<()> {
        self.write_watched(contents, &Watch::none()).await
    }

    async fn write_watched(
        &self,
        contents: Vec<(String, UploadContent)>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let count = contents.len() as u64;
        let meter = watch.progress().begin("Uploading files", Some(count));
        let calls = contents.into_iter().map(|(name, content)| async move {
            let name = format!("{}{name}", self.prefix);
            self.persist(|| self.backend.bucket().put(&name, &content))
                .await
        });
        let mut calls = stream::iter(calls).buffer_unordered(AT_ONCE);
        while calls.try_next().await?.is_some() {
            watch.interrupt().check().map_err(interrupted)?;
            meter.add(1);
        }
        meter.finish();
        Ok(())
    }
}
