//! Finds the object directory that `--object-dir` names.

use std::path::PathBuf;

use pronto_config::path;
use pronto_repository::{Error, ErrorKind, Repository, Result};

/// Returns the object directory that `given` names, and its number among the repository's own directory
/// (0) and its alternates.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if `given` is not an object directory of the repository.
pub(crate) fn find(repository: &Repository, given: Option<&PathBuf>) -> Result<(PathBuf, usize)> {
    let store = repository.objects()?;
    let Some(given) = given else {
        return Ok((store.path().to_owned(), 0));
    };
    let real = |path: &std::path::Path| std::fs::canonicalize(path).ok();
    let wanted = real(&repository.environment().resolve(given));
    let mut known = std::iter::once(store.path())
        .chain(store.alternates().iter().map(PathBuf::as_path))
        .enumerate();
    let found = known.find(|(_, path)| wanted.is_some() && real(path) == wanted);
    found
        .map(|(number, path)| (path.to_owned(), number))
        .ok_or_else(|| {
            let given = path::as_bytes(given);
            let message = format!("could not find object directory matching {given}");
            Error::new(ErrorKind::Unsupported, message)
        })
}
