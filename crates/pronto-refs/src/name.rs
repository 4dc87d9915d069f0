//! Rules for names of refs.

use bstr::{BStr, BString, ByteSlice};
use pronto_io::short::Short as _;

/// The rules by which a name is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// At least two components: `refs/heads/main`.
    Full,
    /// One component is enough: `HEAD`.
    OneLevel,
    /// At least two components, one `*` allowed.
    Pattern,
    /// One component is enough, one `*` allowed.
    OneLevelPattern,
}

/// Whether `name` is well formed by the rules of `git check-ref-format`.
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

/// Returns whether the file of `name` is certainly below the repository. This is sufficient to read
/// or delete a ref; [`is_valid`] would prevent the removal of a badly named one.
pub fn is_safe(name: &BStr) -> bool {
    let name = strip_worktree(name);
    match name.strip_prefix(b"refs/") {
        Some(rest) => rest
            .split_at_each(b'/')
            .all(|part| !part.is_empty() && part != b"." && part != b".." && !part.contains(&0)),
        None => is_pseudo_syntax(name),
    }
}

/// Whether `name` is spelt like `HEAD` or `FETCH_HEAD`.
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

/// Returns whether each worktree has a reference `name` of its own.
pub fn is_per_worktree(name: &BStr) -> bool {
    !name.starts_with(b"refs/")
        || name.starts_with(b"refs/worktree/")
        || name.starts_with(b"refs/bisect/")
        || name.starts_with(b"refs/rewritten/")
}

/// The rules by which a short name may stand for a full one, in the order in which Git tries them:
/// what to put before it and after it.
pub const RULES: [(&str, &str); 6] = [
    ("", ""),
    ("refs/", ""),
    ("refs/tags/", ""),
    ("refs/heads/", ""),
    ("refs/remotes/", ""),
    ("refs/remotes/", "/HEAD"),
];

/// The full names that `name` may be short for.
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
