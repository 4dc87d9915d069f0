//! Converts outcomes with failures into errors, for callers that treat every failure as an error.

use crate::{Error, ErrorKind, Result};
use crate::{fetch, push, upload_pack};

fn refused(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Refused, message)
}

impl fetch::Outcome {
    /// Returns the outcome if all refs could be updated, and otherwise the reason of the first failure
    /// as an error. The other refs are updated even then, unless [`fetch::Options::atomic`] is set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if an update was refused, with [`ErrorKind::NameConflict`] if
    /// the name of a ref conflicts with that of another, with [`ErrorKind::Reference`] if a remote name
    /// cannot be a local one, and with the kind of the error of a ref that could not be written.
    pub fn into_result(self) -> Result<Self> {
        if !self.failed && self.errors.is_empty() {
            return Ok(self);
        }
        if let Some(failure) = self.errors.into_iter().next() {
            let message = failure.to_string();
            return Err(match failure {
                fetch::FetchFailure::NotWritten(error) => error,
                fetch::FetchFailure::NameConflict { .. } => {
                    Error::new(ErrorKind::NameConflict, message)
                }
                fetch::FetchFailure::UnstorableName(_) => Error::new(ErrorKind::Reference, message),
            });
        }
        let mut updates = self.updates.into_iter();
        let rejected = updates.find(|update| update.flag == fetch::Flag::Rejected);
        Err(rejected.map_or_else(
            || refused("some refs were not updated"),
            |update| match update.note {
                Some(note) => refused(format!("{}: {} ({note})", update.local, update.summary)),
                None => refused(format!("{}: {}", update.local, update.summary)),
            },
        ))
    }
}

impl push::Outcome {
    /// Returns the outcome if the push and the updates of all refs succeeded, and otherwise the first
    /// failure as an error.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`]. The message has the name of the ref and the reason of the
    /// remote, if there is one.
    pub fn into_result(self) -> Result<Self> {
        if !self.has_errors() {
            return Ok(self);
        }
        let failed = self.refs.iter().find(|pushed| !pushed.status.is_fine());
        Err(failed.map_or_else(
            || refused("failed to push some refs"),
            |pushed| match &pushed.remark {
                Some(remark) => refused(format!("{}: {} ({remark})", pushed.name, pushed.status)),
                None => refused(format!("{}: {}", pushed.name, pushed.status)),
            },
        ))
    }
}

impl upload_pack::ConversationEnd {
    /// Returns an error unless all requests were served. The client was informed of the error already;
    /// its message is for the log of the server.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the client requested an object that is not allowed, and with
    /// [`ErrorKind::Object`] if the pack could not be created.
    pub fn into_result(self) -> Result<()> {
        match self {
            upload_pack::ConversationEnd::Served => Ok(()),
            upload_pack::ConversationEnd::Refused(message) => Err(refused(message.to_string())),
            upload_pack::ConversationEnd::Aborted(message) => {
                Err(Error::new(ErrorKind::Object, message.to_string()))
            }
        }
    }
}
