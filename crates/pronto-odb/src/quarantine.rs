//! The quarantine of received objects that are not checked yet.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use sirocco::{Format, inflate};

use crate::error::{Error, ErrorKind};
use crate::loose::write::{make_directory, random_name};
use crate::store::Store;
use crate::turns;

/// A temporary object directory inside the real object directory. Objects written to the quarantine
/// are visible only through [`store`](Self::store), until [`publish`](Self::publish) moves them to
/// the real directory. Dropping the quarantine, or [`pronto_io::cleanup::remove_all`], removes the
/// directory with its content.
#[derive(Debug)]
pub struct Quarantine {
    path: PathBuf,
    real: Store,
    inner: Store,
    /// Removes the directory on drop; `None` for a quarantine that is kept.
    _guard: Option<Guard>,
    /// A lock that shows pruners that the quarantine is in use.
    _in_use: Option<File>,
}

impl Quarantine {
    /// Creates the temporary directory with its subdirectory for packs.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a directory cannot be created.
    pub fn begin(store: &Store) -> Result<Quarantine, Error> {
        let mut attempts = 0;
        let (path, guard) = loop {
            let path = store
                .path()
                .join(format!("tmp_objdir-incoming-{}", random_name()));
            match fs::create_dir(&path) {
                Ok(()) => break (path.clone(), Guard::new(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < 100 => {
                    attempts += 1;
                }
                Err(error) => {
                    let message = "unable to create temporary object directory";
                    return Err(error).context(ErrorKind::Io, message, &path);
                }
            }
        };
        Quarantine::at(path, store, Some(guard))
    }

    /// Opens the quarantine at `path`, and creates the directory if it does not exist. The
    /// directory and its content stay when the value is dropped, for objects that are received in
    /// several attempts. Only one process at a time may use the directory, which must be on the
    /// same file system as the real object directory.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if the directory cannot be created or read.
    pub fn keep(store: &Store, path: &Path) -> Result<Quarantine, Error> {
        fs::create_dir_all(path).context(ErrorKind::Io, "cannot create", path)?;
        Quarantine::at(path.to_owned(), store, None)
    }

    fn at(path: PathBuf, store: &Store, guard: Option<Guard>) -> Result<Quarantine, Error> {
        make_directory(&path.join("pack"), store.options())?;
        let mut options = store.options().clone();
        options.alternates = std::iter::once(store.path().to_owned())
            .chain(options.alternates)
            .collect();
        Ok(Quarantine {
            _in_use: turns::mark_in_use(&path),
            inner: Store::open_with(&path, options, store.writing().clone())?,
            path,
            real: store.clone(),
            _guard: guard,
        })
    }

    /// Returns whether a process uses the directory at `path`, which may be a quarantine.
    pub fn is_in_use(path: &Path) -> bool {
        turns::is_in_use(path)
    }

    /// Returns the temporary object directory (`GIT_QUARANTINE_PATH`, `GIT_OBJECT_DIRECTORY`).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory for packs and their indexes.
    pub fn pack_directory(&self) -> PathBuf {
        self.path.join("pack")
    }

    /// Returns a store that writes to the temporary directory and also finds all objects of the
    /// real directory.
    pub fn store(&self) -> &Store {
        &self.inner
    }

    /// Moves all received loose objects and packs to the real directory. The index of a pack is
    /// moved last, so no reader finds an index without its pack. Existing files are compared and
    /// stay; a damaged loose object is replaced.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Io` if a file cannot be moved, and with `ErrorKind::Collision` if an
    /// existing pack or object of the same name has other content. Files that were moved before the
    /// failure stay.
    pub fn publish(self) -> Result<(), Error> {
        self.real.begin_writing()?;
        move_directory(&self.path, self.real.path(), &self.real)?;
        self.real.refresh()?;
        Ok(())
    }
}

/// Moves the files of `from` to `to`, including those in subdirectories.
fn move_directory(from: &Path, to: &Path, store: &Store) -> Result<(), Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(from).context(ErrorKind::Io, "cannot list", from)? {
        let entry = entry.context(ErrorKind::Io, "cannot list", from)?;
        let is_directory = entry
            .file_type()
            .context(ErrorKind::Io, "cannot stat", entry.path())?
            .is_dir();
        let name = entry.file_name();
        if !name.as_bytes().starts_with(b".") && !name.as_bytes().starts_with(b"tmp_") {
            names.push((rank(Path::new(&name)), name, is_directory));
        }
    }
    names.sort();
    for (_, name, is_directory) in names {
        let (from, to) = (from.join(&name), to.join(&name));
        if is_directory {
            make_directory(&to, store.options())?;
            move_directory(&from, &to, store)?;
        } else {
            move_file(&from, &to, store)?;
        }
    }
    Ok(())
}

/// Returns the rank of a file in the order in which the files of a pack may become visible.
fn rank(name: &Path) -> u8 {
    match name.extension().and_then(|extension| extension.to_str()) {
        Some("keep") => 0,
        Some("promisor" | "mtimes") => 1,
        Some("pack") => 2,
        Some("rev") => 3,
        Some("idx") => 5,
        _ => 4,
    }
}

/// Moves one file. An existing file at `to` must have the same content.
fn move_file(from: &Path, to: &Path, store: &Store) -> Result<(), Error> {
    match fs::hard_link(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && may_stay(from, to)? => {
            return Ok(());
        }
        // Some file systems do not support hard links.
        Err(_) => {
            fs::rename(from, to).context(ErrorKind::Io, "unable to migrate objects to", to)?
        }
    }
    if let Some(mode) = store.options().sharing.adjust(0o444, false) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(to, permissions).context(
            ErrorKind::Io,
            "cannot set permissions of",
            to,
        )?;
    }
    Ok(())
}

/// Returns whether the existing file at `to` may stay instead of `from`, which has the same name: a
/// pack with the same bytes, or the same loose object, however it is deflated. Returns `false` for
/// a loose object that cannot be read. Indexes and other files of a pack may differ and still be
/// correct.
fn may_stay(from: &Path, to: &Path) -> Result<bool, Error> {
    let open = |path: &Path| File::open(path).context(ErrorKind::Io, "cannot open", path);
    let is_pack = to.extension().is_some_and(|extension| extension == "pack");
    let is_loose = to.extension().is_none()
        && to
            .parent()
            .and_then(Path::file_name)
            .is_some_and(|name| name.len() == 2);
    let same = if is_pack {
        let compared = is_same(&mut open(from)?, &mut open(to)?);
        compared.context(ErrorKind::Io, "cannot read", to)?
    } else if is_loose {
        let inflate = |file: File| {
            let buffered = BufReader::with_capacity(COMPARED_BYTES, file);
            inflate::Reader::new(Format::Zlib, buffered)
        };
        match is_same(&mut inflate(open(from)?), &mut inflate(open(to)?)) {
            Ok(same) => same,
            Err(_) => return Ok(false),
        }
    } else {
        true
    };
    if same {
        return Ok(true);
    }
    let (from, to) = (from.display(), to.display());
    let message = format!("files '{from}' and '{to}' differ in contents");
    Err(Error::new(ErrorKind::Collision, message))
}

/// The size of the pieces in which two files are compared.
const COMPARED_BYTES: usize = 64 << 10;

fn is_same(one: &mut impl Read, other: &mut impl Read) -> io::Result<bool> {
    let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
    loop {
        let [mine, yours] = &mut buffers;
        let (mine, yours) = (fill(one, mine)?, fill(other, yours)?);
        if mine != yours || mine.is_empty() {
            return Ok(mine == yours);
        }
    }
}

/// Fills `buffer`, and returns fewer bytes only at the end of the file.
fn fill<'a>(from: &mut impl Read, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut len = 0;
    while len < buffer.len() {
        match from.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..len])
}
