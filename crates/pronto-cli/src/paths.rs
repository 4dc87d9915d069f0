//! Formats and parses worktree paths.

use std::io::BufRead;

use bstr::{BStr, BString};
use pronto::quote::{c_quote_into, c_unquote};

use crate::CliError;

/// Names from standard input, read on demand: one on each line, C-style quoted if the line begins
/// with a double quote, or each terminated by a NUL byte (`-z`).
pub(crate) struct InputNames {
    null: bool,
    input: std::io::StdinLock<'static>,
}

impl InputNames {
    pub(crate) fn new(null: bool) -> Self {
        let input = std::io::stdin().lock();
        InputNames { null, input }
    }

    /// Returns the next name, or `None` at the end of the input.
    pub(crate) fn next(&mut self) -> Result<Option<BString>, CliError> {
        let end = if self.null { 0 } else { b'\n' };
        let mut line = Vec::new();
        let read = self.input.read_until(end, &mut line);
        let count =
            read.map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
        if count == 0 {
            return Ok(None);
        }
        if line.last() == Some(&end) {
            line.pop();
        }
        if !self.null && line.first() == Some(&b'"') {
            line = c_unquote(&line).ok_or_else(|| CliError::fatal("line is badly quoted"))?;
        }
        Ok(Some(line.into()))
    }
}

/// Converts the error of a pathspec. A call with pathspec magic that pronto lacks is handed to git.
pub(crate) fn pathspec_error(error: pronto::Error) -> CliError {
    match error.kind() {
        pronto::ErrorKind::Unsupported => CliError::lacking(error.message()),
        pronto::ErrorKind::InvalidInput => CliError::fatal(error.message()),
        _ => error.into(),
    }
}

/// The paths that are quoted in addition to paths with control characters, quotes and backslashes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoting {
    /// Whether paths that are not ASCII are quoted (`core.quotePath`).
    pub(crate) non_ascii: bool,
    /// Whether paths that contain a space are quoted.
    pub(crate) spaces: bool,
}

/// Formats `path` relative to the directory `prefix`, quoted if necessary.
pub(crate) fn shown_path(path: &BStr, prefix: &BStr, quoting: Quoting) -> BString {
    let seen = relative(path, prefix);
    let mut out = Vec::with_capacity(seen.len() + 2);
    c_quote_into(&seen, quoting.non_ascii, &mut out);
    if quoting.spaces && out.first() != Some(&b'"') && out.contains(&b' ') {
        out.insert(0, b'"');
        out.push(b'"');
    }
    out.into()
}

/// Returns `path` relative to the directory `prefix` (empty, or with a slash at its end).
pub(crate) fn relative(path: &BStr, prefix: &BStr) -> BString {
    if prefix.is_empty() {
        return path.to_owned();
    }
    let mut common = 0;
    for (at, (one, two)) in path.iter().zip(prefix.iter()).enumerate() {
        if one != two {
            break;
        }
        if *one == b'/' {
            common = at + 1;
        }
    }
    // `path` is the directory `prefix` or one of its parents.
    if prefix.starts_with(path) && prefix.get(path.len()) == Some(&b'/') {
        common = path.len() + 1;
    }
    let ups = prefix[common..]
        .iter()
        .filter(|&&byte| byte == b'/')
        .count();
    let mut seen = b"../".repeat(ups);
    seen.extend_from_slice(path.get(common..).unwrap_or_default());
    if seen.is_empty() {
        seen.extend_from_slice(b"./");
    }
    seen.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_seen_from_where_one_stands() {
        let seen = |path: &str, prefix: &str| relative(path.into(), prefix.into()).to_string();
        assert_eq!(seen("a/b", ""), "a/b");
        assert_eq!(seen("a/b", "a/"), "b");
        assert_eq!(seen("ab", "a/"), "../ab");
        assert_eq!(seen("a/b/c", "a/d/e/"), "../../b/c");
        assert_eq!(seen("a/", "a/"), "./");
        assert_eq!(seen("a", "a/"), "./");
        assert_eq!(seen("a", "a/b/"), "../");
        assert_eq!(seen("x", "a/b/"), "../../x");
    }

    #[test]
    fn paths_with_spaces_are_quoted_where_that_matters() {
        let shown = |path: &str, spaces| {
            let quoting = Quoting {
                non_ascii: true,
                spaces,
            };
            shown_path(path.into(), "".into(), quoting)
        };
        assert_eq!(shown("a b", true), "\"a b\"");
        assert_eq!(shown("a b", false), "a b");
        assert_eq!(shown("a\tb c", true), "\"a\\tb c\"");
    }
}
