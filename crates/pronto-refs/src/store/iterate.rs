//! Iterates over refs below a prefix in order of names. Loose refs take precedence over packed
//! refs.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto_hash::ObjectId;

use super::{
    RefName, RefNameRef, RefTarget, Reference, References, loose, name, packed::PackedRef,
};
use pronto_config::{Result, path};
use pronto_io::short::Short as _;

/// The deepest nesting of directories of refs.
const MAX_DEPTH: usize = 256;

/// One ref during an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRef<'a> {
    /// The full name of the ref.
    pub name: &'a BStr,
    /// The object to which the ref resolves.
    pub id: ObjectId,
    /// The target of a symref.
    pub symbolic: Option<&'a RefName>,
    /// The peeled object of an annotated tag, if it is stored with the ref.
    pub peeled: Option<ObjectId>,
}

/// An entry that is not a usable ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenRef<'a> {
    /// A file with malformed contents or an invalid name.
    Contents(&'a BStr),
    /// A symref to a ref that does not exist.
    Dangling(&'a BStr),
}

/// An item of an iteration: a ref or a broken entry.
pub type IterationItem<'a> = Result<ReferenceRef<'a>, BrokenRef<'a>>;

pub(super) type VisitRef<'a> = &'a mut dyn FnMut(IterationItem<'_>) -> Result<ControlFlow<()>>;

impl References {
    /// Calls `visit` for each ref whose name starts with `prefix`, in order of names, until `visit`
    /// breaks. Dangling symrefs are skipped.
    ///
    /// Costs one read for each loose ref below the prefix; packed refs cost no allocation.
    ///
    /// # Errors
    /// Fails if `packed-refs` cannot be read, or if `visit` fails.
    pub fn for_each(
        &self,
        prefix: impl AsRef<[u8]>,
        mut visit: impl FnMut(ReferenceRef<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.for_each_or_broken(prefix, |found| match found {
            Ok(reference) => visit(reference),
            Err(_) => Ok(ControlFlow::Continue(())),
        })
    }

    /// Does the same as [`for_each`](Self::for_each), and also calls `visit` for broken refs.
    ///
    /// # Errors
    /// Fails if `packed-refs` cannot be read, or if `visit` fails.
    pub fn for_each_or_broken(
        &self,
        prefix: impl AsRef<[u8]>,
        mut visit: impl FnMut(IterationItem<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let prefix = prefix.as_ref().as_bstr();
        if let Some(tables) = self.tables() {
            return self.for_each_in_tables(tables, prefix, &mut visit);
        }
        let names = self.loose_names(prefix);
        let file = self.packed()?;
        let mut packed = file
            .iter()
            .flat_map(|packed| packed.iter_from(prefix))
            .take_while(|reference| reference.name.starts_with(prefix))
            .peekable();
        for name in &names {
            let name = name.as_bstr();
            while let Some(reference) = packed.next_if(|reference| reference.name < name) {
                if visit_packed(reference, &mut visit)?.is_break() {
                    return Ok(());
                }
            }
            packed.next_if(|reference| reference.name == name);
            if self.visit_loose(name, &mut visit)?.is_break() {
                return Ok(());
            }
        }
        for reference in packed {
            if visit_packed(reference, &mut visit)?.is_break() {
                return Ok(());
            }
        }
        file.map_or(Ok(()), |file| file.intact())
    }

    fn visit_loose(&self, name: &BStr, visit: VisitRef<'_>) -> Result<ControlFlow<()>> {
        let Some(safe) = full(name) else {
            return visit(Err(BrokenRef::Contents(name)));
        };
        let contents = loose::read(&self.file_of(safe), name, self.object_hash);
        let target = match contents.and_then(|found| found.map_or(Ok(None), |it| it.target(name))) {
            Ok(Some(target)) => target,
            // The ref was packed or removed meanwhile, or is a dangling symbolic link.
            Ok(None) => match self.find_listed(name)? {
                Some(found) => found.target,
                None => return Ok(ControlFlow::Continue(())),
            },
            Err(_) => return visit(Err(BrokenRef::Contents(name))),
        };
        let found = |id, symbolic| ReferenceRef {
            name,
            id,
            symbolic,
            peeled: None,
        };
        match target {
            RefTarget::Object(id) => visit(Ok(found(id, None))),
            RefTarget::Symbolic(to) => match self.resolve(&to) {
                Ok(Some(super::ResolvedRef { id: Some(id), .. })) => {
                    visit(Ok(found(id, Some(&to))))
                }
                // As in Git, a symref to itself or to a broken ref is treated as a dangling one.
                Ok(_) | Err(_) => visit(Err(BrokenRef::Dangling(name))),
            },
        }
    }

    /// Returns the ref with the full name `name`, even if a dangling symbolic link hides it from
    /// lookups.
    fn find_listed(&self, name: &BStr) -> Result<Option<Reference>> {
        match self.find(name)? {
            None => self.find_packed(name),
            found => Ok(found),
        }
    }

    /// Returns all refs whose name starts with `prefix`, in order of names, without dangling
    /// symrefs. Symrefs are not followed.
    ///
    /// # Errors
    /// Fails if `packed-refs` cannot be read.
    pub fn all(&self, prefix: impl AsRef<[u8]>) -> Result<Vec<Reference>> {
        let mut all = Vec::new();
        self.for_each(prefix, |reference| {
            let target = match reference.symbolic {
                Some(to) => RefTarget::Symbolic(to.clone()),
                None => RefTarget::Object(reference.id),
            };
            all.push(Reference {
                name: reference.name.to_owned(),
                target,
                peeled: reference.peeled,
            });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Returns the first ref, loose or packed, whose name is below `directory` (without a trailing
    /// slash) and for which `counts` returns `true`.
    ///
    /// # Errors
    /// Fails if refs cannot be listed.
    pub fn first_below(
        &self,
        directory: &BStr,
        counts: impl Fn(&BStr) -> bool,
    ) -> Result<Option<BString>> {
        let prefix = [directory.as_bytes(), b"/"].concat();
        let mut first = None;
        self.for_each_or_broken(&prefix, |found| {
            let name = match found {
                Ok(reference) => reference.name,
                Err(BrokenRef::Contents(name) | BrokenRef::Dangling(name)) => name,
            };
            if !counts(name) {
                return Ok(ControlFlow::Continue(()));
            }
            first = Some(name.to_owned());
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// Returns the sorted names of all loose refs that start with `prefix`.
    pub(super) fn loose_names(&self, prefix: &BStr) -> Vec<BString> {
        let mut names = Vec::new();
        let directory = match prefix.last_position_of(b'/') {
            Some(end) => prefix[..end].as_bstr(),
            None => "refs".into(),
        };
        if directory != "refs" && !name::is_safe(directory) {
            return names;
        }
        let is_linked = self.git_dir != self.common_dir;
        let below = [directory.as_bytes(), b"/"].concat();
        let is_own = is_linked && name::is_per_worktree(below.as_bstr());
        let base = if is_own {
            &self.git_dir
        } else {
            &self.common_dir
        };
        let mut walk = DirectoryIteration {
            skip_own: is_linked && !is_own,
            visit: &mut |name| {
                if name.starts_with(prefix) {
                    names.push(name.to_owned());
                }
            },
        };
        let mut name = directory.to_owned();
        walk.directory(&base.join(path::borrow(directory)), &mut name, 0);
        if is_linked && directory == "refs" {
            walk.skip_own = false;
            for own in OWN_DIRECTORIES {
                walk.directory(&self.git_dir.join(own), &mut own.into(), 1);
            }
        }
        names.sort_unstable();
        names
    }
}

/// Returns `name` if it is well formed and has at least two components.
pub(super) fn full(name: &BStr) -> Option<RefNameRef<'_>> {
    let name = RefNameRef::new(name).ok()?;
    name.contains(&b'/').then_some(name)
}

const OWN_DIRECTORIES: [&str; 3] = ["refs/bisect", "refs/rewritten", "refs/worktree"];

fn visit_packed(reference: PackedRef<'_>, visit: VisitRef<'_>) -> Result<ControlFlow<()>> {
    if !name::is_valid(reference.name, name::Form::Full) {
        return visit(Err(BrokenRef::Contents(reference.name)));
    }
    visit(Ok(ReferenceRef {
        name: reference.name,
        id: reference.id,
        symbolic: None,
        peeled: reference.peeled,
    }))
}

struct DirectoryIteration<'a> {
    /// Whether per-worktree refs are skipped.
    skip_own: bool,
    visit: &'a mut dyn FnMut(&BStr),
}

impl DirectoryIteration<'_> {
    /// Visits the name of each file. A file that is removed meanwhile is skipped.
    fn directory(&mut self, path: &Path, name: &mut BString, depth: usize) {
        let Ok(entries) = std::fs::read_dir(path) else {
            return;
        };
        let length = name.len();
        for entry in entries.flatten() {
            let file_name = entry.file_name();
            let bytes = file_name.as_bytes();
            if bytes.starts_with(b".") || bytes.ends_with(b".lock") {
                continue;
            }
            name.push(b'/');
            name.push_str(bytes);
            let is_dir = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => match std::fs::metadata(entry.path()) {
                    Ok(target) => target.is_dir(),
                    // As in Git, a dangling symbolic link is not listed.
                    Err(_) => {
                        name.truncate(length);
                        continue;
                    }
                },
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
            let is_own = || OWN_DIRECTORIES.iter().any(|own| *name == **own);
            if !is_dir {
                (self.visit)(name.as_bstr());
            } else if depth < MAX_DEPTH && !(self.skip_own && is_own()) {
                self.directory(&entry.path(), name, depth + 1);
            }
            name.truncate(length);
        }
    }
}
