//! Processes differences before they are returned: submodules, renames, filters.

use super::walk::inspector;
use super::{DiffResult, Difference, DifferenceSide, Options, is_submodule};
use crate::status::Problem;
use crate::status::{Converter, IgnoreSubmodules, RenameContents};
use crate::{ErrorKind, Repository, Result};
use bstr::{BStr, ByteSlice};
use pronto_diff::renames::{Renames, detect};
use pronto_hash::ObjectId;
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;

/// The kinds of differences to return, by Git's letters (`--diff-filter`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffFilter {
    included: Vec<u8>,
    excluded: Vec<u8>,
    /// Whether all differences are returned if one matches (`*`).
    together: bool,
}

impl DiffFilter {
    /// Parses the value of `--diff-filter`: upper case letters select kinds of differences, lower
    /// case letters exclude them, and with `*` all differences are returned if one matches. `None`
    /// if a letter is unknown.
    pub fn parse(letters: &[u8]) -> Option<DiffFilter> {
        let mut filter = DiffFilter::default();
        for letter in letters {
            match letter {
                b'*' => filter.together = true,
                b'A' | b'C' | b'D' | b'M' | b'R' | b'T' | b'U' | b'X' | b'B' => {
                    filter.included.push(*letter);
                }
                b'a' | b'c' | b'd' | b'm' | b'r' | b't' | b'u' | b'x' | b'b' => {
                    filter.excluded.push(letter.to_ascii_uppercase());
                }
                _ => return None,
            }
        }
        Some(filter)
    }

    /// Combines the filter with `other`, the value of a later option.
    #[must_use]
    pub fn and(mut self, other: DiffFilter) -> DiffFilter {
        self.included.extend(other.included);
        self.excluded.extend(other.excluded);
        self.together |= other.together;
        self
    }

    fn matches(&self, difference: &Difference) -> bool {
        let letter = difference.letter();
        let all = self.included.is_empty() && !self.together;
        (all || self.included.contains(&letter)) && !self.excluded.contains(&letter)
    }

    fn apply(&self, differences: &mut Vec<Difference>) {
        match self.together {
            true if differences.iter().any(|one| self.matches(one)) => {}
            true => differences.clear(),
            false => differences.retain(|one| self.matches(one)),
        }
    }
}

pub(super) fn finish(
    repository: &Repository,
    mut differences: Vec<Difference>,
    mut problems: Vec<Problem>,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<DiffResult> {
    if differences.iter().any(is_submodule) {
        let submodules = inspector(repository, options, watch)?;
        let ignored = |one: &Difference| {
            is_submodule(one) && submodules.ignores(one.path.as_bstr()) == IgnoreSubmodules::All
        };
        differences.retain(|one| !ignored(one));
    }
    let below = options.below.as_bytes();
    differences.retain(|one| one.path.starts_with(below));
    problems.retain(|problem| problem.path.starts_with(below));
    if options.reverse {
        for one in differences.iter_mut().filter(|one| !one.unmerged) {
            std::mem::swap(&mut one.old, &mut one.new);
        }
    }
    if let Some(renames) = options.renames {
        differences = with_renames(repository, differences, renames)?;
    }
    if let Some(filter) = &options.filter {
        filter.apply(&mut differences);
    }
    Ok(DiffResult {
        differences,
        problems,
    })
}

fn with_renames(
    repository: &Repository,
    mut differences: Vec<Difference>,
    renames: Renames,
) -> Result<Vec<Difference>> {
    let is_source = |one: &Difference| one.old.is_some() && (one.new.is_none() || renames.copies);
    let is_target = |one: &Difference| one.old.is_none() && one.new.is_some();
    let merged = || differences.iter().filter(|one| !one.unmerged);
    if !merged().any(is_source) || !merged().any(is_target) {
        return Ok(differences);
    }
    let store = repository.objects()?;
    let top = repository.work_tree().unwrap_or(repository.git_dir());
    let root = Directory::open(top).context(ErrorKind::Io, "could not open directory", top)?;
    let converter = Converter::new(repository, store);
    let contents = RenameContents {
        store,
        root: &root,
        converter: &converter,
    };
    for one in differences.iter_mut().filter(|one| !one.unmerged) {
        let (source, target) = (is_source(one), is_target(one));
        let path = one.path.as_bstr();
        let old = one.old.as_mut().filter(|_| source);
        let new = one.new.as_mut().filter(|_| target);
        for side in old.into_iter().chain(new) {
            make_out(side, path, &contents);
        }
    }
    let mut read = |path: &BStr, side: &DifferenceSide| contents.read(path, side);
    let found = detect(differences, renames, &mut read);
    converter.finish()?;
    Ok(found)
}

/// Computes the object id of a file in the worktree.
fn make_out(side: &mut DifferenceSide, path: &BStr, contents: &RenameContents<'_>) {
    let kind = side.id.kind();
    if side.id == kind.null() {
        let id: ObjectId = contents.id(path, kind);
        side.id = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_filter() {
        let one = |old: bool, new: bool| {
            let side = DifferenceSide {
                mode: 0o100_644,
                id: pronto_hash::Kind::Sha1.null(),
            };
            super::super::difference("p".into(), old.then_some(side), new.then_some(side), false)
        };
        let run = |letters: &str| {
            let mut all = vec![one(true, true), one(true, false), one(false, true)];
            let filter = DiffFilter::parse(letters.as_bytes()).expect("known letters");
            filter.apply(&mut all);
            let shown = all.iter().map(|one| char::from(one.letter()));
            shown.collect::<String>()
        };
        assert_eq!(run("AD"), "DA");
        assert_eq!(run("d"), "MA");
        assert_eq!(run("A*"), "MDA");
        assert_eq!(run("R*"), "");
        assert_eq!(run("ADa"), "D");
        assert_eq!(DiffFilter::parse(b"q"), None);
    }
}
