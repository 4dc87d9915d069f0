//! Writes loose objects under a temporary name and renames them, so that no reader sees an
//! incomplete object.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::SystemTime;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Digester, ObjectId, digest, oid};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_pack::deflate::Deflater;
use sirocco::Format;
use sirocco::deflate::{Level, Writer};

use crate::error::{Error, ErrorKind};
use crate::options::Options;

/// The largest size of an object that is deflated in one piece.
const SMALL_LEN: usize = 4 << 20;

/// The size of the pieces in which a stream is written.
const CHUNK_LEN: usize = 64 << 10;

/// Returns the id of the object.
///
/// # Errors
/// Fails with `ErrorKind::Collision` if the content is part of a known attack on SHA-1.
pub(crate) fn id_of(
    options: &Options,
    kind: ObjectKind,
    content: &[u8],
) -> Result<ObjectId, Error> {
    let header = gix_object::encode::loose_header(kind, content.len() as u64);
    digest(options.kind, &[&header, content]).map_err(collision)
}

/// Writes an object whose id is known.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the object cannot be written.
pub(crate) fn write(
    objects: &Path,
    options: &Options,
    id: &oid,
    kind: ObjectKind,
    content: &[u8],
) -> Result<(), Error> {
    let header = gix_object::encode::loose_header(kind, content.len() as u64);
    let path = super::path(objects, id);
    let directory = path.parent().unwrap_or(objects);
    let mut temporary = UnfinishedObject::create(directory, objects, options)?;
    let written = if content.len() <= SMALL_LEN {
        DEFLATER.with_borrow_mut(|deflater| {
            let deflated = deflater.deflate(options.loose_compression, &header, content);
            temporary.write_all(deflated).map(|()| temporary)
        })
    } else {
        let mut deflater = Writer::new(Format::Zlib, level(options), temporary);
        deflater
            .write_all(&header)
            .and_then(|()| deflater.write_all(content))
            .and_then(|()| deflater.finish())
    };
    let written = written.context(ErrorKind::Io, "cannot write loose object", &path)?;
    written.publish(&path, options)
}

thread_local! {
    static DEFLATER: RefCell<Deflater> = RefCell::default();
}

/// Writes an object of a given type and size from a stream, without holding the whole content in
/// memory. If `exists` then reports that the object exists already, the new file is removed.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the stream cannot be read or the object cannot be written, with
/// `ErrorKind::Corrupt` if the stream has another size, with `ErrorKind::Collision` as [`id_of`]
/// does, and with the error of `exists`.
pub(crate) fn write_stream(
    objects: &Path,
    options: &Options,
    kind: ObjectKind,
    size_bytes: u64,
    from: &mut dyn Read,
    exists: &mut dyn FnMut(&oid) -> Result<bool, Error>,
) -> Result<ObjectId, Error> {
    let header = gix_object::encode::loose_header(kind, size_bytes);
    let temporary = UnfinishedObject::create(objects, objects, options)?;
    let at = temporary.path.clone();
    let mut deflater = Writer::new(Format::Zlib, level(options), temporary);
    let mut digester = Digester::new(options.kind);
    let mut add = |bytes: &[u8]| {
        digester.update(bytes);
        deflater
            .write_all(bytes)
            .context(ErrorKind::Io, "cannot write loose object", &at)
    };
    add(&header)?;
    let mut buffer = vec![0; CHUNK_LEN];
    let mut rest = size_bytes;
    loop {
        let len = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let message = "cannot read the content of the object";
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
        };
        rest = rest.checked_sub(len as u64).ok_or_else(wrong_size)?;
        add(&buffer[..len])?;
    }
    if rest != 0 {
        return Err(wrong_size());
    }
    let written = deflater
        .finish()
        .context(ErrorKind::Io, "cannot write loose object", &at)?;
    let id = digester.finish().map_err(collision)?;
    if exists(&id)? {
        return Ok(id);
    }
    let path = super::path(objects, &id);
    make_directory(path.parent().unwrap_or(objects), options)?;
    written.publish(&path, options)?;
    Ok(id)
}

/// Sets the modification time of the file at `path` to the current time, so that the object is not
/// pruned. Returns `false` if the file does not exist.
pub(crate) fn freshen(path: &Path) -> bool {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    let times = rustix::fs::Timestamps {
        last_access: now,
        last_modification: now,
    };
    let flags = rustix::fs::AtFlags::empty();
    match rustix::fs::utimensat(rustix::fs::CWD, path, &times, flags) {
        Ok(()) => true,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => false,
        // The file belongs to another user, or the file system is read-only. The object exists
        // nevertheless.
        Err(_) => path.exists(),
    }
}

fn level(options: &Options) -> Level {
    Level::new(options.loose_compression.min(9))
}

#[cold]
fn collision(collision: pronto_hash::Collision) -> Error {
    Error::new(
        ErrorKind::Collision,
        "SHA-1 appears to be part of a collision attack",
    )
    .because(collision)
}

#[cold]
fn wrong_size() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "the content has another size than announced",
    )
}

/// An incomplete file. Dropping the value removes the file.
struct UnfinishedObject {
    file: File,
    path: PathBuf,
    guard: Guard,
}

impl UnfinishedObject {
    /// Creates a file in `directory`. Creates a missing directory first, unless it is `objects`.
    fn create(
        directory: &Path,
        objects: &Path,
        options: &Options,
    ) -> Result<UnfinishedObject, Error> {
        let mut attempts = 0;
        loop {
            let path = directory.join(format!("tmp_obj_{}", random_name()));
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o444)
                .open(&path);
            match file {
                Ok(file) => {
                    let guard = Guard::new(&path);
                    return Ok(UnfinishedObject { file, path, guard });
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && attempts == 0 => {
                    if directory != objects {
                        make_directory(directory, options)?;
                    } else {
                        return Err(error).context(
                            ErrorKind::Io,
                            "unable to create temporary file in",
                            directory,
                        );
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 100 => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    let message =
                        "insufficient permission for adding an object to repository database";
                    return Err(error).context(ErrorKind::Io, message, objects);
                }
                Err(error) => {
                    let message = "unable to create temporary file";
                    return Err(error).context(ErrorKind::Io, message, &path);
                }
            }
            attempts += 1;
        }
    }

    fn publish(self, path: &Path, options: &Options) -> Result<(), Error> {
        let synced = options.fsync_loose.apply(&self.file);
        synced.context(ErrorKind::Io, "fsync error on", &self.path)?;
        if let Some(mode) = options.sharing.adjust(0o444, false) {
            let permissions = std::fs::Permissions::from_mode(mode);
            self.file.set_permissions(permissions).context(
                ErrorKind::Io,
                "cannot set permissions of",
                &self.path,
            )?;
        }
        std::fs::rename(&self.path, path).context(ErrorKind::Io, "unable to write file", path)?;
        self.guard.keep();
        Ok(())
    }
}

impl Write for UnfinishedObject {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates `directory` with the permissions of `core.sharedRepository`. The directory may exist
/// already.
///
/// # Errors
/// Fails with `ErrorKind::Io` if the directory cannot be created.
pub(crate) fn make_directory(directory: &Path, options: &Options) -> Result<(), Error> {
    match std::fs::create_dir(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => {
            return Err(error).context(ErrorKind::Io, "cannot create directory", directory);
        }
    }
    let Some(_) = options.sharing.adjust(0o777, true) else {
        return Ok(());
    };
    let made = directory
        .metadata()
        .context(ErrorKind::Io, "cannot stat", directory)?
        .permissions()
        .mode();
    if let Some(mode) = options.sharing.adjust(made & 0o7777, true) {
        std::fs::set_permissions(directory, std::fs::Permissions::from_mode(mode)).context(
            ErrorKind::Io,
            "cannot set permissions of",
            directory,
        )?;
    }
    Ok(())
}

/// Returns six random characters, for a file name that no other process is likely to use.
pub(crate) fn random_name() -> String {
    const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos() as u64);
    let mut state = now
        ^ (u64::from(std::process::id()) << 40)
        ^ COUNT
            .fetch_add(1, Relaxed)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..6)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(LETTERS[(state >> 33) as usize % LETTERS.len()])
        })
        .collect()
}
