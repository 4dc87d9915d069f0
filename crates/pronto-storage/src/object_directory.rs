//! Finds the object directory that an option names.

use std::path::PathBuf;

use pronto_config::path;
use pronto_repository::{Error, ErrorKind, Repository, Result};

/// The object directory that `given` names, and its number among those of the repository.
///
/// # Errors
/// It is none of them.
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
