//! The paths of a sparse checkout: `info/sparse-checkout`, with and without cone mode
//! (git-sparse-checkout(1), "Internals").

use std::collections::HashSet;

mod definition;
mod expand;
mod leftover;
mod outside;

pub use definition::SparseDefinition;
pub use expand::expand;
pub use leftover::Leftover;
pub use outside::outside;

use crate::glob::matches_path;
use bstr::{BStr, BString, ByteSlice};
use gix_glob::Pattern;
use pronto_index::Cover;

/// The patterns of a sparse checkout.
#[derive(Debug)]
pub struct Sparse {
    rules: SparseRules,
    ignore_case: bool,
}

#[derive(Debug)]
enum SparseRules {
    /// Cone mode: directories with their whole content, and parent directories with only their files.
    Cone {
        whole: HashSet<BString>,
        parents: HashSet<BString>,
        /// Whether the patterns have `/*` without `!/*/`, which includes all paths.
        everything: bool,
    },
    /// Patterns as in `.gitignore`. The last matching pattern decides.
    Patterns(Vec<Pattern>),
}

impl Sparse {
    /// Parses the patterns. With `cone` (`core.sparseCheckoutCone`) they are directories. If a line
    /// does not have this form, the second value is the first such line, and all lines are read as
    /// patterns.
    pub fn parse(text: &[u8], cone: bool, ignore_case: bool) -> (Self, Option<BString>) {
        let mut unrecognized = None;
        if cone {
            match parse_cone(text) {
                Ok(rules) => return (Sparse { rules, ignore_case }, None),
                Err(line) => unrecognized = Some(line),
            }
        }
        let patterns = text
            .lines()
            .map(trim_end)
            .filter(|line| !line.starts_with(b"#"));
        let rules = SparseRules::Patterns(patterns.filter_map(Pattern::from_bytes).collect());
        (Sparse { rules, ignore_case }, unrecognized)
    }

    /// Returns whether the file `path` should be in the worktree.
    pub fn includes(&self, path: &BStr) -> bool {
        match &self.rules {
            SparseRules::Cone {
                whole,
                parents,
                everything,
            } => {
                if *everything {
                    return true;
                }
                let Some(slash) = path.rfind_byte(b'/') else {
                    return true;
                };
                let directory = path[..slash].as_bstr();
                parents.contains(directory)
                    || std::iter::successors(Some(directory), |path| parent(path))
                        .any(|directory| whole.contains(directory))
            }
            SparseRules::Patterns(patterns) => self.decide(patterns, path),
        }
    }

    /// Creates a matcher that answers [`includes`](Self::includes) for a series of paths. Consecutive
    /// paths in the same directory are cheapest.
    pub fn matcher(&self) -> SparseMatcher<'_> {
        SparseMatcher {
            sparse: self,
            last: None,
        }
    }

    /// Returns whether the patterns are in cone mode, which the sparse index requires.
    pub fn is_cone(&self) -> bool {
        matches!(self.rules, SparseRules::Cone { .. })
    }

    /// Returns the extent to which `directory` (without a slash at its end, and not the top) is in the
    /// worktree. Without cone mode the result is always [`Part`](Cover::Part). Costs one lookup for
    /// each component of the path.
    pub fn cover(&self, directory: &BStr) -> Cover {
        let SparseRules::Cone {
            whole,
            parents,
            everything,
        } = &self.rules
        else {
            return Cover::Part;
        };
        let mut above = std::iter::successors(Some(directory), |path| parent(path));
        if *everything || above.any(|directory| whole.contains(directory)) {
            Cover::Whole
        } else if parents.contains(directory) {
            Cover::Part
        } else {
            Cover::Nothing
        }
    }

    /// Applies the pattern that matches the file itself, or otherwise its closest parent directory.
    fn decide(&self, patterns: &[Pattern], path: &BStr) -> bool {
        let mut is_directory = false;
        let mut current = Some(path);
        while let Some(path) = current {
            let basename = path.rfind_byte(b'/').map(|slash| slash + 1);
            let last = patterns.iter().rev().find(|pattern| {
                matches_path(pattern, path, basename, is_directory, self.ignore_case)
            });
            if let Some(pattern) = last {
                return !pattern.is_negative();
            }
            is_directory = true;
            current = parent(path);
        }
        false
    }
}

/// A matcher that caches the result for the last directory.
#[derive(Debug)]
pub struct SparseMatcher<'a> {
    sparse: &'a Sparse,
    last: Option<(BString, bool)>,
}

impl SparseMatcher<'_> {
    /// Returns whether the file `path` should be in the worktree.
    pub fn includes(&mut self, path: &BStr) -> bool {
        if !self.sparse.is_cone() {
            return self.sparse.includes(path);
        }
        // In cone mode the files of a directory are included together.
        let directory = parent(path).unwrap_or_default();
        if let Some((last, includes)) = &self.last
            && last == directory
        {
            return *includes;
        }
        let includes = self.sparse.includes(path);
        self.last = Some((directory.to_owned(), includes));
        includes
    }
}

fn parent(path: &BStr) -> Option<&BStr> {
    path.rfind_byte(b'/').map(|slash| path[..slash].as_bstr())
}

fn trim_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn parse_cone(text: &[u8]) -> Result<SparseRules, BString> {
    let mut whole: HashSet<BString> = HashSet::new();
    let mut parents: HashSet<BString> = HashSet::new();
    let mut everything = false;
    for line in text.lines().map(trim_end) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let refuse = || Err(BString::from(line));
        match line {
            b"/*" => everything = true,
            b"!/*/" => everything = false,
            _ => match (line.strip_prefix(b"!/"), line.strip_prefix(b"/")) {
                (Some(rest), _) => {
                    // `!/a/*/` turns the preceding directory `a` into one with only its files.
                    let Some(directory) = rest.strip_suffix(b"/*/") else {
                        return refuse();
                    };
                    let directory = unescape(directory);
                    if !whole.remove(&directory) {
                        return refuse();
                    }
                    parents.insert(directory);
                }
                (None, Some(rest)) => {
                    let Some(directory) = rest.strip_suffix(b"/").filter(|path| is_plain(path))
                    else {
                        return refuse();
                    };
                    let directory = unescape(directory);
                    let above =
                        std::iter::successors(parent(directory.as_bstr()), |path| parent(path));
                    parents.extend(above.map(ToOwned::to_owned));
                    whole.insert(directory);
                }
                _ => return refuse(),
            },
        }
    }
    Ok(SparseRules::Cone {
        whole,
        parents,
        everything,
    })
}

/// Returns whether all wildcards are escaped.
fn is_plain(path: &[u8]) -> bool {
    let mut escaped = false;
    for byte in path {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'*' | b'?' | b'[' => return false,
            _ => {}
        }
    }
    !path.is_empty()
}

fn unescape(path: &[u8]) -> BString {
    let mut out = BString::default();
    let mut escaped = false;
    for byte in path {
        if *byte == b'\\' && !escaped {
            escaped = true;
        } else {
            out.push(*byte);
            escaped = false;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cone_holds_whole_directories_and_files_above_them() {
        let text = b"/*\n!/*/\n/a/\n!/a/*/\n/a/b/\n/c/\n";
        let (sparse, unrecognized) = Sparse::parse(text, true, false);
        assert_eq!(unrecognized, None);
        for path in ["f", "a/f", "a/b/f", "a/b/c/d/f", "c/f", "c/d/f"] {
            assert!(sparse.includes(path.into()), "{path}");
        }
        for path in ["a/c/f", "d/f", "ab/f", "d/a/b/f"] {
            assert!(!sparse.includes(path.into()), "{path}");
        }
    }

    #[test]
    fn patterns_decide_from_the_file_upwards() {
        let text = b"*.c\n!/old/*.c\n/docs/\n!secret*\n";
        let (sparse, _) = Sparse::parse(text, false, false);
        for path in ["x.c", "a/x.c", "docs/x/y", "docs/x"] {
            assert!(sparse.includes(path.into()), "{path}");
        }
        for path in ["old/x.c", "x.h", "docs/secret", "a/docs/x"] {
            assert!(!sparse.includes(path.into()), "{path}");
        }
    }

    #[test]
    fn patterns_that_are_no_cone_are_said_so() {
        let (sparse, unrecognized) = Sparse::parse(b"*.c\n", true, false);
        assert_eq!(unrecognized, Some("*.c".into()));
        assert!(sparse.includes("x.c".into()));
    }
}
