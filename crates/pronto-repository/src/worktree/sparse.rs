//! The patterns of a sparse checkout (`info/sparse-checkout`).

use bstr::BString;
use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, SymlinkPolicy};
use pronto_worktree::sparse::SparseDefinition;

use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// Returns whether the worktree is a sparse checkout (`core.sparseCheckout`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn is_sparse_checkout(&self) -> Result<bool> {
        self.config().bool_or("core.sparsecheckout", false)
    }

    /// Returns whether the sparse-checkout patterns are in cone mode (`core.sparseCheckoutCone`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn uses_cone(&self) -> Result<bool> {
        self.config().bool_or("core.sparsecheckoutcone", false)
    }

    /// Returns the parsed content of `info/sparse-checkout`; `None` if the file does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, or [`ErrorKind::ConfigValue`] if
    /// `core.sparseCheckoutCone` is not a boolean.
    pub fn sparse_definition(&self) -> Result<Option<SparseDefinition>> {
        let Some(text) = self.sparse_text()? else {
            return Ok(None);
        };
        let (definition, unrecognized) = SparseDefinition::parse(&text, self.uses_cone()?);
        self.note_unrecognized_pattern(unrecognized);
        Ok(Some(definition))
    }

    /// Returns the bytes of `info/sparse-checkout`; `None` if the file does not exist.
    pub(crate) fn sparse_text(&self) -> Result<Option<Vec<u8>>> {
        let file = self.git_path("info/sparse-checkout");
        match untrusted::read(&file, SymlinkPolicy::Follow, LARGEST_TEXT_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let message = format!("cannot read '{}'", path::as_bytes(&file));
                Err(Error::new(ErrorKind::Io, message).because(error))
            }
        }
    }

    /// Reports, as a notice, the line `line` that is not a directory pattern.
    pub(crate) fn note_unrecognized_pattern(&self, line: Option<BString>) {
        if let Some(line) = line {
            self.notify(Notice::UnrecognizedPattern(line));
            self.notify(Notice::ConeDisabled);
        }
    }
}
