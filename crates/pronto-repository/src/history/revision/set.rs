//! Sets of revisions, as commands that walk history take them: `A`, `^A`, `A..B`, `A...B`, `A^@`,
//! `A^!`, `A^-<n>`, and all refs below a prefix.

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::short::Short as _;

use super::{ExpectedType, RefSelection, ResolvedRevision};
use crate::refs::BrokenRef;
use crate::{Error, ErrorKind, Repository, Result};

/// One object of a [`RevisionSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetMember {
    /// The name under which the object was given, or the full name of the ref; empty if there is no
    /// name.
    pub name: BString,
    /// The object, with its mode and path.
    pub found: ResolvedRevision,
    /// Whether the objects reachable from this object are excluded (`^A`).
    pub is_excluded: bool,
    /// Whether the object is the left side of a symmetric difference (`A...B`).
    pub is_left: bool,
}

/// The starting points of a walk, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RevisionSet {
    /// The objects. An object that was given twice occurs twice.
    pub members: Vec<SetMember>,
}

/// The suffix of a revision that selects parents.
enum Suffix {
    /// `^@`: all parents, without the commit.
    Parents,
    /// `^!`: the commit, with its parents excluded.
    Alone,
    /// `^-<n>`: the commit, with parent `n` excluded.
    Without(usize),
}

impl RevisionSet {
    /// Returns the ids of the excluded objects, or of the included ones, in order.
    pub fn ids(&self, is_excluded: bool) -> Vec<ObjectId> {
        let members = self.members.iter();
        let members = members.filter(|member| member.is_excluded == is_excluded);
        members.map(|member| member.found.id).collect()
    }

    /// Adds the object `id` under the name `name`.
    pub fn add(&mut self, name: impl Into<BString>, id: ObjectId, is_excluded: bool) {
        self.members.push(SetMember {
            name: name.into(),
            found: plain(id),
            is_excluded,
            is_left: false,
        });
    }

    /// Adds the objects that `text` names. `is_negated` swaps included and excluded objects (`--not`).
    /// Returns `false` and adds nothing if `text` is not a revision.
    ///
    /// Costs resolving each name; for `A...B` also a walk to the merge bases.
    ///
    /// # Errors
    /// As for [`Repository::try_resolve`], and with [`ErrorKind::Object`] if a side of a symmetric
    /// difference does not peel to a commit.
    pub fn add_text(
        &mut self,
        repository: &Repository,
        text: &BStr,
        is_negated: bool,
    ) -> Result<bool> {
        if self.add_range(repository, text, is_negated)? {
            return Ok(true);
        }
        if let Some((name, suffix)) = suffix_of(text)
            && self.add_parents(repository, name, &suffix, is_negated)?
        {
            return Ok(true);
        }
        let (name, is_excluded) = match text.strip_prefix(b"^") {
            Some(name) => (name.as_bstr(), !is_negated),
            None => (text, is_negated),
        };
        let Some(found) = repository.look_up(name, ExpectedType::Anything)? else {
            return Ok(false);
        };
        self.members.push(SetMember {
            name: name.to_owned(),
            found,
            is_excluded,
            is_left: false,
        });
        Ok(true)
    }

    fn add_range(&mut self, repository: &Repository, text: &BStr, negated: bool) -> Result<bool> {
        let Some(range) = repository.split_range(text) else {
            return Ok(false);
        };
        let (left, right) = (range.from, range.to);
        let Some(from) = repository.try_resolve(left, ExpectedType::Committish)? else {
            return Ok(false);
        };
        let Some(to) = repository.try_resolve(right, ExpectedType::Committish)? else {
            return Ok(false);
        };
        if !range.is_symmetric {
            self.add(left, from, !negated);
            self.add(right, to, negated);
            return Ok(true);
        }
        let commit = |id| -> Result<ObjectId> {
            repository.peel_to(id, ObjectKind::Commit)?.ok_or_else(|| {
                let message = format!("object {id} leads to no commit");
                Error::new(ErrorKind::Object, message)
            })
        };
        let (from, to) = (commit(from)?, commit(to)?);
        for base in repository.merge_bases(from, to)? {
            self.add("", base, !negated);
        }
        self.add(left, from, negated);
        if let Some(member) = self.members.last_mut() {
            member.is_left = true;
        }
        self.add(right, to, negated);
        Ok(true)
    }

    fn add_parents(
        &mut self,
        repository: &Repository,
        text: &BStr,
        suffix: &Suffix,
        is_negated: bool,
    ) -> Result<bool> {
        let (name, is_negated) = match text.strip_prefix(b"^") {
            Some(name) => (name.as_bstr(), !is_negated),
            None => (text, is_negated),
        };
        let Some(id) = repository.try_resolve(name, ExpectedType::Committish)? else {
            return Ok(false);
        };
        let Some(commit) = repository.peel_to(id, ObjectKind::Commit)? else {
            return Ok(false);
        };
        let parents = repository.commit_links(&commit, &mut Vec::new())?.parents;
        let is_excluded = match suffix {
            Suffix::Without(number) if *number > parents.len() => return Ok(false),
            Suffix::Parents => is_negated,
            Suffix::Alone | Suffix::Without(_) => !is_negated,
        };
        for (number, parent) in (1..).zip(parents) {
            if !matches!(suffix, Suffix::Without(wanted) if *wanted != number) {
                self.add(name, parent, is_excluded);
            }
        }
        if !matches!(suffix, Suffix::Parents) {
            self.add(name, id, is_negated);
        }
        Ok(true)
    }

    /// Adds the objects of the selected refs, except refs whose names match a pattern in `excluded`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] or [`ErrorKind::Io`] if the refs cannot be read, or
    /// [`ErrorKind::Object`] if a ref points to a missing object.
    pub fn add_refs(
        &mut self,
        repository: &Repository,
        selection: &RefSelection,
        excluded: &[BString],
        is_negated: bool,
    ) -> Result<()> {
        let mut found = Vec::new();
        let directory = selection.directory_name();
        let null = repository.object_hash().null();
        let refs = repository.refs();
        refs.for_each_or_broken(directory, |reference| {
            let (name, id) = match reference {
                Ok(reference) => (reference.name, reference.id),
                Err(BrokenRef::Contents(name)) => (name, null),
                Err(BrokenRef::Dangling(_)) => return Ok(ControlFlow::Continue(())),
            };
            if let Some(shown) = selection.shown(name, excluded) {
                found.push((name.to_owned(), shown.to_owned(), id));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let store = repository.objects()?;
        for (name, shown, id) in found {
            if !store.contains(&id).map_err(crate::objects::from_odb)? {
                let message = format!("bad object {shown}");
                return Err(Error::new(ErrorKind::Object, message));
            }
            self.add(name, id, is_negated);
        }
        Ok(())
    }
}

fn plain(id: ObjectId) -> ResolvedRevision {
    ResolvedRevision {
        id,
        mode: None,
        path: None,
    }
}

/// Splits a parent suffix (`^@`, `^!`, `^-<n>`) off `text`.
fn suffix_of(text: &BStr) -> Option<(&BStr, Suffix)> {
    if let Some(name) = text.strip_suffix(b"^@") {
        return Some((name.as_bstr(), Suffix::Parents));
    }
    if let Some(name) = text.strip_suffix(b"^!") {
        return Some((name.as_bstr(), Suffix::Alone));
    }
    let at = text.position_of_text(b"^-")?;
    let number = match text[at + 2..].as_bytes() {
        b"" => 1,
        digits => digits.to_str().ok()?.parse().ok()?,
    };
    (number > 0).then(|| (text[..at].as_bstr(), Suffix::Without(number)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_select_parents() {
        let is =
            |text: &str, name: &str| suffix_of(text.into()).is_some_and(|(found, _)| found == name);
        assert!(is("a^@", "a") && is("a^!", "a") && is("a^-", "a") && is("^a^-12", "^a"));
        for other in ["a", "a^", "a^-0", "a^-x", "a^2", "a^@b"] {
            assert!(suffix_of(other.into()).is_none(), "{other}");
        }
    }
}
