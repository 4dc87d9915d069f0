//! How paths of the worktree are shown.

use bstr::{BStr, BString};
use pronto::quote::c_quote_into;

/// `path` as seen from the directory `prefix`, quoted if it has to be. `space` quotes a path with
/// a space too.
pub(crate) fn shown_path(path: &BStr, prefix: &BStr, (all, space): (bool, bool)) -> BString {
    let seen = relative(path, prefix);
    let mut out = Vec::with_capacity(seen.len() + 2);
    c_quote_into(&seen, all, &mut out);
    if space && out.first() != Some(&b'"') && out.contains(&b' ') {
        out.insert(0, b'"');
        out.push(b'"');
    }
    out.into()
}

/// `path` as seen from the directory `prefix` (empty, or with a slash at its end).
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
    let ups = prefix[common..]
        .iter()
        .filter(|&&byte| byte == b'/')
        .count();
    let mut seen = b"../".repeat(ups);
    seen.extend_from_slice(&path[common..]);
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
        assert_eq!(seen("x", "a/b/"), "../../x");
    }

    #[test]
    fn paths_with_spaces_are_quoted_where_that_matters() {
        let shown = |path: &str, space| shown_path(path.into(), "".into(), (true, space));
        assert_eq!(shown("a b", true), "\"a b\"");
        assert_eq!(shown("a b", false), "a b");
        assert_eq!(shown("a\tb c", true), "\"a\\tb c\"");
    }
}
