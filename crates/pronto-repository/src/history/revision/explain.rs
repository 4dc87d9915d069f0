//! Explains to the user why a name cannot be resolved.

use bstr::{BStr, ByteSlice};
use gix_object::Kind as ObjectKind;

use super::ExpectedType;
use super::path::{colon, stage_and_path};
use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// Explains why [`try_resolve`](Self::try_resolve) did not find `spec`. Returns `Ok` if there is no
    /// more specific reason than an unknown name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownRevision`] and Git's message if the path of `spec` is not in the
    /// tree or index.
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
        let Ok(Some(root)) = self.resolve_object(name, ExpectedType::Treeish, 0) else {
            return fail(format!("invalid object name '{name}'."));
        };
        let file = self.path_below_top(spec[colon + 1..].as_bstr())?;
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

    /// Refuses `argument`, which is not a revision, unless it is an existing file or a pathspec. With
    /// `may_be_revision` the message also considers a misspelt revision.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::UnknownRevision`] and Git's message if `argument` is neither.
    pub fn verify_file_name(&self, argument: &BStr, may_be_revision: bool) -> Result<()> {
        if argument.starts_with(b"-") {
            return fail(format!(
                "option '{argument}' must come before non-option arguments"
            ));
        }
        if looks_like_pathspec(argument) || self.is_file_name(argument) {
            return Ok(());
        }
        if !may_be_revision {
            return fail(format!(
                "{argument}: no such path in the working tree.\n\
                 Use 'git <command> -- <path>...' to specify paths that do not exist locally."
            ));
        }
        let is_magic =
            argument.starts_with(b":") && !argument.get(1).is_some_and(u8::is_ascii_alphanumeric);
        if !is_magic {
            self.explain_missing(argument)?;
        }
        fail(format!(
            "ambiguous argument '{argument}': unknown revision or path not in the working tree.\n\
             Use '--' to separate paths from revisions, like this:\n\
             'git <command> [<revision>...] -- [<file>...]'"
        ))
    }

    /// Returns whether `argument`, which names a revision, could also be a file or a pathspec. Git
    /// refuses such arguments unless `--` follows. Returns `false` outside of a worktree.
    pub fn could_be_file(&self, argument: &BStr) -> bool {
        self.is_inside_work_tree() && self.verify_file_name(argument, false).is_ok()
    }

    fn is_file_name(&self, argument: &BStr) -> bool {
        if let Some(rest) = argument.strip_prefix(b":/") {
            return rest.is_empty() || self.is_on_disk(rest.as_bstr());
        }
        let magic = [&b":!"[..], b":^"];
        let bare = magic.iter().find_map(|magic| argument.strip_prefix(*magic));
        let has_magic = bare.is_some();
        let argument = bare.unwrap_or(argument);
        if argument.is_empty() {
            // Below the top of the worktree, an empty path is the current directory.
            return has_magic || !self.prefix_or_empty().is_empty();
        }
        let here = self.environment().current_dir();
        here.join(path::borrow(argument)).symlink_metadata().is_ok()
    }

    fn explain_index_path(&self, rest: &BStr) -> Result<()> {
        let (stage, file) = stage_and_path(rest);
        let file = self.path_below_top(file)?;
        let index = self.index()?;
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

/// Returns whether `argument` has wildcards or long-form pathspec magic.
fn looks_like_pathspec(argument: &BStr) -> bool {
    let mut escaped = false;
    for &byte in argument.iter() {
        if escaped {
            escaped = false;
        } else if byte == b'\\' {
            escaped = true;
        } else if matches!(byte, b'*' | b'?' | b'[') {
            return true;
        }
    }
    argument.starts_with(b":(")
}

fn fail(message: String) -> Result<()> {
    Err(Error::new(ErrorKind::UnknownRevision, message))
}
