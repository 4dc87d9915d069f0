//! The object directories of a store: its own directory, its alternates, and their alternates.
//! Format: `gitrepository-layout(5)`, `objects/info/alternates`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use pronto_io::error::IoContext as _;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, SymlinkPolicy};

use crate::error::{Error, ErrorKind};

/// The largest nesting depth of alternates.
const MAX_DEPTH: usize = 5;

/// The object directories to search, the store's own directory first, and the errors of unusable
/// alternates.
#[derive(Debug)]
pub(crate) struct ObjectDirectories {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) warnings: Vec<Error>,
}

/// Collects the alternates of `objects`, then the directories in `extra` and their alternates. A
/// directory that is named several times is added once, so that cyclic alternates end.
///
/// # Errors
/// Fails with `ErrorKind::Io` if an existing `info/alternates` cannot be read.
pub(crate) fn resolve(objects: &Path, extra: &[PathBuf]) -> Result<ObjectDirectories, Error> {
    let mut found = ObjectDirectories {
        paths: vec![objects.to_owned()],
        warnings: Vec::new(),
    };
    let mut known = vec![real(objects)];
    // The directories still to read, in reverse order.
    let mut waiting: Vec<(PathBuf, usize)> = Vec::new();
    push_list(objects, 0, &mut waiting, &mut found.warnings)?;
    waiting.extend(extra.iter().rev().map(|path| (path.clone(), 0)));
    while let Some((path, depth)) = waiting.pop() {
        let named = path;
        let path = pronto_config::path::normalize(&named);
        let real = real(&path);
        if known.contains(&real) {
            continue;
        }
        if !path.is_dir() {
            let message = "object directory does not exist; check info/alternates";
            // As in Git, a path that leads nowhere is not normalised.
            let is_near = path.parent().is_some_and(Path::exists);
            let path = if is_near { &path } else { &named };
            let warning = Error::new(ErrorKind::Missing, message).at_path(path);
            found.warnings.push(warning);
            continue;
        }
        push_list(&path, depth + 1, &mut waiting, &mut found.warnings)?;
        known.push(real);
        found.paths.push(path);
    }
    Ok(found)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn push_list(
    objects: &Path,
    depth: usize,
    waiting: &mut Vec<(PathBuf, usize)>,
    warnings: &mut Vec<Error>,
) -> Result<(), Error> {
    let list = objects.join("info/alternates");
    let bytes = match untrusted::read(&list, SymlinkPolicy::Follow, LARGEST_POINTER_BYTES) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(error).context(ErrorKind::Io, "cannot read", &list),
    };
    if depth > MAX_DEPTH {
        let message = "ignoring alternate object stores, nesting too deep";
        warnings.push(Error::new(ErrorKind::Limit, message).at_path(&list));
        return Ok(());
    }
    // `..` counts from the real directory, as for the kernel; the path is normalised as text.
    let base = real(objects);
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    for line in lines.filter(|line| !line.is_empty() && line[0] != b'#') {
        let path = PathBuf::from(OsString::from_vec(unquote(line)));
        // `join` replaces the base if `path` is absolute.
        waiting.push((base.join(path), depth));
    }
    Ok(())
}

/// Removes C-style quoting from a line that begins with a double quote. A line whose quoting is not
/// closed, or is closed before the end of the line, is returned unchanged.
fn unquote(line: &[u8]) -> Vec<u8> {
    pronto_config::quote::c_unquote(line).unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::unquote;

    #[test]
    fn quotes_are_those_of_c() {
        for (line, expected) in [
            (&b"plain/path"[..], &b"plain/path"[..]),
            (b"\"a\\tb\\\"c\\303\\251\"", b"a\tb\"c\xc3\xa9"),
            (b"\"not ended", b"\"not ended"),
            (b"\"bad \\q\"", b"\"bad \\q\""),
            (b"\"", b"\""),
        ] {
            assert_eq!(unquote(line), expected);
        }
    }
}
