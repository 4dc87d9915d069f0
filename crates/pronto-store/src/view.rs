//! A generation as a bare Git repository on disk.
//!
//! Refs are reftables already, and packs are files: nothing is converted.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use pronto_hash::Kind;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::watch::Watch;
use pronto_refs::store::tables as ref_tables;

use crate::backend::Backend;
use crate::manifest::{FileKind, LayerKind, Manifest, Object, Place};
use crate::repository::{Generation, Repository};
use crate::upload::AT_ONCE;
use crate::{Error, ErrorKind, Result, name, tables};

/// A file that has to be downloaded.
struct Wanted {
    object: Object,
    target: PathBuf,
}

impl<B: Backend> Repository<B> {
    /// Writes a generation as the bare repository `directory`, which must not exist. It appears as a whole,
    /// with files that were compared with their digests. Reads and writes files of this machine
    /// while it waits, so it is for a thread of its own.
    ///
    /// With `cache`, files are kept there under their names in the store and linked into the repository,
    /// which must not be changed then.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`], [`ErrorKind::Corrupt`], [`ErrorKind::Io`]; those of the store.
    pub async fn write_view(
        &self,
        generation: &Generation,
        directory: &Path,
        cache: Option<&Path>,
        watch: &Watch<'_>,
    ) -> Result<()> {
        if fs::symlink_metadata(directory).is_ok() {
            let message = "directory exists already";
            return Err(Error::new(ErrorKind::Exists, message).at_path(directory));
        }
        let mut temporary = directory.as_os_str().to_owned();
        temporary.push(format!(".temp-{}", self.upload_id()));
        let temporary = PathBuf::from(temporary);
        let guard = Guard::new(&temporary);
        write_skeleton(&generation.manifest, &temporary)?;
        let wanted = wanted(&generation.manifest, &temporary);
        let meter = watch
            .progress()
            .begin("Receiving files", Some(wanted.len() as u64));
        let calls = wanted.iter().map(|wanted| {
            let meter = meter.clone();
            async move {
                watch.interrupt().check().map_err(interrupted)?;
                self.place(wanted, cache).await?;
                meter.add(1);
                meter.add_bytes(wanted.object.size_bytes);
                Ok::<(), Error>(())
            }
        });
        let calls = stream::iter(calls.collect::<Vec<_>>()).buffer_unordered(AT_ONCE);
        calls.try_collect::<()>().await?;
        meter.finish();
        fs::rename(&temporary, directory).context(ErrorKind::Io, "cannot create", directory)?;
        guard.keep();
        Ok(())
    }

    /// Brings a file to its place.
    async fn place(&self, wanted: &Wanted, cache: Option<&Path>) -> Result<()> {
        let Some(cache) = cache else {
            return self.download(&wanted.object, &wanted.target).await;
        };
        let kept = cache.join(wanted.object.name.replace('/', "-"));
        if fs::symlink_metadata(&kept).is_err() {
            fs::create_dir_all(cache).context(ErrorKind::Io, "cannot create", cache)?;
            self.download(&wanted.object, &kept).await?;
        }
        fs::hard_link(&kept, &wanted.target).context(ErrorKind::Io, "cannot link", &wanted.target)
    }

    /// Downloads an object. The file appears when its digest was compared.
    ///
    /// # Errors
    /// As for [`read_object`](Self::read_object); [`ErrorKind::Io`].
    pub async fn download(&self, object: &Object, target: &Path) -> Result<()> {
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

/// Returns the files of a repository at `directory` that are objects of the store.
fn wanted(manifest: &Manifest, directory: &Path) -> Vec<Wanted> {
    let mut all = Vec::new();
    let packs = directory.join("objects/pack");
    for pack in &manifest.packs {
        for file in pack.files.iter().filter(|file| file.kind != FileKind::Sums) {
            let extension = file.kind.extension();
            all.push(Wanted {
                object: Object {
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
        all.push(Wanted {
            object: layer.object(),
            target: graphs.join(format!("graph-{}.graph", layer.id)),
        });
    }
    for record in &manifest.tables {
        all.extend(record.object().map(|object| {
            Wanted {
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
fn write_skeleton(manifest: &Manifest, directory: &Path) -> Result<()> {
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
    write("config", &config(manifest))?;
    let mut list = String::new();
    for record in &manifest.tables {
        let name = tables::table_name(record);
        if let Place::Inline(bytes) = &record.place {
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

/// Returns the configuration: the object format, and what the manifest has.
fn config(manifest: &Manifest) -> Vec<u8> {
    let mut text = String::from("[core]\n\trepositoryformatversion = 1\n\tbare = true\n");
    text.push_str("[extensions]\n\trefStorage = reftable\n");
    if manifest.hash != Kind::Sha1 {
        text.push_str(&format!("\tobjectFormat = {}\n", manifest.hash));
    }
    [text.as_bytes(), &manifest.config].concat()
}

pub(crate) fn interrupted(_: pronto_io::interrupt::Interrupted) -> Error {
    Error::new(ErrorKind::Interrupted, "interrupted")
}
