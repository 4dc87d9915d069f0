//! The end: ids sorted, indexes written, and all files under their names, the index last.

use super::Options;
use super::spool::Temporary;
use crate::error::{Error, ErrorKind};
use crate::idx::write::{self as idx, Rows};
use crate::rev;
use pronto_hash::{Kind, ObjectId};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_io::region;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Fewer ids than this are sorted on one thread.
const SORT_ALONE: usize = 1 << 15;

/// The files of a pack.
pub(super) struct Files {
    pub(super) pack: PathBuf,
    pub(super) index: PathBuf,
    pub(super) keep: Option<PathBuf>,
}

/// Numbers of entries by rising id; those of one id by rising number.
pub(super) fn sort_by_id(ids: &[u8], kind: Kind, threads: usize) -> Vec<u32> {
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
    index: Temporary,
    reverse: Option<Temporary>,
}

/// Writes the indexes into `directory`.
fn write_indexes(
    directory: &Path,
    options: &Options,
    rows: &Rows<'_>,
    checksum: &ObjectId,
) -> Result<Indexes, Error> {
    let index = Temporary::create(directory, "idx")?;
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
        let reverse = Temporary::create(directory, "rev")?;
        rev::write(&mut &reverse.file, rows.kind, &places(rows.order), checksum).context(
            ErrorKind::Io,
            "unable to write",
            &reverse.path,
        )?;
        Some(reverse)
    } else {
        None
    };
    if options.sync {
        index.sync()?;
        reverse.as_ref().map_or(Ok(()), Temporary::sync)?;
    }
    Ok(Indexes { index, reverse })
}

/// Writes the indexes of the pack and gives all files their names.
pub(super) fn install(
    directory: &Path,
    options: &Options,
    rows: &Rows<'_>,
    (pack, checksum): (Temporary, &ObjectId),
) -> Result<Files, Error> {
    let _region = region!("index-pack", "install");
    let name = |extension: &str| directory.join(format!("pack-{checksum}.{extension}"));
    let indexes = write_indexes(directory, options, rows, checksum)?;
    let keep = mark(&name("keep"), options.keep.as_deref())?;
    let promisor = mark(&name("promisor"), options.promisor.as_deref())?;
    put_in_place(pack, &name("pack"))?;
    if let Some(reverse) = indexes.reverse {
        put_in_place(reverse, &name("rev"))?;
    }
    put_in_place(indexes.index, &name("idx"))?;
    for guard in [keep, promisor].into_iter().flatten().flatten() {
        guard.keep();
    }
    Ok(Files {
        pack: name("pack"),
        index: name("idx"),
        keep: options.keep.as_ref().map(|_| name("keep")),
    })
}

/// Writes the indexes of a pack that is there already; old ones of their names go.
pub(super) fn install_beside(
    index: &Path,
    options: &Options,
    rows: &Rows<'_>,
    checksum: &ObjectId,
) -> Result<(), Error> {
    let _region = region!("index-pack", "install");
    let directory = match index.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let indexes = write_indexes(directory, options, rows, checksum)?;
    if let Some(reverse) = indexes.reverse {
        reverse.rename(&index.with_extension("rev"))?;
    }
    indexes.index.rename(index)
}

/// The inverse of `order`: for each entry of the pack its row in the index.
fn places(order: &[u32]) -> Vec<u32> {
    let mut rows = vec![0; order.len()];
    for (place, row) in order.iter().zip(0..) {
        rows[*place as usize] = row;
    }
    rows
}

/// Writes a file beside the pack that marks it; one that is there stays as it is. The guard, if
/// the file is new, removes it should the rest fail.
#[expect(
    clippy::option_option,
    reason = "not asked for, was there, or was made: three different things"
)]
fn mark(path: &Path, text: Option<&[u8]>) -> Result<Option<Option<Guard>>, Error> {
    let Some(text) = text else {
        return Ok(None);
    };
    let mut open = File::options();
    match open.write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let guard = Guard::new(path);
            file.write_all(text)
                .context(ErrorKind::Io, "cannot write", path)?;
            Ok(Some(Some(guard)))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(Some(None)),
        Err(error) => Err(error).context(ErrorKind::Io, "cannot write", path),
    }
}

/// Gives a file its name. One of that name that is there already stays, and must be the same.
fn put_in_place(temporary: Temporary, to: &Path) -> Result<(), Error> {
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
            Err(
                Error::new(ErrorKind::Collision, "files of one name differ in contents")
                    .at_path(to),
            )
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
