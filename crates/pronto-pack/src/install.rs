//! The last step of writing a pack: sorts ids, writes indexes, and renames all files to their final
//! names, the index last.

use crate::error::{Error, ErrorKind};
use crate::idx::write::{self as idx, IndexTable};
use crate::index_options::Options;
use crate::rev;
use crate::temporary::TemporaryFile;
use pronto_hash::{Kind, ObjectId};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::region;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The number of ids below which they are sorted on one thread.
const SORT_ALONE: usize = 1 << 15;

/// The mode of files whose paths the caller specifies, as in Git; the umask does not apply to them.
const NAMED_MODE: u32 = 0o444;

/// The names of the files of a pack.
pub(crate) struct PackFileNames {
    pub(crate) pack: PathBuf,
    pub(crate) index: PathBuf,
    /// Whether an existing pack is replaced, because the caller specifies its path; otherwise the
    /// existing file stays.
    pub(crate) replaces_pack: bool,
    /// Whether an existing index is replaced, because the caller specifies its path.
    pub(crate) replaces_index: bool,
    /// Whether an existing index must have the same content.
    pub(crate) compares_index: bool,
}

impl PackFileNames {
    /// Returns the paths for the pack with this checksum in `directory`, or the paths in the
    /// options.
    pub(crate) fn new(directory: &Path, options: &Options, checksum: &ObjectId) -> PackFileNames {
        let by_checksum = || {
            let mut name = options.name_prefix.clone().unwrap_or_else(|| "pack".into());
            name.push(format!("-{checksum}.pack"));
            directory.join(name)
        };
        let pack = options.pack_path.clone().unwrap_or_else(by_checksum);
        PackFileNames {
            index: match &options.index_path {
                Some(path) => path.clone(),
                None => pack.with_extension("idx"),
            },
            replaces_pack: options.pack_path.is_some(),
            replaces_index: options.pack_path.is_some() || options.index_path.is_some(),
            compares_index: false,
            pack,
        }
    }

    /// Returns the permissions to set for the pack.
    fn pack_permissions(&self, options: &Options) -> Option<u32> {
        let named = self.replaces_pack.then_some(NAMED_MODE);
        options.permissions.or(named)
    }

    /// Returns the permissions to set for the indexes.
    fn index_permissions(&self, options: &Options) -> Option<u32> {
        let named = self.replaces_index.then_some(NAMED_MODE);
        options.permissions.or(named)
    }
}

/// Creates an empty file exclusively, so that no other process uses the path. The guard removes the
/// file.
pub(crate) fn reserve(path: &Path) -> Result<Guard, Error> {
    let mut open = File::options();
    open.write(true).create_new(true).mode(0o600);
    open.open(path)
        .context(ErrorKind::Io, "unable to create", path)?;
    Ok(Guard::new(path))
}

/// Returns the parent directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Returns the entry numbers sorted by id; entries with the same id are sorted by number.
pub(crate) fn sort_by_id(ids: &[u8], kind: Kind, threads: usize) -> Vec<u32> {
    let id_len = kind.len_in_bytes();
    let mut keys: Vec<(u64, u32)> = ids
        .chunks_exact(id_len)
        .zip(0..)
        .map(|(id, number)| {
            let first = id.first_chunk().expect("ids are longer than eight bytes");
            (u64::from_be_bytes(*first), number)
        })
        .collect();
    sort_keys(&mut keys, ids, id_len, threads);
    keys.into_iter().map(|(_, number)| number).collect()
}

fn sort_keys(keys: &mut [(u64, u32)], ids: &[u8], id_len: usize, threads: usize) {
    let id = |number: u32| &ids[number as usize * id_len..][..id_len];
    let compare = |a: &(u64, u32), b: &(u64, u32)| {
        a.0.cmp(&b.0)
            .then_with(|| id(a.1).cmp(id(b.1)))
            .then(a.1.cmp(&b.1))
    };
    if threads < 2 || keys.len() < SORT_ALONE {
        keys.sort_unstable_by(compare);
        return;
    }
    let middle = keys.len() / 2;
    keys.select_nth_unstable_by(middle, compare);
    let (low, high) = keys.split_at_mut(middle);
    std::thread::scope(|scope| {
        scope.spawn(|| sort_keys(low, ids, id_len, threads / 2));
        sort_keys(high, ids, id_len, threads - threads / 2);
    });
}

/// The indexes of a pack, written under temporary names.
struct Indexes {
    index: TemporaryFile,
    reverse: Option<TemporaryFile>,
}

/// Writes the indexes under temporary names.
fn write_indexes(
    names: &PackFileNames,
    options: &Options,
    rows: &IndexTable<'_>,
    checksum: &ObjectId,
) -> Result<Indexes, Error> {
    let directory = directory_of(&names.index);
    let index = TemporaryFile::create(directory, "idx")?;
    let limit = options.index_offset_limit;
    idx::write(
        &mut &index.file,
        rows,
        options.index_version,
        limit,
        checksum,
    )
    .context(ErrorKind::Io, "unable to write", &index.path)?;
    let reverse = if options.reverse_index {
        let reverse = TemporaryFile::create(directory, "rev")?;
        rev::write(&mut &reverse.file, rows.kind, &places(rows.order), checksum).context(
            ErrorKind::Io,
            "unable to write",
            &reverse.path,
        )?;
        Some(reverse)
    } else {
        None
    };
    for file in std::iter::once(&index).chain(&reverse) {
        file.permit(names.index_permissions(options))?;
        file.sync(options.sync_indexes)?;
    }
    Ok(Indexes { index, reverse })
}

/// Writes the indexes of the pack and renames all files to their final names. Returns the `.keep`
/// file, if it is new.
pub(crate) fn install(
    names: &PackFileNames,
    options: &Options,
    rows: &IndexTable<'_>,
    pack: TemporaryFile,
    checksum: &ObjectId,
) -> Result<Option<PathBuf>, Error> {
    let _region = region!("index-pack", "install");
    let indexes = write_indexes(names, options, rows, checksum)?;
    let marks = PackMarkers::make(names, options)?;
    pack.permit(names.pack_permissions(options))?;
    if names.replaces_pack {
        pack.rename(&names.pack)?;
    } else {
        rename_into_place(pack, &names.pack)?;
    }
    indexes.install(names)?;
    Ok(marks.keep(names))
}

/// Writes the indexes of an existing pack, replacing old ones. Returns the `.keep` file, if it is
/// new.
pub(crate) fn install_beside(
    names: &PackFileNames,
    options: &Options,
    rows: &IndexTable<'_>,
    checksum: &ObjectId,
) -> Result<Option<PathBuf>, Error> {
    let _region = region!("index-pack", "install");
    let indexes = write_indexes(names, options, rows, checksum)?;
    let marks = PackMarkers::make(names, options)?;
    indexes.install(names)?;
    Ok(marks.keep(names))
}

impl Indexes {
    /// Renames the indexes to their final names, the pack index last.
    fn install(self, names: &PackFileNames) -> Result<(), Error> {
        if let Some(reverse) = self.reverse {
            put_index(reverse, &names.index.with_extension("rev"), names)?;
        }
        put_index(self.index, &names.index, names)
    }
}

/// Renames an index to its final name. An existing index, which may be of another version, is kept
/// unless it must be compared or replaced.
fn put_index(index: TemporaryFile, to: &Path, names: &PackFileNames) -> Result<(), Error> {
    if names.replaces_index {
        return index.rename(to);
    }
    match names.compares_index {
        true => rename_into_place(index, to),
        false if to.exists() => Ok(()),
        false => index.rename(to),
    }
}

/// The `.keep` and `.promisor` files of the pack, which are removed if a later step fails.
struct PackMarkers {
    keep: Option<Guard>,
    promisor: Option<Guard>,
}

impl PackMarkers {
    fn make(names: &PackFileNames, options: &Options) -> Result<PackMarkers, Error> {
        let name = |extension: &str| names.pack.with_extension(extension);
        Ok(PackMarkers {
            keep: mark(&name("keep"), options.keep.as_deref())?,
            promisor: mark(&name("promisor"), options.promisor.as_deref())?,
        })
    }

    /// Keeps the files. Returns the `.keep` file, if it is new.
    fn keep(self, names: &PackFileNames) -> Option<PathBuf> {
        if let Some(promisor) = self.promisor {
            promisor.keep();
        }
        self.keep?.keep();
        Some(names.pack.with_extension("keep"))
    }
}

/// Returns the inverse of `order`: the row in the index of each entry of the pack.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut rows = vec![0; order.len()];
    for (place, row) in order.iter().zip(0..) {
        rows[*place as usize] = row;
    }
    rows
}

/// Writes a `.keep` or `.promisor` file, if requested. An existing file stays. The guard of a new
/// file removes it if a later step fails.
fn mark(path: &Path, text: Option<&[u8]>) -> Result<Option<Guard>, Error> {
    let Some(text) = text else {
        return Ok(None);
    };
    let mut open = File::options();
    match open.write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let guard = Guard::new(path);
            file.write_all(text)
                .context(ErrorKind::Io, "cannot write", path)?;
            Ok(Some(guard))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error).context(ErrorKind::Io, "cannot write", path),
    }
}

/// Renames a file to its final name. An existing file of that name stays, and must have the same
/// content.
fn rename_into_place(temporary: TemporaryFile, to: &Path) -> Result<(), Error> {
    match File::open(to) {
        Ok(existing) => {
            let same = same_content(&temporary.path, &existing).context(
                ErrorKind::Io,
                "cannot compare with",
                to,
            )?;
            if same {
                return Ok(());
            }
            let (from, shown) = (temporary.path.display(), to.display());
            let message = format!("files '{from}' and '{shown}' differ in contents");
            Err(Error::new(ErrorKind::Collision, message).at_path(to))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => temporary.rename(to),
        Err(error) => Err(error).context(ErrorKind::Io, "cannot open", to),
    }
}

fn same_content(path: &Path, other: &File) -> std::io::Result<bool> {
    const PIECE_BYTES: u64 = 1 << 16;
    let one = File::open(path)?;
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (Vec::new(), Vec::new());
    loop {
        a.clear();
        b.clear();
        (&one).take(PIECE_BYTES).read_to_end(&mut a)?;
        other.take(PIECE_BYTES).read_to_end(&mut b)?;
        if a != b {
            return Ok(false);
        }
        if a.is_empty() {
            return Ok(true);
        }
    }
}
