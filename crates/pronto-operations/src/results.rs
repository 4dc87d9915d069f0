//! Converts outcomes with failures into errors, for callers that treat every failure as an error.

use pronto_hash::ObjectId;
use pronto_worktree::checkout::CheckoutFailure;

use crate::{Error, ErrorKind, Result};
use crate::{add, checkout_paths, checkout_tree, commit, read_tree, reset, switch};

/// Returns the error of the first file that could not be written.
fn written(failed: Vec<CheckoutFailure>) -> Result<()> {
    failed
        .into_iter()
        .next()
        .map_or(Ok(()), |it| Err(it.into()))
}

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

impl add::Report {
    /// Returns the report if all files could be staged, and otherwise the reason of the first
    /// failure as an error. The other files are staged even then.
    ///
    /// # Errors
    /// Fails with the kind of the error of a file, with [`ErrorKind::Hostile`] for a path that is not
    /// allowed in an index, with [`ErrorKind::InvalidInput`] if a pathspec matches no file, and
    /// otherwise with [`ErrorKind::Refused`].
    pub fn into_result(self) -> Result<Self> {
        if !self.failed {
            return Ok(self);
        }
        let reason = self.events.into_iter().find_map(|event| match event {
            add::Event::Failure(add::StagingFailure::Unreadable { error, .. })
            | add::Event::Failure(add::StagingFailure::NotStored { error, .. })
            | add::Event::Failure(add::StagingFailure::HostilePath { error, .. }) => Some(error),
            add::Event::Failure(failure) => Some(refused(failure.to_string())),
            add::Event::Unmatched(spec) => {
                let message = format!("pathspec '{spec}' did not match any files");
                Some(Error::new(ErrorKind::InvalidInput, message))
            }
            add::Event::Unexamined(path, error) => {
                let message = format!("cannot read '{path}'");
                Some(Error::new(ErrorKind::Io, message).because(error))
            }
            add::Event::Ignored(paths) => {
                let paths = bstr::join(", ", paths);
                let paths = String::from_utf8_lossy(&paths);
                Some(refused(format!(
                    "paths are ignored by a .gitignore file: {paths}"
                )))
            }
            _ => None,
        });
        Err(reason.unwrap_or_else(|| refused("adding files failed")))
    }
}

impl switch::Outcome {
    /// Returns the report if the switch is done and all files could be written. Otherwise returns the
    /// reason as an error.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] and the message of Git if local changes would be lost or the
    /// index is unmerged, and with the kind of the error of the first file that could not be written.
    /// In the last case `HEAD` has moved.
    pub fn into_result(self) -> Result<switch::Report> {
        match self {
            switch::Outcome::Done(mut report) => {
                written(std::mem::take(&mut report.failed))?;
                Ok(*report)
            }
            switch::Outcome::Refused(refusals) => Err(refused(refusals.to_string())),
            switch::Outcome::Unmerged(_) => {
                Err(refused("you need to resolve your current index first"))
            }
        }
    }
}

impl reset::Outcome {
    /// Returns the report if the reset is done and all files could be written. Otherwise returns the
    /// reason as an error.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if local changes would be lost, with
    /// [`ErrorKind::UnknownRevision`] if `HEAD` has no commit and the mode needs one, and with the kind
    /// of the error of the first file that could not be written.
    pub fn into_result(self) -> Result<reset::Report> {
        match self {
            reset::Outcome::Done(mut report) => {
                written(std::mem::take(&mut report.failed))?;
                Ok(report)
            }
            reset::Outcome::Refused(refusals) => Err(refused(refusals.to_string())),
            reset::Outcome::NoHead => {
                let message = "you do not have a valid HEAD";
                Err(Error::new(ErrorKind::UnknownRevision, message))
            }
        }
    }
}

impl checkout_paths::Report {
    /// Returns the report if all paths could be restored, and otherwise the reason of the first failure
    /// as an error.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] and the message of Git if nothing was restored, and with the
    /// kind of the error of the first file that could not be written.
    pub fn into_result(mut self) -> Result<Self> {
        if let Some(error) = self.errors.first() {
            return Err(refused(error.to_string()));
        }
        written(std::mem::take(&mut self.failed))?;
        Ok(self)
    }
}

impl checkout_tree::Outcome {
    /// Returns the outcome if all files could be written, and otherwise the error of the first that
    /// could not.
    ///
    /// # Errors
    /// Fails with the kind of the error of that file.
    pub fn into_result(mut self) -> Result<Self> {
        written(std::mem::take(&mut self.failed))?;
        Ok(self)
    }
}

impl commit::Outcome {
    /// Returns the id of the new commit, and an error if there is none.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the message is empty or there is nothing to commit.
    pub fn into_result(self) -> Result<ObjectId> {
        match self {
            commit::Outcome::Done(id) => Ok(id),
            commit::Outcome::EmptyMessage => Err(refused("the commit message is empty")),
            commit::Outcome::NothingToCommit => Err(refused("nothing to commit")),
        }
    }
}

impl read_tree::ReadTrees {
    /// Returns an error unless the trees were read and all files could be written.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] and the message of Git if nothing was changed, and with the
    /// kind of the error of the first file that could not be written.
    pub fn into_result(self) -> Result<()> {
        match self {
            read_tree::ReadTrees::Done(outcome) => written(outcome.failed),
            read_tree::ReadTrees::Refused(refusals) => Err(refused(
                refusals
                    .first()
                    .map_or_else(String::new, |first| first.to_string()),
            )),
            read_tree::ReadTrees::NeedsFileMerge => {
                Err(refused("merge requires file-level merging"))
            }
            read_tree::ReadTrees::Unmerged => {
                Err(refused("you need to resolve your current index first"))
            }
        }
    }
}
