//! Why a name leads nowhere, for a person who mistyped it.

use bstr::{BStr, ByteSlice};
use gix_object::Kind as ObjectKind;

use super::Want;
use super::path::{colon, stage_and_path};
use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// What is wrong with `spec`, which [`try_resolve`](Self::try_resolve) did not find, where
    /// more can be said than that it is unknown: a path that is not in the tree or index.
    ///
    /// # Errors
    /// That explanation.
    pub fn explain_missing(&self, spec: &BStr) -> Result<()> {
        if let Some(rest) = spec.strip_prefix(b":") {
            if rest.is_empty() || rest.starts_with(b"/") {
                return Ok(());
            }
            return self.explain_index_path(rest.as_bstr());
        }
        let Some(colon) = colon(spec) else {
            return Ok(());
        };
        let name = spec[..colon].as_bstr();
        let Ok(Some(root)) = self.resolve_object(name, Want::Treeish, 0) else {
            return fail(format!("invalid object name '{name}'."));
        };
        let file = self.from_the_top(spec[colon + 1..].as_bstr())?;
        if self.is_on_disk(file.as_bstr()) {
            return fail(format!("path '{file}' exists on disk, but not in '{name}'"));
        }
        let full = [self.prefix_or_empty().as_slice(), &file].concat();
        let full = full.as_bstr();
        if let Some(tree) = self.peel_to(root, ObjectKind::Tree)?
            && self.tree_entry(tree, full)?.is_some()
        {
            return fail(format!(
                "path '{full}' exists, but not '{file}'\n\
                 hint: Did you mean '{name}:{full}' aka '{name}:./{file}'?"
            ));
        }
        fail(format!("path '{file}' does not exist in '{name}'"))
    }

    fn explain_index_path(&self, rest: &BStr) -> Result<()> {
        let (stage, file) = stage_and_path(rest);
        let file = self.from_the_top(file)?;
        let index = self.open_index()?;
        let stage_of = |path: &BStr| {
            let at = index.stages(path).next()?;
            Some(u32::from(index.entry(at).stage()))
        };
        if let Some(there) = stage_of(file.as_bstr()) {
            return fail(format!(
                "path '{file}' is in the index, but not at stage {stage}\n\
                 hint: Did you mean ':{there}:{file}'?"
            ));
        }
        let full = [self.prefix_or_empty().as_slice(), &file].concat();
        let full = full.as_bstr();
        if let Some(there) = stage_of(full) {
            return fail(format!(
                "path '{full}' is in the index, but not '{file}'\n\
                 hint: Did you mean ':{there}:{full}' aka ':{there}:./{file}'?"
            ));
        }
        if self.is_on_disk(file.as_bstr()) {
            return fail(format!(
                "path '{file}' exists on disk, but not in the index"
            ));
        }
        fail(format!(
            "path '{file}' does not exist (neither on disk nor in the index)"
        ))
    }

    fn is_on_disk(&self, file: &BStr) -> bool {
        let top = self.work_tree().unwrap_or(self.environment().current_dir());
        top.join(path::borrow(file)).symlink_metadata().is_ok()
    }
}

fn fail(message: String) -> Result<()> {
    Err(Error::new(ErrorKind::UnknownRevision, message))
}
