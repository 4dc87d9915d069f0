//! The type of ref names whose files are always inside the repository.

use std::fmt;
use std::ops::Deref;

use bstr::{BStr, BString, ByteSlice};

use crate::name::{self, Form};

/// The full name of a ref, owned.
///
/// The file of the ref is inside the repository: the name has no component `.` or `..`, no empty
/// component and no NUL byte, and it starts with `refs/` or has the form of `HEAD`, after an
/// optional `main-worktree/` or `worktrees/ID/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefName(BString);

/// The full name of a ref, borrowed, with the guarantees of [`RefName`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefNameRef<'a>(&'a BStr);

/// The error for text that is not a valid ref name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    /// The rejected text.
    pub name: BString,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad ref name '{}'", self.name)
    }
}

impl std::error::Error for BadName {}

impl RefName {
    /// Returns a name that a new ref may have: well formed by the rules of `git check-ref-format`.
    ///
    /// # Errors
    /// Fails with [`BadName`] if `name` is malformed, or if the file of the ref would be outside
    /// `refs/` and not at the position of a pseudo-ref.
    pub fn new(name: impl Into<BString>) -> Result<Self, BadName> {
        let name = name.into();
        match RefNameRef::new(name.as_bstr()) {
            Ok(_) => Ok(RefName(name)),
            Err(bad) => Err(bad),
        }
    }

    /// Returns a name under which a ref may be read or removed; see [`RefNameRef::existing`].
    ///
    /// # Errors
    /// Fails with [`BadName`] if the file of the ref would be outside the directories of refs.
    pub fn existing(name: impl Into<BString>) -> Result<Self, BadName> {
        let name = name.into();
        match RefNameRef::existing(name.as_bstr()) {
            Ok(_) => Ok(RefName(name)),
            Err(bad) => Err(bad),
        }
    }

    /// Borrows the name.
    pub fn borrow(&self) -> RefNameRef<'_> {
        RefNameRef(self.0.as_bstr())
    }

    /// Returns the bytes of the name.
    pub fn into_inner(self) -> BString {
        self.0
    }
}

impl<'a> RefNameRef<'a> {
    /// Does the same as [`RefName::new`], without a copy. Costs one pass over the bytes.
    ///
    /// # Errors
    /// Fails with [`BadName`] if `name` is malformed, or if the file of the ref would be outside
    /// `refs/` and not at the position of a pseudo-ref.
    pub fn new(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_valid(name, Form::OneLevel) && name::is_safe(name) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// Returns a name under which a ref may be read or removed. Such a name can break the rules of
    /// `git check-ref-format`, so that a ref with a malformed name can still be removed.
    ///
    /// # Errors
    /// Fails with [`BadName`] if the file of the ref would be outside the directories of refs.
    pub fn existing(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_safe(name) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// Returns a name under which a ref may be read. The ref may also be a file directly in the Git
    /// directory, as `git rev-parse` reads it.
    ///
    /// # Errors
    /// Fails with [`BadName`] if the file of the ref would be outside the repository.
    pub fn readable(name: &'a BStr) -> Result<Self, BadName> {
        if name::is_safe(name) || name::is_valid(name, Form::OneLevel) {
            return Ok(RefNameRef(name));
        }
        Err(BadName { name: name.into() })
    }

    /// Returns the name with the lifetime of its bytes.
    pub fn as_bstr(self) -> &'a BStr {
        self.0
    }

    /// Returns an owned copy of the name.
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
