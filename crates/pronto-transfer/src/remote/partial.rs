//! Partial clones: object filters, and promisor remotes.

use bstr::{BStr, BString, ByteSlice};
use pronto_storage::pack_objects::ObjectFilter;

use pronto_config::format::{EXTENSIONS_OF_ANY_VERSION, EXTENSIONS_OF_VERSION_ONE};

use super::Remote;
use crate::config::edit;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_repository::Notice;

/// Normalizes the filter `spec` of a user, for sending and recording: a limit becomes a number of
/// bytes without unit.
///
/// # Errors
/// Fails if Git does not support the filter.
pub fn filter_spec(spec: &BStr) -> Result<BString> {
    match ObjectFilter::parse(spec)? {
        filter @ ObjectFilter::BlobLimit(_) => Ok(filter.to_spec()),
        _ => Ok(spec.to_owned()),
    }
}

/// Combines `specs` into a filter that omits an object if one of them omits it (`combine:`).
///
/// # Errors
/// Fails if Git does not support one of the filters.
pub fn combined_filter(specs: &[BString]) -> Result<BString> {
    let parts = specs.iter().map(|spec| ObjectFilter::parse(spec.as_bstr()));
    Ok(ObjectFilter::Combine(parts.collect::<Result<_>>()?).to_spec())
}

/// Returns whether the local history is complete and unmodified: the repository is not shallow and
/// not a partial clone, and has no grafts and no replace refs.
///
/// # Errors
/// Fails if the files with this information cannot be read.
pub fn has_whole_history(repository: &Repository) -> Result<bool> {
    Ok(repository.has_plain_history()?
        && !repository.objects()?.has_replacements()
        && !repository.has_promisor()?)
}

/// Checks that no unknown extension would become effective with repository format version 1.
fn check_extensions(repository: &Repository) -> Result<()> {
    let known = || {
        EXTENSIONS_OF_ANY_VERSION
            .iter()
            .chain(&EXTENSIONS_OF_VERSION_ONE)
    };
    for entry in repository.config().iter() {
        if let Some(name) = entry.key.strip_prefix(b"extensions.")
            && !known().any(|known| known.as_bytes() == name)
        {
            let message = "unable to upgrade repository format to support partial clone";
            let name = BStr::new(name);
            let cause = format!("cannot upgrade repository format: unknown extension {name}");
            let cause = Error::new(ErrorKind::UnknownFormat, cause);
            repository.notify(Notice::Failure(cause));
            return Err(Error::new(ErrorKind::UnknownFormat, message));
        }
    }
    Ok(())
}

/// Records in the repository's configuration that `remote` is a promisor remote, and that later
/// fetches from it use `filter`, unless another filter is configured.
pub(crate) fn register(repository: &Repository, remote: &Remote, filter: &BStr) -> Result<()> {
    if remote.partial_clone_filter.is_some() {
        return Ok(());
    }
    let file = repository.common_dir().join("config");
    let set = |key: &str, value: &BStr| edit::set_in_file(&file, key, value, repository.config());
    if !remote.promisor {
        let version = repository.config().i64("core.repositoryformatversion")?;
        if version.unwrap_or_default() < 1 {
            check_extensions(repository)?;
            set("core.repositoryformatversion", "1".into())?;
        }
        set(&format!("remote.{}.promisor", remote.name), "true".into())?;
    }
    set(
        &format!("remote.{}.partialclonefilter", remote.name),
        filter,
    )
}
