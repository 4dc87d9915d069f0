//! Iterates over refs below a prefix, in order of their names, loose before packed.

use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use pronto_hash::ObjectId;

use super::{RefName, RefNameRef, Reference, References, Target, loose, name, packed::PackedRef};
use pronto_config::{Result, path};
use pronto_io::short::Short as _;

/// The deepest nesting of directories of refs.
const MAX_DEPTH: usize = 256;

/// One reference during an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRef<'a> {
    /// Its full name.
    pub name: &'a BStr,
    /// The object it leads to.
    pub id: ObjectId,
    /// The name that a symbolic reference holds.
    pub symbolic: Option<&'a RefName>,
    /// The object to which the tag finally points, if that is known without reading it.
    pub peeled: Option<ObjectId>,
}

/// An entry that is no reference to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken<'a> {
    /// A file that holds nonsense, or has an impossible name.
    Contents(&'a BStr),
    /// A symbolic reference to one that does not exist.
    Dangling(&'a BStr),
}

/// An item of an iteration.
pub type Found<'a> = Result<ReferenceRef<'a>, Broken<'a>>;

pub(super) type Visit<'a> = &'a mut dyn FnMut(Found<'_>) -> Result<ControlFlow<()>>;

impl References {
    /// Calls `visit` for each ref whose name starts with `prefix`, in order of names, until it
    /// breaks. Dangling refs are skipped.
    ///
    /// Costs one read per loose ref below the prefix; packed ones cost no allocation.
    ///
    /// # Errors
    /// The packed refs cannot be read, or `visit` failed.
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

    /// Like [`for_each`](Self::for_each), with what is broken on the way.
    ///
    /// # Errors
    /// The packed references cannot be read, or `visit` failed.
    pub fn for_each_or_broken(
        &self,
        prefix: impl AsRef<[u8]>,
        mut visit: impl FnMut(Found<'_>) -> Result<ControlFlow<()>>,
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

    fn visit_loose(&self, name: &BStr, visit: Visit<'_>) -> Result<ControlFlow<()>> {
        let Some(safe) = full(name) else {
            return visit(Err(Broken::Contents(name)));
        };
        let contents = loose::read(&self.file_of(safe), name, self.object_hash);
        let target = match contents.and_then(|found| found.map_or(Ok(None), |it| it.target(name))) {
            Ok(Some(target)) => target,
            // It was packed meanwhile, or removed, or is a link that leads nowhere.
            Ok(None) => match self.find_listed(name)? {
                Some(found) => found.target,
                None => return Ok(ControlFlow::Continue(())),
            },
            Err(_) => return visit(Err(Broken::Contents(name))),
        };
        let found = |id, symbolic| ReferenceRef {
            name,
            id,
            symbolic,
            peeled: None,
        };
        match target {
            Target::Object(id) => visit(Ok(found(id, None))),
            Target::Symbolic(to) => match self.resolve(&to) {
                Ok(Some(super::Resolved { id: Some(id), .. })) => visit(Ok(found(id, Some(&to)))),
                // As in Git, one that leads to itself or to a broken ref is like one that leads nowhere.
                Ok(_) | Err(_) => visit(Err(Broken::Dangling(name))),
            },
        }
    }

    /// Returns the ref of this name, also if a symbolic link that leads nowhere hides it from lookups.
    fn find_listed(&self, name: &BStr) -> Result<Option<Reference>> {
        match self.find(name)? {
            None => self.find_packed(name),
            found => Ok(found),
        }
    }

    /// Returns all refs whose name starts with `prefix`, in order of names, without dangling ones.
    /// Symbolic refs stay symbolic.
    ///
    /// # Errors
    /// The packed refs cannot be read.
    pub fn all(&self, prefix: impl AsRef<[u8]>) -> Result<Vec<Reference>> {
        let mut all = Vec::new();
        self.for_each(prefix, |reference| {
            let target = match reference.symbolic {
                Some(to) => Target::Symbolic(to.clone()),
                None => Target::Object(reference.id),
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

    /// The first reference, loose or packed, with a name below `directory` (no slash at its end)
    /// for which `counts` holds.
    ///
    /// # Errors
    /// References cannot be listed.
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
                Err(Broken::Contents(name) | Broken::Dangling(name)) => name,
            };
            if !counts(name) {
                return Ok(ControlFlow::Continue(()));
            }
            first = Some(name.to_owned());
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// The names of all files below `refs/` that start with `prefix`, sorted.
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
        let mut walk = Walk {
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

/// `name`, if it is well formed and has at least two components.
pub(super) fn full(name: &BStr) -> Option<RefNameRef<'_>> {
    let name = RefNameRef::new(name).ok()?;
    name.contains(&b'/').then_some(name)
}

const OWN_DIRECTORIES: [&str; 3] = ["refs/bisect", "refs/rewritten", "refs/worktree"];

fn visit_packed(reference: PackedRef<'_>, visit: Visit<'_>) -> Result<ControlFlow<()>> {
    if !name::is_valid(reference.name, name::Form::Full) {
        return visit(Err(Broken::Contents(reference.name)));
    }
    visit(Ok(ReferenceRef {
        name: reference.name,
        id: reference.id,
        symbolic: None,
        peeled: reference.peeled,
    }))
}

struct Walk<'a> {
    /// Whether per-worktree refs are left out.
    skip_own: bool,
    visit: &'a mut dyn FnMut(&BStr),
}

impl Walk<'_> {
    /// Visits the name of each file. What vanishes meanwhile is not there.
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
                    // As in Git, a link that leads to no file is in no list.
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
