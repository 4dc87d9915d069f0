//! The definition of a sparse checkout, as `git sparse-checkout` sets, lists and writes it.

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};

use super::{Sparse, SparseRules, parent, trim_end};
use crate::{Error, ErrorKind};

/// The definition of a sparse checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SparseDefinition {
    /// Cone mode: these directories with their whole content, and the files in their parents.
    Directories(BTreeSet<BString>),
    /// Patterns without cone mode.
    Patterns(Vec<BString>),
}

impl SparseDefinition {
    /// Parses `info/sparse-checkout`. With `cone` (`core.sparseCheckoutCone`) the lines are
    /// directories. If a line does not have this form, the second value is the first such line, and all
    /// lines are read as patterns.
    pub fn parse(text: &[u8], cone: bool) -> (Self, Option<BString>) {
        let mut unrecognized = None;
        if cone {
            let (sparse, line) = Sparse::parse(text, true, false);
            match sparse.rules {
                SparseRules::Cone { whole, .. } => {
                    return (
                        SparseDefinition::Directories(whole.into_iter().collect()),
                        None,
                    );
                }
                SparseRules::Patterns(_) => unrecognized = line,
            }
        }
        let lines = text.lines().map(trim_end);
        let patterns = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
        (
            SparseDefinition::Patterns(patterns.map(BString::from).collect()),
            unrecognized,
        )
    }

    /// Adds `words`: directories relative to the top, or patterns.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Patterns`] and Git's message if a directory is outside of the worktree.
    pub fn add<'a>(&mut self, words: impl IntoIterator<Item = &'a BStr>) -> Result<(), Error> {
        match self {
            SparseDefinition::Patterns(patterns) => {
                patterns.extend(words.into_iter().map(ToOwned::to_owned));
            }
            SparseDefinition::Directories(directories) => {
                for word in words {
                    let directory = normalise(word)?;
                    if !directory.is_empty() {
                        directories.insert(directory);
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the text of `info/sparse-checkout`. Directories inside other directories of the set are
    /// omitted.
    pub fn to_text(&self) -> BString {
        let mut text = BString::default();
        let directories = match self {
            SparseDefinition::Patterns(patterns) => {
                for pattern in patterns {
                    text.extend_from_slice(pattern);
                    text.push(b'\n');
                }
                return text;
            }
            SparseDefinition::Directories(directories) => directories,
        };
        let above = |path: &'_ BStr| -> Vec<BString> {
            let above = std::iter::successors(parent(path), |path| parent(path));
            above.map(ToOwned::to_owned).collect()
        };
        let is_within = |path: &BString| {
            let above = above(path.as_bstr());
            above.iter().any(|above| directories.contains(above))
        };
        let parents: BTreeSet<BString> = directories
            .iter()
            .flat_map(|path| above(path.as_bstr()))
            .filter(|path| !directories.contains(path) && !is_within(path))
            .collect();
        text.extend_from_slice(b"/*\n!/*/\n");
        for path in &parents {
            let path = escape(path);
            for part in [b"/".as_slice(), &path, b"/\n!/", &path, b"/*/\n"] {
                text.extend_from_slice(part);
            }
        }
        for path in directories.iter().filter(|path| !is_within(path)) {
            for part in [b"/".as_slice(), &escape(path), b"/\n"] {
                text.extend_from_slice(part);
            }
        }
        text
    }

    /// Returns the rules for paths.
    pub fn to_sparse(&self, ignore_case: bool) -> Sparse {
        let is_cone = matches!(self, SparseDefinition::Directories(_));
        Sparse::parse(&self.to_text(), is_cone, ignore_case).0
    }
}

fn escape(path: &BString) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    for &byte in path.iter() {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// Normalizes a directory that the user named: relative to the top, without slashes at its ends.
fn normalise(word: &BStr) -> Result<BString, Error> {
    let trimmed = word.trim().as_bstr();
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in trimmed.split_str("/") {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop().ok_or_else(|| {
                    let message = format!("could not normalize path {trimmed}");
                    Error::new(ErrorKind::Patterns, message)
                })?;
            }
            part => parts.push(part),
        }
    }
    Ok(bstr::join("/", parts).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_written_as_a_cone_and_read_back() {
        let mut definition = SparseDefinition::Directories(BTreeSet::new());
        assert_eq!(definition.to_text(), "/*\n!/*/\n");
        let words = ["a/b/c/", "/x", "./x/y", "q*/z", " "].map(BStr::new);
        definition.add(words).expect("they are within");
        assert_eq!(
            definition.to_text(),
            "/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n!/a/b/*/\n/q\\*/\n!/q\\*/*/\n/a/b/c/\n/q\\*/z/\n/x/\n"
        );
        let (read, warning) = SparseDefinition::parse(&definition.to_text(), true);
        assert_eq!(warning, None);
        let expected = ["a/b/c", "q*/z", "x"].map(BString::from).into();
        assert_eq!(read, SparseDefinition::Directories(expected));
        assert!(definition.add([BStr::new("a/../../b")]).is_err());
    }
}
