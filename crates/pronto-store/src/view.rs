//! Writes a generation as a bare Git repository on disk.
//!
//! Refs are stored as reftables, and packs as files, so no data is converted.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto_hash::Kind;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_refs::store::tables as ref_tables;

use crate::backend::StoreBackend;
use crate::blocks::{self, BlockCache, Ranged, RangedLink, RangedView};
use crate::download::READ_AT_ONCE;
pub(crate) use crate::error::interrupted;
use crate::manifest::{FileKind, LayerKind, Manifest, StoreObject, StoredPack, TableStorage};
use crate::name::UploadId;
use crate::repository::{Generation, StoreRepository};
use crate::{Error, ErrorKind, Result, name, settings, tables};

/// A file to download.
struct MissingFile {
    object: StoreObject,
    target: PathBuf,
}

impl<B: StoreBackend> StoreRepository<B> {
    /// Writes a generation as the bare repository `directory`, which must not exist. The directory
    /// appears atomically, with files whose digests are verified. The method blocks on file I/O, so
    /// call it on a separate thread.
    ///
    /// With `cache`, files are kept there under their names in the store and hard-linked into the
    /// repository, which must not be changed in this case.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Missing`] or [`ErrorKind::Corrupt`] if an object is missing or
    /// damaged, with [`ErrorKind::Io`] if a file cannot be written, and with the errors of the
    /// store.
    pub async fn write_view(
        &self,
        generation: &Generation,
        directory: &Path,
        cache: Option<&Path>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let new = NewView::begin(directory, self.upload_id())?;
        self.write_skeleton(&generation.manifest, &new.temporary)?;
        let wanted = wanted(&generation.manifest, &new.temporary, &|_| false);
        let calls = wanted.iter().map(|wanted| self.place(wanted, cache));
        run(calls.collect(), watch).await?;
        new.finish()
    }

    /// Writes a view as [`write_view`](Self::write_view) does, but without packs of more than 1
    /// MiB. As long as the returned value exists, the blocks of these packs are fetched when this
    /// process reads them, and are verified and kept in `files`. Other programs cannot read such a
    /// pack; see [`RangedView::fill`].
    ///
    /// # Errors
    /// Fails for the same reasons as [`write_view`](Self::write_view).
    pub async fn write_ranged_view(
        self: &Arc<Self>,
        generation: &Generation,
        directory: &Path,
        files: &Path,
        cache: &Arc<BlockCache>,
        watch: &Watch<'_>,
    ) -> Result<RangedView> {
        let new = NewView::begin(directory, self.upload_id())?;
        let manifest = &generation.manifest;
        self.write_skeleton(manifest, &new.temporary)?;
        fs::create_dir_all(files).context(ErrorKind::Io, "cannot create", files)?;
        let is_ranged = |pack: &StoredPack| blocks::sums_of(pack).is_some();
        let wanted = wanted(manifest, &new.temporary, &is_ranged);
        let mut packs = Vec::new();
        let mut calls: Vec<FileDownload<'_>> = Vec::new();
        for pack in &manifest.packs {
            if let Some(sums) = blocks::sums_of(pack) {
                let ranged = self.open_ranged(pack, &sums, files, cache)?;
                let name = PathBuf::from(format!("objects/pack/pack-{}.pack", pack.id));
                packs.push((ranged, sums, name));
            }
        }
        for wanted in &wanted {
            calls.push(Box::pin(async move {
                let kept = self.keep(&wanted.object, files, cache).await?;
                link(&kept, &wanted.target)?;
                Ok(wanted.object.size_bytes)
            }));
        }
        for (ranged, sums, _) in &packs {
            if let Ranged::New(_) = ranged {
                calls.push(Box::pin(async move {
                    self.keep(sums, files, cache).await?;
                    Ok(sums.size_bytes)
                }));
            }
        }
        run(calls, watch).await?;
        let mut links = Vec::new();
        for (ranged, sums, target) in packs {
            let pack = match ranged {
                Ranged::Shared(pack) => pack,
                Ranged::New(opened) => {
                    let path = files.join(kept_name(&sums));
                    let sums = fs::read(&path).context(ErrorKind::Io, "cannot read", &path)?;
                    opened.finish(sums.into(), cache)
                }
            };
            link(&pack.stub, &new.temporary.join(&target))?;
            links.push(RangedLink { pack, target });
        }
        new.finish()?;
        Ok(RangedView::new(directory, links))
    }

    /// Writes the directories, and all files that are not objects of the store.
    fn write_skeleton(&self, manifest: &Manifest, directory: &Path) -> Result<()> {
        let config = config(manifest);
        let config = config.map_err(|error| error.at_path(self.generation_path(manifest.number)));
        write_skeleton(manifest, &config?, directory)
    }

    /// Returns the path in `files` of the file with an object, and downloads the file if it is
    /// missing or damaged.
    async fn keep(
        &self,
        object: &StoreObject,
        files: &Path,
        cache: &BlockCache,
    ) -> Result<PathBuf> {
        let kept = files.join(kept_name(object));
        if !cache.has(&kept, object)? {
            self.download(object, &kept).await?;
            cache.wrote(&kept, object);
        }
        Ok(kept)
    }

    /// Downloads or links a file to its path. Returns the size of the file.
    async fn place(&self, wanted: &MissingFile, cache: Option<&Path>) -> Result<u64> {
        let size = wanted.object.size_bytes;
        let Some(cache) = cache else {
            self.download(&wanted.object, &wanted.target).await?;
            return Ok(size);
        };
        let kept = cache.join(kept_name(&wanted.object));
        if fs::symlink_metadata(&kept).is_err() {
            fs::create_dir_all(cache).context(ErrorKind::Io, "cannot create", cache)?;
            self.download(&wanted.object, &kept).await?;
        }
        link(&kept, &wanted.target)?;
        Ok(size)
    }

    /// Downloads an object. The file appears after its digest was verified.
    ///
    /// # Errors
    /// Fails for the same reasons as [`read_object`](Self::read_object), and with [`ErrorKind::Io`]
    /// if the file cannot be written.
    pub async fn download(&self, object: &StoreObject, target: &Path) -> Result<()> {
        let mut temporary = target.as_os_str().to_owned();
        temporary.push(format!(".temp-{}", self.upload_id()));
        let temporary = PathBuf::from(temporary);
        let guard = Guard::new(&temporary);
        let failed = "cannot write";
        let file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temporary);
        let mut file = file.context(ErrorKind::Io, failed, &temporary)?;
        let sink = |bytes: &[u8]| {
            file.write_all(bytes)
                .context(ErrorKind::Io, failed, &temporary)
        };
        self.read_object(object, sink).await?;
        file.sync_all().context(ErrorKind::Io, failed, &temporary)?;
        fs::rename(&temporary, target).context(ErrorKind::Io, failed, target)?;
        guard.keep();
        Ok(())
    }
}

/// A download, which returns the number of downloaded bytes.
type FileDownload<'a> = Pin<Box<dyn Future<Output = Result<u64>> + Send + 'a>>;

/// Runs downloads, many concurrently.
async fn run<'a, F>(calls: Vec<F>, watch: &Watch<'a>) -> Result<()>
where
    F: Future<Output = Result<u64>>,
{
    let meter = watch
        .progress()
        .begin("Receiving files", Some(calls.len() as u64));
    let mut calls = stream::iter(calls).buffer_unordered(READ_AT_ONCE);
    while let Some(bytes) = calls.try_next().await? {
        watch.interrupt().check().map_err(interrupted)?;
        meter.add(1);
        meter.add_bytes(bytes);
    }
    meter.finish();
    Ok(())
}

/// A view that is written under a temporary name.
struct NewView<'a> {
    directory: &'a Path,
    temporary: PathBuf,
    guard: Guard,
}

impl<'a> NewView<'a> {
    fn begin(directory: &'a Path, number: UploadId) -> Result<Self> {
        if fs::symlink_metadata(directory).is_ok() {
            let message = format!("'{}' already exists", directory.display());
            return Err(Error::new(ErrorKind::Exists, message));
        }
        let mut temporary = directory.as_os_str().to_owned();
        temporary.push(format!(".temp-{number}"));
        let temporary = PathBuf::from(temporary);
        Ok(NewView {
            directory,
            guard: Guard::new(&temporary),
            temporary,
        })
    }

    fn finish(self) -> Result<()> {
        let renamed = fs::rename(&self.temporary, self.directory);
        renamed.context(ErrorKind::Io, "cannot create", self.directory)?;
        self.guard.keep();
        Ok(())
    }
}

/// Returns the file name of an object in a directory of kept files.
pub(crate) fn kept_name(object: &StoreObject) -> String {
    object.name.replace('/', "-")
}

/// Links a file into a view. If a pack was uploaded twice, the view contains it once.
fn link(from: &Path, to: &Path) -> Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked.context(ErrorKind::Io, "cannot link", to),
    }
}

/// Returns the files of a repository at `directory` that are objects of the store, without the
/// packs that `is_ranged` accepts.
fn wanted(
    manifest: &Manifest,
    directory: &Path,
    is_ranged: &dyn Fn(&StoredPack) -> bool,
) -> Vec<MissingFile> {
    let mut all = Vec::new();
    let packs = directory.join("objects/pack");
    for pack in &manifest.packs {
        let is_left =
            |kind: FileKind| kind == FileKind::Sums || kind == FileKind::Pack && is_ranged(pack);
        for file in pack.files.iter().filter(|file| !is_left(file.kind)) {
            let extension = file.kind.extension();
            all.push(MissingFile {
                object: StoreObject {
                    name: name::pack(&pack.id, pack.upload, extension),
                    size_bytes: file.size_bytes,
                    digest: file.digest,
                },
                target: packs.join(format!("pack-{}.{extension}", pack.id)),
            });
        }
    }
    let graphs = directory.join("objects/info/commit-graphs");
    for layer in manifest
        .layers
        .iter()
        .filter(|layer| layer.kind == LayerKind::Graph)
    {
        all.push(MissingFile {
            object: layer.object(),
            target: graphs.join(format!("graph-{}.graph", layer.id)),
        });
    }
    for record in &manifest.tables {
        all.extend(record.object().map(|object| {
            MissingFile {
                object,
                target: directory
                    .join("reftable")
                    .join(tables::table_name(record).as_str()),
            }
        }));
    }
    all
}

/// Writes the directories, and all files that are not objects of the store.
fn write_skeleton(manifest: &Manifest, config: &[u8], directory: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.join(name);
        fs::write(&path, bytes).context(ErrorKind::Io, "cannot write", &path)
    };
    for name in ["objects/pack", "objects/info/commit-graphs", "reftable"] {
        let path = directory.join(name);
        fs::create_dir_all(&path).context(ErrorKind::Io, "cannot create", &path)?;
    }
    ref_tables::prepare(directory).map_err(|error| error.map_kind(|_| ErrorKind::Io))?;
    write("HEAD", ref_tables::HEAD_STUB)?;
    write("config", config)?;
    let mut list = String::new();
    for record in &manifest.tables {
        let name = tables::table_name(record);
        if let TableStorage::Inline(bytes) = &record.place {
            write(&format!("reftable/{name}"), bytes)?;
        }
        list.push_str(&format!("{name}\n"));
    }
    write("reftable/tables.list", list.as_bytes())?;
    let graphs = manifest
        .layers
        .iter()
        .filter(|layer| layer.kind == LayerKind::Graph);
    let chain: String = graphs.map(|layer| format!("{}\n", layer.id)).collect();
    if !chain.is_empty() {
        write(
            "objects/info/commit-graphs/commit-graph-chain",
            chain.as_bytes(),
        )?;
    }
    for pack in manifest.packs.iter().filter(|pack| pack.is_promisor) {
        write(&format!("objects/pack/pack-{}.promisor", pack.id), b"")?;
    }
    Ok(())
}

/// Returns the configuration: the object format, and the keys of the manifest that servers read.
fn config(manifest: &Manifest) -> Result<Vec<u8>> {
    let mut text = String::from("[core]\n\trepositoryformatversion = 1\n\tbare = true\n");
    text.push_str("[extensions]\n\trefStorage = reftable\n");
    if manifest.hash != Kind::Sha1 {
        text.push_str(&format!("\tobjectFormat = {}\n", manifest.hash));
    }
    let own = settings::readable(&manifest.config)?;
    Ok([text.as_bytes(), &own].concat())
}
