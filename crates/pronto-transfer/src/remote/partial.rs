//! Partial clones: object filters, and promisor remotes.

use bstr::{BStr, BString};

use super::Remote;
use pronto_repository::Notice;

use crate::config::{edit, value::parse_u64};
use crate::{Error, ErrorKind, Repository, Result};

/// The filter that a person wrote as `spec`, as it is sent and remembered: a limit is a number of
/// bytes without unit.
///
/// # Errors
/// It is none that Git knows.
pub fn filter_spec(spec: &BStr) -> Result<BString> {
    let fail = |message: String| Err(Error::new(ErrorKind::InvalidInput, message));
    let unknown = || fail(format!("invalid filter-spec '{spec}'"));
    let after = |prefix: &str| spec.strip_prefix(prefix.as_bytes()).map(BStr::new);
    if let Some(limit) = after("blob:limit=") {
        return match parse_u64(limit) {
            Ok(bytes) => Ok(format!("blob:limit={bytes}").into()),
            Err(_) => unknown(),
        };
    }
    if let Some(depth) = after("tree:") {
        if parse_u64(depth).is_err() {
            return fail("expected 'tree:<depth>'".into());
        }
    } else if after("sparse:path=").is_some() {
        return fail("sparse:path filters support has been dropped".into());
    } else if let Some(kind) = after("object:type=") {
        if gix_object::Kind::from_bytes(kind).is_err() {
            let message = format!("'{kind}' for 'object:type=<type>' is not a valid object type");
            return fail(message);
        }
    } else if let Some(parts) = after("combine:") {
        if parts.is_empty() {
            return fail("expected something after combine:".into());
        }
    } else if spec != "blob:none" && after("sparse:oid=").is_none() {
        return unknown();
    }
    Ok(spec.to_owned())
}

/// Checks that no extension would come into force with the newer format that nobody knows.
fn check_extensions(repository: &Repository) -> Result<()> {
    const KNOWN: &[&str] = &[
        "compatobjectformat",
        "noop",
        "noop-v1",
        "objectformat",
        "partialclone",
        "preciousobjects",
        "refstorage",
        "relativeworktrees",
        "submodulepathconfig",
        "worktreeconfig",
    ];
    for entry in repository.config().iter() {
        if let Some(name) = entry.key.strip_prefix(b"extensions.")
            && !KNOWN.iter().any(|known| known.as_bytes() == name)
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

/// Notes in the repository's configuration that `remote` holds what `filter` leaves out, and that
/// `filter` is what to ask of it from now on, unless another one is.
pub(crate) fn register(repository: &Repository, remote: &Remote, filter: &BStr) -> Result<()> {
    if remote.partial_clone_filter.is_some() {
        return Ok(());
    }
    let file = repository.common_dir().join("config");
    let set = |key: &str, value: &BStr| edit::set_in_file(&file, key, value);
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
