//! The results of ref updates.

use std::fmt;

/// The result of one ref update, as decided locally or as the remote reported it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PushStatus {
    /// The ref is not updated.
    #[default]
    None,
    /// The ref was updated.
    Ok,
    /// Rejected locally: the update is not a fast-forward.
    RejectNonFastForward,
    /// Rejected locally: the tag already exists.
    RejectAlreadyExists,
    /// Rejected locally: the remote does not support deleting refs.
    RejectNoDelete,
    /// Rejected locally: the old object of the ref must be fetched first.
    RejectFetchFirst,
    /// Rejected locally: the old or the new object is not a commit.
    RejectNeedsForce,
    /// Rejected locally: the ref does not have the expected value (`--force-with-lease`).
    RejectStale,
    /// Rejected locally: an update of the ref was not integrated (`--force-if-includes`).
    RejectRemoteUpdated,
    /// The ref already has the new value.
    UpToDate,
    /// The remote refused the update.
    RemoteReject,
    /// The remote has not reported a result.
    ExpectingReport,
    /// The update was dropped because another update of the atomic push failed.
    AtomicPushFailed,
}

impl PushStatus {
    /// Returns the number of the status in Git's messages.
    pub fn number(self) -> u8 {
        match self {
            PushStatus::None => 0,
            PushStatus::Ok => 1,
            PushStatus::RejectNonFastForward => 2,
            PushStatus::RejectAlreadyExists => 3,
            PushStatus::RejectNoDelete => 4,
            PushStatus::RejectFetchFirst => 5,
            PushStatus::RejectNeedsForce => 6,
            PushStatus::RejectStale => 7,
            PushStatus::RejectRemoteUpdated => 9,
            PushStatus::UpToDate => 10,
            PushStatus::RemoteReject => 11,
            PushStatus::ExpectingReport => 12,
            PushStatus::AtomicPushFailed => 13,
        }
    }

    /// Returns the status in the words of the table of `git push`, where a rejected update has its
    /// reason in parentheses.
    pub fn as_str(self) -> &'static str {
        match self {
            PushStatus::None => "no match",
            PushStatus::Ok => "ok",
            PushStatus::RejectNonFastForward => "non-fast-forward",
            PushStatus::RejectAlreadyExists => "already exists",
            PushStatus::RejectNoDelete => "remote does not support deleting refs",
            PushStatus::RejectFetchFirst => "fetch first",
            PushStatus::RejectNeedsForce => "needs force",
            PushStatus::RejectStale => "stale info",
            PushStatus::RejectRemoteUpdated => "remote ref updated since checkout",
            PushStatus::UpToDate => "up to date",
            PushStatus::RemoteReject => "remote rejected",
            PushStatus::ExpectingReport => "remote failed to report status",
            PushStatus::AtomicPushFailed => "atomic push failed",
        }
    }

    /// Whether the update is rejected locally.
    pub(super) fn is_rejection(self) -> bool {
        matches!(
            self,
            PushStatus::RejectNonFastForward
                | PushStatus::RejectAlreadyExists
                | PushStatus::RejectNoDelete
                | PushStatus::RejectFetchFirst
                | PushStatus::RejectNeedsForce
                | PushStatus::RejectStale
                | PushStatus::RejectRemoteUpdated
        )
    }

    /// Whether the status is not a failure.
    pub(crate) fn is_fine(self) -> bool {
        matches!(
            self,
            PushStatus::None | PushStatus::Ok | PushStatus::UpToDate
        )
    }
}

/// The words of [`PushStatus::as_str`].
impl fmt::Display for PushStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
