//! `rev-parse --all`, `--branches`, `--glob` and similar options.

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto::glob::{self, How};

use super::Session;
use crate::CliError;

/// The selected refs.
pub(super) struct Below {
    directory: BString,
    pattern: Option<BString>,
    /// Whether names are printed without the directory.
    trims: bool,
}

impl Below {
    pub(super) fn everything() -> Self {
        Below {
            directory: "refs/".into(),
            pattern: None,
            trims: false,
        }
    }

    pub(super) fn directory(directory: impl Into<BString>) -> Self {
        Below {
            directory: directory.into(),
            pattern: None,
            trims: true,
        }
    }

    pub(super) fn in_full(mut self) -> Self {
        self.trims = false;
        self
    }

    pub(super) fn matching(mut self, pattern: Option<&BStr>) -> Self {
        self.pattern = pattern.map(|pattern| complete(self.directory.as_bstr(), pattern));
        self
    }

    pub(super) fn glob(pattern: &BStr) -> Self {
        let base: &BStr = if pattern.starts_with(b"refs/") {
            "".into()
        } else {
            "refs/".into()
        };
        let pattern = complete(base, pattern);
        Below {
            directory: "refs/".into(),
            pattern: Some(pattern),
            trims: false,
        }
    }
}

/// Turns a pattern without wildcards into one that matches everything below it.
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

impl Session<'_> {
    /// Prints the selected refs that are not excluded, and clears the exclusions.
    pub(super) fn show_references(&mut self, below: &Below) -> Result<(), CliError> {
        let repository = self.repository()?;
        let excluded = std::mem::take(&mut self.excluded);
        let matches = |pattern: &BString, name: &BStr| glob::matches(pattern, name, How::default());
        let mut found = Vec::new();
        repository.refs().for_each(&below.directory, |reference| {
            let name = reference.name;
            if below
                .pattern
                .as_ref()
                .is_none_or(|pattern| matches(pattern, name))
            {
                let start = if below.trims {
                    below.directory.len()
                } else {
                    0
                };
                let shown = name[start..].as_bstr();
                if !excluded.iter().any(|pattern| matches(pattern, shown)) {
                    found.push((reference.id, shown.to_owned()));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        for (id, name) in found {
            self.show_revision(false, id, Some(name.as_bstr()))?;
        }
        Ok(())
    }
}
