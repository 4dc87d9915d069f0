//! `rev-parse --all`, `--branches`, `--glob` and similar options.

use std::ops::ControlFlow;

use bstr::ByteSlice;
use pronto::refs::BrokenRef;
use pronto::revision::RefSelection;

use super::ArgumentParser;
use crate::CliError;

impl ArgumentParser<'_> {
    /// Prints the selected refs that are not excluded, and clears the exclusions.
    pub(super) fn show_references(&mut self, selection: &RefSelection) -> Result<(), CliError> {
        let repository = self.repository()?;
        let excluded = std::mem::take(&mut self.excluded);
        let mut found = Vec::new();
        let directory = selection.directory_name();
        let null = repository.object_hash().null();
        repository
            .refs()
            .for_each_or_broken(directory, |reference| {
                let (name, id) = match reference {
                    Ok(reference) => (reference.name, reference.id),
                    Err(BrokenRef::Contents(name)) => (name, null),
                    Err(BrokenRef::Dangling(_)) => return Ok(ControlFlow::Continue(())),
                };
                if let Some(shown) = selection.shown(name, &excluded) {
                    found.push((id, shown.to_owned()));
                }
                Ok(ControlFlow::Continue(()))
            })?;
        for (id, name) in found {
            self.show_revision(false, id, Some(name.as_bstr()))?;
        }
        Ok(())
    }
}
