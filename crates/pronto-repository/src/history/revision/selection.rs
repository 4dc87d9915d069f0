//! Selections of refs: `--all`, `--branches`, `--tags`, `--remotes`, `--glob` and `--exclude`.

use bstr::{BStr, BString, ByteSlice, ByteVec};

use crate::glob::{self, MatchOptions};

/// A selection of refs by directory and pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefSelection {
    directory: BString,
    pattern: Option<BString>,
    /// Whether names are shown without the directory.
    trims: bool,
}

impl RefSelection {
    /// Selects all refs (`--all`).
    pub fn everything() -> Self {
        RefSelection {
            directory: "refs/".into(),
            pattern: None,
            trims: false,
        }
    }

    /// Selects the refs below `directory`, which ends with a slash (`--branches`, `--tags`,
    /// `--remotes`). Names are shown without the directory.
    pub fn directory(directory: impl Into<BString>) -> Self {
        RefSelection {
            directory: directory.into(),
            pattern: None,
            trims: true,
        }
    }

    /// Selects the refs whose full names match `pattern` (`--glob`). The pattern may omit a leading
    /// `refs/`.
    pub fn glob(pattern: &BStr) -> Self {
        let base: &BStr = if pattern.starts_with(b"refs/") {
            "".into()
        } else {
            "refs/".into()
        };
        RefSelection {
            directory: "refs/".into(),
            pattern: Some(complete(base, pattern)),
            trims: false,
        }
    }

    /// Shows full ref names.
    #[must_use]
    pub fn in_full(mut self) -> Self {
        self.trims = false;
        self
    }

    /// Restricts the selection to refs that match `pattern` below the directory, if a pattern is given.
    #[must_use]
    pub fn matching(mut self, pattern: Option<&BStr>) -> Self {
        self.pattern = pattern.map(|pattern| complete(self.directory.as_bstr(), pattern));
        self
    }

    /// Returns the directory that contains all selected refs.
    pub fn directory_name(&self) -> &BStr {
        self.directory.as_bstr()
    }

    /// Returns the name under which the ref `name` is shown. Returns `None` if the ref is not selected,
    /// or its shown name matches a pattern in `excluded` (`--exclude`).
    pub fn shown<'n>(&self, name: &'n BStr, excluded: &[BString]) -> Option<&'n BStr> {
        let matches =
            |pattern: &BString, name: &BStr| glob::matches(pattern, name, MatchOptions::default());
        let pattern = self.pattern.as_ref();
        if pattern.is_some_and(|pattern| !matches(pattern, name)) {
            return None;
        }
        let start = if self.trims { self.directory.len() } else { 0 };
        let shown = name.get(start..)?.as_bstr();
        (!excluded.iter().any(|pattern| matches(pattern, shown))).then_some(shown)
    }
}

/// Completes a pattern without wildcards so that it matches all refs below it.
fn complete(base: &BStr, pattern: &BStr) -> BString {
    let mut full = [base.as_bytes(), pattern].concat();
    if pattern.find_byteset(b"*?[\\").is_none() {
        if !full.ends_with(b"/") {
            full.push(b'/');
        }
        full.push_str("*");
    }
    full.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_without_wildcards_select_what_is_below() {
        let selection = RefSelection::glob("heads/a".into());
        let shown = |name: &str| selection.shown(name.into(), &[]).is_some();
        assert!(shown("refs/heads/a/b") && !shown("refs/heads/a") && !shown("refs/heads/ab"));
    }

    #[test]
    fn exclusions_see_shown_names() {
        let excluded = [BString::from("a*")];
        let branches = RefSelection::directory("refs/heads/");
        assert_eq!(
            branches.shown("refs/heads/b".into(), &excluded),
            Some("b".into())
        );
        assert_eq!(branches.shown("refs/heads/ab".into(), &excluded), None);
        let all = RefSelection::everything();
        assert!(all.shown("refs/heads/ab".into(), &excluded).is_some());
    }
}
