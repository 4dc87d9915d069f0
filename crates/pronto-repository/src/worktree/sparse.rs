//! The recorded patterns of a sparse checkout.

use pronto_io::untrusted::{self, LARGEST_TEXT_BYTES, Links};
use pronto_worktree::sparse::Definition;

use crate::{Error, ErrorKind, Repository, Result, path};

impl Repository {
    /// Whether this is a sparse checkout (`core.sparseCheckout`).
    ///
    /// # Errors
    /// The value is no boolean.
    pub fn is_sparse_checkout(&self) -> Result<bool> {
        self.config().bool_or("core.sparsecheckout", false)
    }

    /// Whether its patterns are directories (`core.sparseCheckoutCone`).
    ///
    /// # Errors
    /// The value is no boolean.
    pub fn uses_cone(&self) -> Result<bool> {
        self.config().bool_or("core.sparsecheckoutcone", true)
    }

    /// What `info/sparse-checkout` says; `None` if there is no such file.
    ///
    /// # Errors
    /// It cannot be read, or a value is no boolean.
    pub fn sparse_definition(&self) -> Result<Option<Definition>> {
        let Some(text) = self.sparse_text()? else {
            return Ok(None);
        };
        let (definition, warning) = Definition::parse(&text, self.uses_cone()?);
        self.warn_of_sparse(warning.as_deref());
        Ok(Some(definition))
    }

    /// The bytes of `info/sparse-checkout`; `None` if there is no such file.
    pub(crate) fn sparse_text(&self) -> Result<Option<Vec<u8>>> {
        let file = self.git_path("info/sparse-checkout");
        match untrusted::read(&file, Links::Follow, LARGEST_TEXT_BYTES) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let message = format!("cannot read '{}'", path::as_bytes(&file));
                Err(Error::new(ErrorKind::Io, message).because(error))
            }
        }
    }

    /// Reports a warning about the sparse patterns.
    pub(crate) fn warn_of_sparse(&self, warning: Option<&str>) {
        for line in warning.iter().flat_map(|warning| warning.lines()) {
            self.warn(line.trim_start_matches("warning: "));
        }
    }
}
