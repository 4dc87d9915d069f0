//! Imports Git repositories into a store, and copies repositories from one store to another.

mod update;

use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice as _};
use bytes::Bytes;
use pronto::config::ConfigScope;
use pronto::config::edit::Document;
use pronto::object_store::PackContents;
use pronto::pack_objects::{self, Select};
use pronto::refs::{HeadValue, RefTarget};
use pronto::{Watch, bitmaps, packs};
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;

use crate::blocking::{BlockingStore, StoredRepository};
use crate::change::PackPush;
use crate::commit::Creating;
use crate::manifest::{FileKind, StoredPack};
use crate::refs::{self, ExpectedRefValue, RefUpdate, StoredRefValue};
use crate::repository::Generation;
use crate::settings::{self, EXPORT_OK, EXPORT_OK_FILE};
use crate::upkeep::due::BITMAPPED_TIPS;
use crate::upload::{NewPack, UploadFile};
use crate::view::interrupted;
use crate::{Error, ErrorKind, Result};

/// The counts of an import or of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyCounts {
    /// The number of refs, including `HEAD`.
    pub refs: usize,
    /// The number of objects.
    pub objects: u64,
}

impl BlockingStore {
    /// Creates the repository `target`, or updates it if it exists, with [`import`](Self::import)
    /// or [`update`](Self::update).
    ///
    /// # Errors
    /// Fails for the same reasons as these two methods, and with [`ErrorKind::Exists`] if another
    /// process has created the repository in the meantime.
    pub fn import_or_update(
        &self,
        source: &pronto::Repository,
        target: &StoredRepository,
        scratch: &Path,
        watch: &Watch<'_>,
    ) -> Result<CopyCounts> {
        match self.wait(target.latest()) {
            Ok(_) => self.update(source, target, scratch, watch),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.import(source, target, scratch, watch)
            }
            Err(error) => Err(error),
        }
    }

    /// Creates the repository `target` with all objects that are reachable from the refs of a Git
    /// repository: one pack with bitmaps, and one table of refs. Temporary files are created in
    /// `scratch`, and removed.
    ///
    /// # Errors
    /// - [`ErrorKind::Exists`] if a repository with that name exists.
    /// - [`ErrorKind::Unsupported`] if the source is shallow or a partial clone.
    /// - [`ErrorKind::Repository`] if the source cannot be read.
    pub fn import(
        &self,
        source: &pronto::Repository,
        target: &StoredRepository,
        scratch: &Path,
        watch: &Watch<'_>,
    ) -> Result<CopyCounts> {
        check_source(source)?;
        self.check_creation()?;
        self.wait(target.check_new())?;
        let updates = updates_of(source)?;
        let creating = Creating {
            hash: source.object_hash(),
            config: config_of(source),
            ..Creating::default()
        };
        let directory = scratch.join(format!("pronto-import-{}", target.upload_id()));
        fs::create_dir(&directory).context(ErrorKind::Io, "cannot create", &directory)?;
        let _guard = Guard::new(&directory);
        let pack = make_pack(source, &updates, &[], &directory, watch)?;
        let content = NewRepositoryContent {
            updates,
            packs: pack.as_slice(),
        };
        self.fill(target, &creating, content, watch)
    }

    /// Creates the repository `target` from a generation of another repository, which can be in
    /// another store. Temporary files are created in `scratch`, and removed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Exists`] if a repository with that name exists, and with the errors
    /// of both stores.
    pub fn copy(
        &self,
        generation: &Generation,
        from: CopySource<'_>,
        target: &StoredRepository,
        scratch: &Path,
        watch: &Watch<'_>,
    ) -> Result<CopyCounts> {
        self.check_creation()?;
        self.wait(target.check_new())?;
        let manifest = &generation.manifest;
        let creating = Creating {
            hash: manifest.hash,
            policy: manifest.policy,
            config: settings::readable(&manifest.config)?.into(),
        };
        let mut updates = Vec::new();
        for (name, value) in refs::all(&generation.refs)? {
            updates.push(RefUpdate {
                name,
                old: ExpectedRefValue::Missing,
                new: Some(value),
            });
        }
        let directory = scratch.join(format!("pronto-copy-{}", target.upload_id()));
        fs::create_dir(&directory).context(ErrorKind::Io, "cannot create", &directory)?;
        let _guard = Guard::new(&directory);
        let meter = watch
            .progress()
            .begin("Copying packs", Some(manifest.packs.len() as u64));
        let mut packs = Vec::new();
        for pack in &manifest.packs {
            watch.interrupt().check().map_err(interrupted)?;
            packs.push(from.fetch(pack, &directory)?);
            meter.add(1);
        }
        meter.finish();
        let content = NewRepositoryContent {
            updates,
            packs: &packs,
        };
        self.fill(target, &creating, content, watch)
    }

    /// Uploads packs, and creates a repository from them.
    fn fill(
        &self,
        target: &StoredRepository,
        creating: &Creating,
        content: NewRepositoryContent<'_>,
        watch: &Watch<'_>,
    ) -> Result<CopyCounts> {
        let packs = content.packs;
        let mut push = PackPush {
            updates: content.updates,
            is_atomic: true,
            ..PackPush::default()
        };
        for pack in packs {
            let uploaded = self.wait(target.upload_watched(pack, watch))?;
            push.packs.push(uploaded);
        }
        let written = CopyCounts {
            refs: push.updates.len(),
            objects: packs.iter().map(|pack| u64::from(pack.objects)).sum(),
        };
        self.wait(target.create(creating, push))?;
        Ok(written)
    }
}

/// The refs and the packs of a new repository.
struct NewRepositoryContent<'a> {
    updates: Vec<RefUpdate>,
    packs: &'a [NewPack],
}

/// The source of a copy.
#[derive(Clone, Copy)]
pub struct CopySource<'a> {
    /// The store of the source.
    pub store: &'a BlockingStore,
    /// The repository to copy.
    pub repository: &'a StoredRepository,
}

impl CopySource<'_> {
    /// Downloads the files of a pack.
    fn fetch(&self, pack: &StoredPack, directory: &Path) -> Result<NewPack> {
        let mut files = Vec::new();
        for (file, object) in pack.files.iter().zip(pack.objects()) {
            // The digests of the blocks are computed from the pack again.
            if file.kind == FileKind::Sums {
                continue;
            }
            let extension = file.kind.extension();
            let target = directory.join(format!("{}.{extension}", pack.upload));
            self.store
                .wait(self.repository.download(&object, &target))?;
            files.push(UploadFile::from_path(file.kind, &target)?);
        }
        Ok(NewPack {
            id: pack.id,
            objects: pack.objects,
            is_promisor: pack.is_promisor,
            files,
        })
    }
}

fn check_source(source: &pronto::Repository) -> Result<()> {
    let why = if source.is_shallow() {
        "is shallow"
    } else if source.config().contains("extensions.partialclone") {
        "is a partial clone"
    } else {
        return Ok(());
    };
    let message = format!("the repository {why} and lacks objects");
    let hint = "fetch the missing objects first, for example with 'git fetch --unshallow'";
    Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
}

/// Returns the refs of a repository, including `HEAD`, as ref updates.
fn updates_of(source: &pronto::Repository) -> Result<Vec<RefUpdate>> {
    let mut updates = Vec::new();
    let mut add = |name: BString, value: StoredRefValue| {
        updates.push(RefUpdate {
            name,
            old: ExpectedRefValue::Missing,
            new: Some(value),
        });
    };
    let direct = |id: ObjectId| -> Result<StoredRefValue> {
        let peeled = source.peel_tag(id).map_err(unreadable)?;
        let peeled = peeled.filter(|peeled| *peeled != id);
        Ok(StoredRefValue::Direct { id, peeled })
    };
    match source.head().map_err(unreadable)? {
        HeadValue::Branch { name, .. } | HeadValue::Unborn { name } => {
            add("HEAD".into(), StoredRefValue::Symbolic(name))
        }
        HeadValue::Detached { id } => add("HEAD".into(), direct(id)?),
    }
    for reference in source.refs().all("refs/").map_err(unreadable)? {
        let value = match reference.target {
            RefTarget::Symbolic(to) => StoredRefValue::Symbolic(to.into_inner()),
            RefTarget::Object(id) => match reference.peeled {
                Some(peeled) => StoredRefValue::Direct {
                    id,
                    peeled: Some(peeled),
                },
                None => direct(id)?,
            },
        };
        add(reference.name, value);
    }
    Ok(updates)
}

/// Writes a pack of the objects that are reachable from `updates`, but not from `known`. Returns
/// `None` if there are no such objects. The pack has bitmaps if `known` is empty.
fn make_pack(
    source: &pronto::Repository,
    updates: &[RefUpdate],
    known: &[ObjectId],
    directory: &Path,
    watch: &Watch<'_>,
) -> Result<Option<NewPack>> {
    let wants: Vec<ObjectId> = updates
        .iter()
        .filter_map(|update| match update.new {
            Some(StoredRefValue::Direct { id, .. }) => Some(id),
            _ => None,
        })
        .collect();
    let select = Select::default();
    let selection =
        pack_objects::select(source, &wants, known, &select, watch).map_err(unreadable)?;
    if selection.members.is_empty() {
        return Ok(None);
    }
    let contents = PackContents {
        members: &selection.members,
        whole: Some(&selection.whole),
        ..PackContents::default()
    };
    let options = pack_objects::packing_options(source).map_err(unreadable)?;
    let files = packs::writer_options(source.config(), source.object_hash());
    let mut files = files.map_err(unreadable)?;
    files.files.reverse_index = true;
    let store = source.objects().map_err(unreadable)?;
    let made = store.pack_into(&contents, &options, directory, files, watch);
    let (written, _) = made.map_err(|error| error.map_kind(|_| ErrorKind::Repository))?;
    if known.is_empty() {
        write_bitmaps(source, &written.index, watch)?;
    }
    let mut files = Vec::new();
    for kind in [
        FileKind::Pack,
        FileKind::Index,
        FileKind::Reverse,
        FileKind::Bitmap,
    ] {
        let path: PathBuf = written.pack.with_extension(kind.extension());
        if path.exists() {
            files.push(UploadFile::from_path(kind, &path)?);
        }
    }
    Ok(Some(NewPack {
        id: written.checksum,
        objects: written.objects,
        is_promisor: false,
        files,
    }))
}

fn write_bitmaps(source: &pronto::Repository, index: &Path, watch: &Watch<'_>) -> Result<()> {
    let mut tips = bitmaps::tips(source).map_err(unreadable)?;
    tips.bitmapped_tips = BITMAPPED_TIPS;
    let settings = bitmaps::settings(source).map_err(unreadable)?;
    match bitmaps::write(source, index, &tips, &settings, watch) {
        // A repository without commits has no bitmaps.
        Err(error) if error.kind() == pronto::ErrorKind::Refused => Ok(()),
        written => written.map(drop).map_err(unreadable),
    }
}

/// Returns the configuration for the repository in the store: the keys that servers read, from the
/// configuration of the repository and not of the user, and the export mark.
fn config_of(source: &pronto::Repository) -> Bytes {
    let mut text = Document::default();
    for entry in source.config().iter() {
        let is_own = matches!(
            entry.origin.scope,
            ConfigScope::Local | ConfigScope::Worktree
        );
        if is_own && settings::is_read(entry.key) {
            text.add(entry.key, entry.value.unwrap_or(b"true".as_bstr()));
        }
    }
    if source.git_dir().join(EXPORT_OK_FILE).exists() {
        let _ = text.set(EXPORT_OK.into(), "true".into(), true, |_| true);
    }
    Bytes::copy_from_slice(text.as_bytes())
}

fn unreadable(error: pronto::Error) -> Error {
    error.map_kind(|_| ErrorKind::Repository)
}
