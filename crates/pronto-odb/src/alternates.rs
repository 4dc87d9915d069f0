//! The object directories of a store: its own, its alternates, and theirs. Format:
//! `gitrepository-layout(5)`, `objects/info/alternates`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use pronto_io::error::IoContext as _;
use pronto_io::untrusted::{self, LARGEST_POINTER_BYTES, Links};

use crate::error::{Error, ErrorKind};

/// The largest depth of alternates of alternates.
const MAX_DEPTH: usize = 5;

/// The directories to look in, the store's own first, and what was wrong with others.
#[derive(Debug)]
pub(crate) struct Directories {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) warnings: Vec<Error>,
}

/// Follows the alternates of `objects`, then those in `extra`. Each directory counts once, however
/// often it is named, so that circles end.
///
/// # Errors
/// `Io` when a list of alternates exists and cannot be read.
pub(crate) fn resolve(objects: &Path, extra: &[PathBuf]) -> Result<Directories, Error> {
    let mut found = Directories {
        paths: vec![objects.to_owned()],
        warnings: Vec::new(),
    };
    let mut known = vec![real(objects)];
    // Directories still to be read, in reverse order.
    let mut waiting: Vec<(PathBuf, usize)> = Vec::new();
    push_list(objects, 0, &mut waiting, &mut found.warnings)?;
    waiting.extend(extra.iter().rev().map(|path| (path.clone(), 0)));
    while let Some((path, depth)) = waiting.pop() {
        let real = real(&path);
        if known.contains(&real) {
            continue;
        }
        if !path.is_dir() {
            let message = "object directory does not exist; check info/alternates";
            let warning = Error::new(ErrorKind::Missing, message).at_path(&path);
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
    let bytes = match untrusted::read(&list, Links::Follow, LARGEST_POINTER_BYTES) {
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
    let lines = bytes.split(|byte| *byte == b'\n').rev();
    for line in lines.filter(|line| !line.is_empty() && line[0] != b'#') {
        let path = PathBuf::from(OsString::from_vec(unquote(line)));
        // An absolute path replaces what it is joined to.
        waiting.push((objects.join(path), depth));
    }
    Ok(())
}

/// A line that begins with a double quote is quoted as in C; one that is not ended, or ends too
/// early, is taken as it stands.
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
