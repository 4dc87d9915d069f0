//! Manages the shared index file of a split index: finds the current one, decides when to write a
//! new one, and removes old ones.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bstr::BStr;
use pronto_hash::ObjectId;
use pronto_index::{Index, IndexContent, IndexOutline, SharedIndex, Splitting, Writer};
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext;
use pronto_repository::index::freshen;

use crate::config::value::parse_bool;
use crate::errors::from_index;
use crate::{ErrorKind, Repository, Result, revision};

/// The start of the name of shared index files. The digest follows it.
const PREFIX: &str = "sharedindex.";
/// The default of `splitIndex.maxPercentChange`: the share of changed entries from which on a new
/// shared index file is written.
const MAX_PERCENT: usize = 20;

/// Returns whether the index is written as a split index (`core.splitIndex`). As in Git, a value
/// that is not a boolean is ignored.
pub(crate) fn splitting(repository: &Repository) -> Splitting {
    let entry = repository.config().entry_of("core.splitIndex");
    match entry.and_then(|entry| parse_bool(entry.value)) {
        None => Splitting::AsRead,
        Some(true) => Splitting::Split,
        Some(false) => Splitting::Join,
    }
}

/// Whether `index` is split although `core.splitIndex` is false, or the reverse.
pub(crate) fn is_wrongly_split(repository: &Repository, index: &Index) -> bool {
    match splitting(repository) {
        Splitting::Join => index.is_split(),
        Splitting::Split => !index.is_split() && !index.is_sparse(),
        Splitting::AsRead | Splitting::Renew => false,
    }
}

/// Returns the digest of the current shared index file.
fn current_shared(repository: &Repository) -> Option<ObjectId> {
    // Without a shared index file, the index need not be read.
    let mut names = std::fs::read_dir(repository.git_dir()).ok()?;
    names
        .find(|entry| entry.as_ref().is_ok_and(is_shared))?
        .ok()?;
    let outline = IndexOutline::open(&repository.index_path(), repository.object_hash()).ok()?;
    outline.shared_id()
}

/// Whether `content` is to be written as a split index.
pub(crate) fn is_to_be_split(
    repository: &Repository,
    writer: &Writer,
    content: &IndexContent<'_>,
) -> bool {
    let is_sparse = content.sparse || content.entries.iter().any(|it| it.is_sparse_directory());
    !is_sparse
        && match writer.splitting {
            Splitting::Join => false,
            Splitting::Split | Splitting::Renew => true,
            Splitting::AsRead => current_shared(repository).is_some(),
        }
}

/// Encodes a split index. Writes a new shared index file first, if needed.
pub(crate) fn encode_split(
    repository: &Repository,
    writer: &Writer,
    content: &IndexContent<'_>,
) -> Result<Vec<u8>> {
    let kept = match writer.splitting {
        Splitting::Renew => None,
        _ => current_shared(repository),
    };
    let open = |id| SharedIndex::open(repository.git_dir(), id, content.kind).ok();
    let percent = max_percent(repository)?;
    let kept = kept.and_then(open);
    if let Some(kept) = kept.filter(|kept| !content.outgrows(kept, percent)) {
        freshen(&SharedIndex::path(repository.git_dir(), &kept.id()));
        return writer.encode_split(content, &kept).map_err(from_index);
    }
    let (shared, bytes) = writer.encode_shared(content).map_err(from_index)?;
    put_shared(repository, &shared, &bytes)?;
    remove_old_shared(repository, shared.id())?;
    writer.encode_split(content, &shared).map_err(from_index)
}

fn max_percent(repository: &Repository) -> Result<usize> {
    let configured = repository.config().i64("splitIndex.maxPercentChange")?;
    let percent = configured.and_then(|percent| usize::try_from(percent).ok());
    Ok(percent
        .filter(|percent| *percent <= 100)
        .unwrap_or(MAX_PERCENT))
}

fn put_shared(repository: &Repository, shared: &SharedIndex, bytes: &[u8]) -> Result<()> {
    let path = SharedIndex::path(repository.git_dir(), &shared.id());
    let mut prepared = path.clone().into_os_string();
    prepared.push(format!(".{}", std::process::id()));
    let prepared = std::path::PathBuf::from(prepared);
    let kind = ErrorKind::Io;
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&prepared)
        .context(kind, "unable to create", &prepared)?;
    let guard = Guard::new(&prepared);
    file.write_all(bytes)
        .context(kind, "unable to write", &prepared)?;
    std::fs::rename(&prepared, &path).context(kind, "unable to write new index file", &path)?;
    guard.keep();
    Ok(())
}

/// Removes shared index files that were not used since `splitIndex.sharedIndexExpire`.
fn remove_old_shared(repository: &Repository, current: ObjectId) -> Result<()> {
    let limit = match repository.config().string("splitIndex.sharedIndexExpire")? {
        Some(text) => moment(text),
        None => moment(BStr::new("2.weeks.ago")),
    };
    let (Some(limit), Ok(names)) = (limit, std::fs::read_dir(repository.git_dir())) else {
        return Ok(());
    };
    let current = format!("{PREFIX}{current}");
    for entry in names.flatten() {
        let is_other = is_shared(&entry) && entry.file_name() != *current;
        let used = entry.metadata().and_then(|metadata| metadata.modified());
        if is_other && used.is_ok_and(|used| used <= limit) {
            // Another process has removed it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn is_shared(entry: &std::fs::DirEntry) -> bool {
    entry
        .file_name()
        .as_encoded_bytes()
        .starts_with(PREFIX.as_bytes())
}

/// Parses the expiry time `text`; `None` if it is `never` or malformed.
fn moment(text: &BStr) -> Option<SystemTime> {
    let seconds = u64::try_from(revision::approximate_date(text))
        .ok()
        .filter(|&seconds| seconds != 0)?;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}
