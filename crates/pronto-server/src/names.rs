//! Names of repositories and users, as in URLs and in the configuration.

use crate::{Error, ErrorKind, Result};

/// The largest length of a name in bytes.
pub(crate) const LONGEST_BYTES: usize = 512;

/// The largest number of components of the name of a repository.
pub(crate) const MOST_COMPONENTS: usize = 16;

/// A validated name of a repository: path components below the root, without the suffix `.git`.
///
/// No component is empty, begins with a dot or contains a control character or a backslash, so the
/// name cannot refer to a directory outside of the root, inside a repository, or to hidden files.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RepositoryName(String);

impl RepositoryName {
    /// Validates a name without slashes at its start and end.
    ///
    /// # Errors
    /// Fails with `ErrorKind::InvalidName` if the name is not allowed. The message gives the
    /// reason.
    pub fn parse(name: &str) -> Result<Self> {
        let refused = |why: &str| {
            let message = format!("invalid repository name: it {why}");
            Err(Error::new(ErrorKind::InvalidName, message))
        };
        let name = name.strip_suffix(".git").unwrap_or(name);
        if name.is_empty() {
            return refused("is empty");
        }
        if name.len() > LONGEST_BYTES {
            return refused("is too long");
        }
        if name.split('/').count() > MOST_COMPONENTS {
            return refused("has too many components");
        }
        for component in name.split('/') {
            if component.is_empty() {
                return refused("has an empty component");
            }
            if component.starts_with('.') {
                return refused("has a component that begins with a dot");
            }
            let is_bad = |character: char| character.is_control() || character == '\\';
            if component.chars().any(is_bad) {
                return refused("has a control character or a backslash");
            }
            if component.ends_with(".lock") || component.ends_with(".git") {
                return refused("has a component that ends in '.lock' or '.git'");
            }
        }
        Ok(RepositoryName(name.to_owned()))
    }

    /// Returns the name as a string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Checks that a repository with this name may be created: its components consist of ASCII
    /// letters, digits, `.`, `_`, `-` and `+`, and do not begin with `-`.
    ///
    /// # Errors
    /// Fails with `ErrorKind::InvalidName` if a component has another character.
    pub fn check_new(&self) -> Result<()> {
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
        let is_good =
            |component: &str| !component.starts_with('-') && component.bytes().all(is_plain);
        if self.0.split('/').all(is_good) {
            return Ok(());
        }
        let message =
            "invalid name for a new repository: use letters, digits, '.', '_', '-' and '+'";
        Err(Error::new(ErrorKind::InvalidName, message))
    }
}

impl std::fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether `name` is a valid name of a user: at most 64 letters, digits, `.`, `_`, `-` and
/// `@`, the first of them a letter or digit. The name `anonymous` is reserved for all clients.
pub fn is_user_name(name: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'@');
    name.len() <= 64
        && name != crate::access::ANONYMOUS
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(is_plain)
}

/// Decodes `%XX` in a path. Returns `None` if the path is malformed, or not UTF-8.
pub fn percent_decoded(path: &str) -> Option<String> {
    use crate::token::hex_value;
    if !path.contains('%') {
        return Some(path.to_owned());
    }
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex_value(bytes.next()?)? << 4 | hex_value(bytes.next()?)?,
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for bad in [
            "",
            "/",
            "a/",
            "/a",
            "..",
            "../a",
            "a/../b",
            "a//b",
            ".",
            "./a",
            ".git",
            "a/.git",
            "a/.git/b",
            ".hidden",
            "a\0b",
            "a\nb",
            "a\\b",
            "a.git/b",
            "a.lock",
            "a.git.git",
        ] {
            assert!(RepositoryName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(RepositoryName::parse(&"a".repeat(600)).is_err());
        assert!(RepositoryName::parse(&["a"; 20].join("/")).is_err());
        for good in ["a", "a.git", "team/a", "a.b", "é", "a b"] {
            let name = RepositoryName::parse(good).expect(good);
            assert!(!name.as_str().ends_with(".git"));
        }
        let is_new = |name| {
            RepositoryName::parse(name)
                .expect("allowed")
                .check_new()
                .is_ok()
        };
        assert!(is_new("team/a-b_c.d+e") && !is_new("a b") && !is_new("é") && !is_new("-a"));
    }

    #[test]
    fn names_of_users_are_plain() {
        assert!(is_user_name("alice") && is_user_name("a.b@example.org"));
        for bad in [
            "",
            "anonymous",
            "-a",
            "*",
            "a b",
            "a:b",
            "a/b",
            &"a".repeat(65),
        ] {
            assert!(!is_user_name(bad), "{bad}");
        }
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(percent_decoded("/a%2e%2E/b").as_deref(), Some("/a../b"));
        for bad in ["%", "%1", "%g0", "%ff", "a%"] {
            assert_eq!(percent_decoded(bad), None, "{bad}");
        }
    }
}
