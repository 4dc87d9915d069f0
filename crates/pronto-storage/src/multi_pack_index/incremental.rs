//! Adds a layer for new packs to a chain of multi-pack-indexes.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pronto_config::lock::{Lock, PATIENCE};
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_pack::midx::write;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::from_pack;
use pronto_repository::{Error, ErrorKind, Result};

use super::{
    CHAIN, LAYER_ENDINGS, MidxContents, MidxContext, MidxWriteOptions, Present, merge, number,
};

impl MidxContext<'_> {
    /// Writes a layer for the packs that no layer covers yet. Writes nothing if there are no such
    /// packs.
    ///
    /// The layer files exist before the chain file names them. A single file that the chain replaces is
    /// removed only when the chain is complete. At any moment a reader finds one of both.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a pack or a layer cannot be read, [`ErrorKind::Refused`] if
    /// the preferred pack has no object, [`ErrorKind::Locked`] if another process writes the chain, or
    /// [`ErrorKind::Io`] if a file cannot be written.
    pub(super) fn write_layer(&self, options: &MidxWriteOptions) -> Result<()> {
        self.undisturbed(|last| self.write_layer_once(options, last))
    }

    fn write_layer_once(&self, options: &MidxWriteOptions, last: bool) -> Result<bool> {
        let before = self.state();
        let present = self.sound()?;
        let mut sources = self.sources(Vec::new(), options, present.as_ref())?;
        if sources.is_empty() {
            return Ok(true);
        }
        let preferred = self.preferred(&mut sources, options)?;
        let mut entries = merge::merge(self, None, &sources, preferred)?;
        if let Some(present) = &present {
            entries = without(entries, present)?;
        }
        let numbers = number(&mut sources, &BTreeSet::new())?;
        let contents = MidxContents::new(&sources, entries, &numbers)?;
        let directory = self.chain_directory();
        let lock = Lock::acquire(directory.join(CHAIN), PATIENCE)?;
        let mut lock = lock.recorded(self.repository.config());
        if !last && self.is_disturbed(&before, &sources) {
            return Ok(false);
        }
        (self.repository.objects()?.begin_writing()).map_err(from_odb)?;
        let temporary = UnfinishedLayer::create(&directory)?;
        let id = self.fill(&temporary.file, &temporary.path, &contents, None)?;
        let mut ids = self.chained(present.as_ref())?;
        let path = directory.join(format!("multi-pack-index-{id}.midx"));
        let renamed = std::fs::rename(&temporary.path, &path);
        let failed = "unable to rename new multi-pack-index layer";
        renamed.context(ErrorKind::Io, failed, &path)?;
        temporary.guard.keep();
        ids.push(id);
        let lines: String = ids.iter().map(|id| format!("{id}\n")).collect();
        lock.write_and_close(lines.as_bytes())?;
        lock.commit()?;
        self.clear(&directory, LAYER_ENDINGS, &ids);
        // The single file is removed last: while it exists, readers prefer it to the chain.
        let _ = std::fs::remove_file(self.path());
        self.clear(&self.directory, &[".bitmap", ".rev"], &[]);
        Ok(true)
    }

    /// Returns the ids of the layers of the existing chain. An existing single file is linked as the
    /// lowest layer of a new chain.
    ///
    /// # Errors
    /// Fails if the file cannot be read or linked.
    fn chained(&self, present: Option<&Present>) -> Result<Vec<ObjectId>> {
        let Some(present) = present else {
            return Ok(Vec::new());
        };
        let ids: std::result::Result<Vec<ObjectId>, _> = present
            .layers
            .iter()
            .map(|layer| layer.checksum())
            .collect();
        let ids = ids.map_err(from_pack)?;
        if let (false, [id]) = (present.is_chain, ids.as_slice()) {
            let layer = |ending: &str| {
                let name = format!("multi-pack-index-{id}{ending}");
                self.chain_directory().join(name)
            };
            link(&self.path(), &layer(".midx"))?;
            for ending in [".bitmap", ".rev"] {
                let from = self
                    .directory
                    .join(format!("multi-pack-index-{id}{ending}"));
                link(&from, &layer(ending))?;
            }
        }
        Ok(ids)
    }
}

/// Returns the entries for objects that `present` does not list.
fn without(entries: Vec<write::Entry>, present: &Present) -> Result<Vec<write::Entry>> {
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        if !present.contains(&entry.id)? {
            kept.push(entry);
        }
    }
    Ok(kept)
}

/// Creates the hard link `to` to the file at `from`, if that file exists. An existing file `to` is
/// kept: names contain the checksum, so the content is the same.
fn link(from: &Path, to: &Path) -> Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(()),
        Err(error) => match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::AlreadyExists => Ok(()),
            _ => {
                let (from, to) = (from.display(), to.display());
                let reason = pronto_io::error::reason(&error);
                let message = format!("unable to link '{from}' to '{to}': {reason}");
                Err(Error::new(ErrorKind::Refused, message))
            }
        },
    }
}

/// A file that is removed on drop, unless it is kept.
struct UnfinishedLayer {
    path: PathBuf,
    file: File,
    guard: Guard,
}

impl UnfinishedLayer {
    /// Creates a temporary file in `directory`. The lock of the directory is held.
    fn create(directory: &Path) -> Result<UnfinishedLayer> {
        let path = directory.join(format!("tmp_midx_{:x}", std::process::id()));
        // The process that created an existing file of this name is gone, because the lock is held.
        let _ = std::fs::remove_file(&path);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o444).open(&path);
        let failed = "unable to create temporary MIDX layer";
        let file = opened.context(ErrorKind::Io, failed, &path)?;
        let guard = Guard::new(&path);
        Ok(UnfinishedLayer { path, file, guard })
    }
}
