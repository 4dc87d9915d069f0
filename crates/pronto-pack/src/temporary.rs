//! The files of a pack under construction, which have temporary names until all of them are
//! complete.

use crate::error::{Error, ErrorKind};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::sync::SyncMethod;
use pronto_io::view::{FileView, ViewAccess};
use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A file with a temporary name, which is removed on drop.
pub(crate) struct TemporaryFile {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    guard: Guard,
}

impl TemporaryFile {
    /// Creates `directory/tmp_{what}_XXXXXX`, which is read-only except through this handle.
    pub(crate) fn create(directory: &Path, what: &str) -> Result<TemporaryFile, Error> {
        const ATTEMPTS: usize = 100;
        for _ in 0..ATTEMPTS {
            let path = directory.join(format!("tmp_{what}_{}", random_letters()));
            let mut open = std::fs::OpenOptions::new();
            open.read(true).write(true).create_new(true).mode(0o444);
            match open.open(&path) {
                Ok(file) => {
                    let guard = Guard::new(&path);
                    return Ok(TemporaryFile { path, file, guard });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).context(ErrorKind::Io, "unable to create", &path);
                }
            }
        }
        Err(
            Error::new(ErrorKind::Io, "unable to find a name for a temporary file")
                .at_path(directory),
        )
    }

    /// Renames the file to its final path.
    pub(crate) fn rename(self, to: &Path) -> Result<(), Error> {
        std::fs::rename(&self.path, to).context(ErrorKind::Io, "unable to rename to", to)?;
        self.guard.keep();
        Ok(())
    }

    /// Returns the open file and removes its name, if it still has one.
    pub(crate) fn into_file(self) -> File {
        self.file
    }

    /// Sets the permissions of the file, if given.
    pub(crate) fn permit(&self, permissions: Option<u32>) -> Result<(), Error> {
        let Some(mode) = permissions else {
            return Ok(());
        };
        self.file
            .set_permissions(std::fs::Permissions::from_mode(mode))
            .context(ErrorKind::Io, "cannot set permissions of", &self.path)
    }

    /// Flushes the content to the disk.
    pub(crate) fn sync(&self, how: SyncMethod) -> Result<(), Error> {
        how.apply(&self.file)
            .context(ErrorKind::Io, "unable to fsync", &self.path)
    }
}

/// The size of the buffer for writing an unnamed file.
const BUFFER_LEN: usize = 256 * 1024;

/// Creates an unnamed file on the file system of `directory`, with the content that `fill` writes.
/// The file position is at the start.
///
/// # Errors
/// Fails with the error of `fill`, and with `ErrorKind::Io` if the file cannot be created or
/// written.
pub(crate) fn unnamed(
    directory: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Error>,
) -> Result<File, Error> {
    let temporary = TemporaryFile::create(directory, "large")?;
    std::fs::remove_file(&temporary.path).context(
        ErrorKind::Io,
        "unable to unlink",
        &temporary.path,
    )?;
    let mut out = BufWriter::with_capacity(BUFFER_LEN, &temporary.file);
    fill(&mut out)?;
    let written = out.flush();
    drop(out);
    let mut file = temporary.into_file();
    written
        .and_then(|()| file.rewind())
        .context(ErrorKind::Io, "unable to write in", directory)?;
    Ok(file)
}

/// Maps a file that [`unnamed`] has created.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the file cannot be mapped.
pub(crate) fn mapped(file: File, directory: &Path) -> Result<FileView, Error> {
    FileView::from_file(file, directory, ViewAccess::Mapped).context(
        ErrorKind::Io,
        "cannot map a file in",
        directory,
    )
}

/// Returns six random letters for a unique file name.
fn random_letters() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Relaxed));
    let mut bits = hasher.finish();
    let letters = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (0..6)
        .map(|_| {
            let letter = letters[(bits % 62) as usize];
            bits /= 62;
            char::from(letter)
        })
        .collect()
}
