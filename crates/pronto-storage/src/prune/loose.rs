//! Deletes unreachable loose objects.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pronto_config::path;
use pronto_hash::ObjectId;
use pronto_io::error::OsReason;
use pronto_repository::Notice;
use pronto_repository::objects::from_odb;
use pronto_repository::{Error, ErrorKind, Result};

use super::{BATCH, HOLD, PruneRun, PrunedFile, REST, has_expired, order};
use crate::pack_objects::names;

/// A file in a directory of loose objects.
pub(super) enum LooseFile {
    Object { id: ObjectId, path: PathBuf },
    Other(PathBuf),
}

/// Calls `each` with every file in the directories of loose objects below `objects`.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a directory cannot be listed, or if `each` fails.
pub(super) fn each(objects: &Path, each: &mut dyn FnMut(LooseFile) -> Result<()>) -> Result<()> {
    for byte in 0..=u8::MAX {
        let fanout = format!("{byte:02x}");
        let directory = objects.join(&fanout);
        for name in names(&directory)? {
            let hex = name.to_str().map(|rest| format!("{fanout}{rest}"));
            let id = hex.and_then(|hex| pronto_hash::parse_hex(hex.as_bytes()).ok());
            let path = directory.join(&name);
            each(match id {
                Some(id) => LooseFile::Object { id, path },
                None => LooseFile::Other(path),
            })?;
        }
    }
    Ok(())
}

/// Returns whether the file name begins with `start`.
pub(super) fn begins(file: &Path, start: &[u8]) -> bool {
    let name = file.file_name().unwrap_or_default();
    path::as_bytes(Path::new(name)).starts_with(start)
}

impl PruneRun<'_> {
    pub(super) fn prune_loose(&mut self) -> Result<()> {
        let (mut objects, mut others) = (Vec::new(), Vec::new());
        each(&self.objects, &mut |found| {
            match found {
                LooseFile::Object { id, path } => objects.push((id, path)),
                LooseFile::Other(path) => others.push(path),
            }
            Ok(())
        })?;
        for path in others {
            match begins(&path, b"tmp_obj_") {
                true => self.prune_file(&path)?,
                false => (self.report)(&PrunedFile::Garbage(path)),
            }
        }
        if objects.is_empty() {
            return Ok(());
        }
        let options = self.options.clone();
        let marks = self.marks()?;
        objects.retain(|(id, path)| {
            let modified = path.symlink_metadata().and_then(|found| found.modified());
            !marks.contains(id)
                && modified.is_ok_and(|modified| has_expired(options.expire, modified))
        });
        if options.dry_run {
            for (id, _) in objects {
                self.report_object(id)?;
            }
            return Ok(());
        }
        let ids: Vec<ObjectId> = objects.iter().map(|(id, _)| *id).collect();
        let batches = order::named_last(marks.store(), &ids)?;
        let mut rest = batches.as_slice();
        while !rest.is_empty() {
            rest = self.delete_some(rest)?;
            if !rest.is_empty() {
                std::thread::sleep(REST);
            }
        }
        Ok(())
    }

    /// Deletes the first objects of `ids`, as many as one batch permits. Returns the remaining ids.
    fn delete_some<'i>(&mut self, ids: &'i [ObjectId]) -> Result<&'i [ObjectId]> {
        let Some(_pruning) = self.begin()? else {
            return Ok(&[]);
        };
        // Processes that were writing until now have updated their refs.
        let marks = self.marks()?;
        marks.look_again()?;
        let since = Instant::now();
        let mut deleted = 0;
        for (done, id) in ids.iter().enumerate() {
            if deleted >= BATCH || (deleted > 0 && since.elapsed() >= HOLD) {
                return Ok(&ids[done..]);
            }
            if self.marks()?.contains(id) {
                continue;
            }
            let hex = id.to_string();
            let directory = self.objects.join(&hex[..2]);
            let path = directory.join(&hex[2..]);
            // A process that does not take the lock may have used the object in the meantime.
            let modified = path.symlink_metadata().and_then(|found| found.modified());
            if !modified.is_ok_and(|modified| self.has_expired(modified)) {
                continue;
            }
            self.report_object(*id)?;
            self.unlink(&path);
            let _ = std::fs::remove_dir(&directory);
            deleted += 1;
        }
        Ok(&[])
    }

    fn report_object(&mut self, id: ObjectId) -> Result<()> {
        let store = self.repository.objects()?.without_replacements();
        let kind = store.header(&id).map_err(from_odb);
        let kind = kind.ok().flatten().map(|header| header.kind);
        self.outcome.objects += 1;
        (self.report)(&PrunedFile::Object(id, kind));
        Ok(())
    }

    /// Removes a file. A failure is reported as a notice.
    pub(super) fn unlink(&self, path: &Path) {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let message = format!("unable to unlink '{}'", path.display());
                let error = Error::new(ErrorKind::Io, message).because(OsReason(error));
                self.repository.notify(Notice::Ignored(error));
            }
            _ => {}
        }
    }
}
