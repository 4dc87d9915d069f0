//! Rules for ref names, as in `git check-ref-format`.

use bstr::{BStr, BString, ByteSlice};
use pronto_io::short::Short as _;

/// The set of rules by which a ref name is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A full name with at least two components, such as `refs/heads/main`.
    Full,
    /// A name with one component or more, such as `HEAD` (`--allow-onelevel`).
    OneLevel,
    /// A full name in which one `*` is allowed (`--refspec-pattern`).
    Pattern,
    /// A name with one component or more in which one `*` is allowed.
    OneLevelPattern,
}

/// Returns whether `name` is well formed by the rules of `git check-ref-format`.
pub fn is_valid(name: &BStr, form: Form) -> bool {
    let mut stars = match form {
        Form::Pattern | Form::OneLevelPattern => 1,
        Form::Full | Form::OneLevel => 0,
    };
    if name == "@" || name.ends_with(b".") {
        return false;
    }
    let mut components = 0;
    for component in name.split_at_each(b'/') {
        if !is_valid_component(component, &mut stars) {
            return false;
        }
        components += 1;
    }
    components > 1 || matches!(form, Form::OneLevel | Form::OneLevelPattern)
}

fn is_valid_component(component: &[u8], stars: &mut u32) -> bool {
    if component.is_empty() || component.starts_with(b".") || component.ends_with(b".lock") {
        return false;
    }
    let mut last = 0;
    for &byte in component {
        match byte {
            0..=b' ' | 0x7f | b'~' | b'^' | b':' | b'?' | b'[' | b'\\' => return false,
            b'.' if last == b'.' => return false,
            b'{' if last == b'@' => return false,
            b'*' if *stars == 0 => return false,
            b'*' => *stars -= 1,
            _ => {}
        }
        last = byte;
    }
    true
}

/// Returns whether the file of ref `name` is certainly inside the repository. This check is
/// sufficient to read or delete a ref; [`is_valid`] would prevent the removal of a ref with a
/// malformed name.
pub fn is_safe(name: &BStr) -> bool {
    let name = strip_worktree(name);
    match name.strip_prefix(b"refs/") {
        Some(rest) => rest
            .split_at_each(b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0)),
        None => is_pseudo_syntax(name),
    }
}

/// Returns whether `name` has the form of a pseudo-ref such as `HEAD` or `FETCH_HEAD`.
pub fn is_pseudo_syntax(name: &BStr) -> bool {
    let is_pseudo = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.iter().all(is_pseudo)
}

fn strip_worktree(name: &BStr) -> &BStr {
    if let Some(rest) = name.strip_prefix(b"main-worktree/") {
        return rest.as_bstr();
    }
    let Some(rest) = name.strip_prefix(b"worktrees/") else {
        return name;
    };
    match rest.position_of(b'/') {
        Some(end) if end > 0 && !matches!(&rest[..end], b"." | b"..") => rest[end + 1..].as_bstr(),
        _ => name,
    }
}

/// Returns whether `name` is a per-worktree ref.
pub fn is_per_worktree(name: &BStr) -> bool {
    !name.starts_with(b"refs/")
        || name.starts_with(b"refs/worktree/")
        || name.starts_with(b"refs/bisect/")
        || name.starts_with(b"refs/rewritten/")
}

/// The rules that expand a short ref name to a full name, in the order in which Git tries them: the
/// prefix and the suffix of the full name.
pub const RULES: [(&str, &str); 6] = [
    ("", ""),
    ("refs/", ""),
    ("refs/tags/", ""),
    ("refs/heads/", ""),
    ("refs/remotes/", ""),
    ("refs/remotes/", "/HEAD"),
];

/// Returns the full names for which `name` may be the short form, in the order of [`RULES`].
pub fn candidates(name: &BStr) -> impl Iterator<Item = BString> {
    RULES
        .iter()
        .map(move |(before, after)| [before.as_bytes(), name, after.as_bytes()].concat().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_check_ref_format() {
        for name in ["refs/heads/main", "a/b", "refs/heads/x@y", "refs/heads/@"] {
            assert!(is_valid(name.into(), Form::Full), "{name}");
        }
        for name in [
            "HEAD",
            "a//b",
            "/a/b",
            "a/b/",
            "a/.b",
            "a/b.lock",
            "a/b.lock/c",
            "a..b/c",
            "a/b.",
            "a/b@{c",
            "a/b c",
            "a/b~",
            "a/*",
            "a/b\\c",
            "a/\x7f",
            "",
        ] {
            assert!(!is_valid(name.into(), Form::Full), "{name}");
        }
        assert!(is_valid("HEAD".into(), Form::OneLevel));
        assert!(!is_valid("@".into(), Form::OneLevel));
        assert!(is_valid("refs/*/x".into(), Form::Pattern));
        assert!(!is_valid("refs/*/*".into(), Form::Pattern));
    }

    #[test]
    fn unsafe_names_leave_the_repository() {
        for name in [
            "refs/../config",
            "config",
            "refs/",
            "refs/a//b",
            "worktrees/../HEAD",
        ] {
            assert!(!is_safe(name.into()), "{name}");
        }
        for name in [
            "HEAD",
            "refs/heads/a..b",
            "worktrees/x/HEAD",
            "main-worktree/refs/bisect/a",
        ] {
            assert!(is_safe(name.into()), "{name}");
        }
    }
}
