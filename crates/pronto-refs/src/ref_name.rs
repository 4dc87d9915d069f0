//! The name of a ref as a type whose values cannot lead out of the repository.

use std::fmt;
use std::ops::Deref;

use bstr::{BStr, BString, ByteSlice};

use crate::name::{self, Form};

/// The full name of a reference, owned.
///
/// Its file lies below the repository: the name has no component `.` or `..`, no empty component
/// and no NUL byte, and it starts with `refs/` or is spelt like `HEAD`, behind an optional
/// `main-worktree/` or `worktrees/ID/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(BString);

/// The full name of a reference, borrowed. It keeps the promise of [`RefName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefNameRef<'a>(&'a BStr);

/// An error: the text is not the name of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// The text.
    pub name: BString,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad ref name '{}'", self.name)
    }
}

impl std::error::Error for BadName {}

impl RefName {
    /// A name that a new reference may have: well formed by the rules of `git check-ref-format`.
    ///
    /// # Errors
    /// `name` is malformed, or its file would lie outside of the places for references.
    pub fn new(name: impl Into<BString>) -> Result<Self, BadName> {
        let name = name.into();
        match RefNameRef::new(name.as_bstr()) {
            Ok(_) => Ok(RefName(name)),
            Err(bad) => Err(bad),
        }
    }

    /// A name under which a reference may be read or removed; see [`RefNameRef::existing`].
    ///
    /// # Errors
    /// Its file would lie outside of the places for references.
    pub fn existing(name: impl Into<BString>) -> Result<Self, BadName> {
        let name = name.into();
        match RefNameRef::existing(name.as_bstr()) {
            Ok(_) => Ok(RefName(name)),
            Err(bad) => Err(bad),
        }
    }

    /// The name, borrowed.
    pub fn borrow(&self) -> RefNameRef<'_> {
        RefNameRef(self.0.as_bstr())
    }

    /// The bytes of the name.
    pub fn into_inner(self) -> BString {
        self.0
    }
}

impl<'a> RefNameRef<'a> {
    /// Like [`RefName::new`], without a copy. Costs one pass over the bytes.
    ///
    /// # Errors
    /// `name` is malformed, or its file would lie outside of the places for references.
    pub fn new(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_valid(name, Form::OneLevel) && name::is_safe(name) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// A name under which a reference may be read or removed. Such a name can break the rules of
    /// `git check-ref-format`, so that a reference that should not exist can still be removed.
    ///
    /// # Errors
    /// Its file would lie outside of the places for references.
    pub fn existing(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_safe(name) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// A name under which a reference may be read: also a file right in the directory of the repository, as
    /// `git rev-parse` reads it.
    ///
    /// # Errors
    /// Its file would lie outside of the repository.
    pub fn readable(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_safe(name) || name::is_valid(name, Form::OneLevel) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// The name, for as long as the bytes live.
    pub fn as_bstr(self) -> &'a BStr {
        self.0
    }

    /// A copy that is owned.
    pub fn to_owned(self) -> RefName {
        RefName(self.0.to_owned())
    }
}

impl Deref for RefName {
    type Target = BStr;

    fn deref(&self) -> &BStr {
        self.0.as_bstr()
    }
}

impl Deref for RefNameRef<'_> {
    type Target = BStr;

    fn deref(&self) -> &BStr {
        self.0
    }
}

impl AsRef<[u8]> for RefName {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for RefNameRef<'_> {
    fn as_ref(&self) -> &[u8] {
        self.0
    }
}

impl PartialEq<str> for RefName {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for RefName {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl PartialEq<BStr> for RefName {
    fn eq(&self, other: &BStr) -> bool {
        self.0 == other
    }
}

impl PartialEq<BString> for RefName {
    fn eq(&self, other: &BString) -> bool {
        self.0 == *other
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for RefNameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_repository_are_no_names() {
        for bad in [
            "",
            "config",
            "refs/heads/..",
            "refs/heads/../../config",
            "refs/heads/../../../../project/.git/refs/heads/main",
            "/etc/passwd",
            "refs//heads/a",
            "refs/heads/a\0b",
            "main-worktree/config",
            "worktrees/../HEAD",
            "worktrees/a/../../config",
        ] {
            assert!(RefName::new(bad).is_err(), "{bad}");
            assert!(RefName::existing(bad).is_err(), "{bad}");
        }
        for good in ["HEAD", "refs/heads/a", "worktrees/a/HEAD", "refs/stash"] {
            assert!(RefName::new(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn badly_formed_names_can_be_removed_but_not_made() {
        for name in ["refs/heads/a..b", "refs/heads/.a", "refs/heads/a\nb"] {
            assert!(RefName::new(name).is_err(), "{name}");
            assert!(RefName::existing(name).is_ok(), "{name}");
        }
    }
}
