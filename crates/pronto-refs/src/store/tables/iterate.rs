//! Iterates over the refs in reftables below a prefix, in order of names.

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use pronto_config::Result;

use super::super::iterate::VisitRef;
use super::super::{BrokenRef, RefTarget, ReferenceRef, References, ResolvedRef, name};
use super::{RefStacks, from_tables, target_of};
use crate::reftable::RefRecord;

/// A per-worktree ref.
struct WorktreeRef {
    name: BString,
    /// The value of the ref; `None` if the ref is broken.
    target: Option<RefTarget>,
}

impl References {
    /// Calls `visit` for each ref below `refs/` whose name starts with `prefix`.
    pub(in super::super) fn for_each_in_tables(
        &self,
        tables: &RefStacks,
        prefix: &BStr,
        visit: VisitRef<'_>,
    ) -> Result<()> {
        let prefix = match b"refs/".starts_with(prefix) {
            true => BStr::new("refs/"),
            false if prefix.starts_with(b"refs/") => prefix,
            false => return Ok(()),
        };
        let mut own = own_references(tables, prefix)?.into_iter().peekable();
        let shared = tables.shared()?.snapshot().map_err(from_tables)?;
        let mut records = shared.refs_with_prefix(prefix).map_err(from_tables)?;
        while let Some(record) = records.next().map_err(from_tables)? {
            if tables.is_linked() && name::is_per_worktree(record.name) {
                continue;
            }
            while let Some(before) = own.next_if(|own| own.name < record.name) {
                if self.visit_own(&before, visit)?.is_break() {
                    return Ok(());
                }
            }
            if self.visit_record(&record, visit)?.is_break() {
                return Ok(());
            }
        }
        for left in own {
            if self.visit_own(&left, visit)?.is_break() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn visit_record(&self, record: &RefRecord<'_>, visit: VisitRef<'_>) -> Result<ControlFlow<()>> {
        let name = record.name;
        if !name::is_valid(name, name::Form::Full) {
            return visit(Err(BrokenRef::Contents(name)));
        }
        if let Some(id) = record.value.object() {
            return visit(Ok(ReferenceRef {
                name,
                id: id.to_owned(),
                symbolic: None,
                peeled: record.value.target().map(ToOwned::to_owned),
            }));
        }
        match target_of(name, record.value) {
            Ok(Some(target)) => self.visit_target(name, &target, visit),
            Ok(None) => Ok(ControlFlow::Continue(())),
            Err(_) => visit(Err(BrokenRef::Contents(name))),
        }
    }

    fn visit_own(&self, own: &WorktreeRef, visit: VisitRef<'_>) -> Result<ControlFlow<()>> {
        match &own.target {
            Some(target) => self.visit_target(own.name.as_bstr(), target, visit),
            None => visit(Err(BrokenRef::Contents(own.name.as_bstr()))),
        }
    }

    fn visit_target(
        &self,
        name: &BStr,
        target: &RefTarget,
        visit: VisitRef<'_>,
    ) -> Result<ControlFlow<()>> {
        let found = |id, symbolic| ReferenceRef {
            name,
            id,
            symbolic,
            peeled: None,
        };
        match target {
            RefTarget::Object(id) => visit(Ok(found(*id, None))),
            RefTarget::Symbolic(to) => match self.resolve(to) {
                Ok(Some(ResolvedRef { id: Some(id), .. })) => visit(Ok(found(id, Some(to)))),
                Ok(_) => visit(Err(BrokenRef::Dangling(name))),
                Err(_) => visit(Err(BrokenRef::Contents(name))),
            },
        }
    }
}

/// Returns the per-worktree refs of a linked worktree.
fn own_references(tables: &RefStacks, prefix: &BStr) -> Result<Vec<WorktreeRef>> {
    let mut found = Vec::new();
    if !tables.is_linked() {
        return Ok(found);
    }
    let snapshot = tables.own()?.snapshot().map_err(from_tables)?;
    let mut records = snapshot.refs_with_prefix(prefix).map_err(from_tables)?;
    while let Some(record) = records.next().map_err(from_tables)? {
        if name::is_per_worktree(record.name) {
            let is_valid = name::is_valid(record.name, name::Form::Full);
            let target = target_of(record.name, record.value).ok().flatten();
            found.push(WorktreeRef {
                name: record.name.to_owned(),
                target: target.filter(|_| is_valid),
            });
        }
    }
    Ok(found)
}
