//! Opens the repository that a client requests by its path.

use std::path::Path;

use bstr::ByteSlice;
use pronto_config::safety;

use crate::remote::connection::from_wire;
use crate::{Environment, Error, ErrorKind, Repository, Result};

/// Opens the repository that `path` names, like Git's servers: at the path, or with one of the
/// usual suffixes, but never in a parent directory. The environment variables that select another
/// repository are removed.
///
/// # Errors
/// Fails with [`ErrorKind::NotARepository`] if there is no repository, and with
/// [`ErrorKind::Unsafe`] if it belongs to another user (`safe.directory`).
pub(crate) fn enter(path: &Path, environment: &Environment) -> Result<Repository> {
    let mut environment = environment.clone();
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR"] {
        environment.remove(name);
    }
    let given = environment.absolute(path);
    let given = given.as_os_str().as_encoded_bytes();
    let given = given.trim_end_with(|byte| byte == '/');
    for ending in ["/.git", "", ".git/.git", ".git"] {
        let candidate = [given, ending.as_bytes()].concat();
        let Some(found) = Repository::resolve_git_dir(candidate.as_bstr(), &environment)? else {
            continue;
        };
        let file = crate::path::borrow(&candidate);
        let real = std::fs::canonicalize(&found);
        let git_dir = real.as_deref().unwrap_or(&found);
        let parts = safety::DiscoveredPaths {
            git_file: file.is_file().then_some(file),
            work_tree: None,
            git_dir,
        };
        safety::check_owner(&parts, &environment)?;
        return Repository::open_served(git_dir, &environment);
    }
    let shown = crate::path::as_bytes(path);
    let message = format!("'{shown}' does not appear to be a git repository");
    Err(Error::new(ErrorKind::NotARepository, message))
}

/// Converts an error of the protocol: the request is refused, unless the connection broke.
pub(crate) fn from_client(error: pronto_wire::Error) -> Error {
    use pronto_wire::ErrorKind as Wire;
    match error.kind() {
        Wire::Malformed | Wire::Remote | Wire::Disconnected => {
            error.map_kind(|_| ErrorKind::Refused)
        }
        _ => from_wire(error),
    }
}
