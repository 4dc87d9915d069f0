//! Notices about sending and receiving pushes.

use std::fmt;

use bstr::BString;

/// The side of a refspec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefspecSide {
    /// The object or ref that is sent.
    Source,
    /// The ref of the remote repository.
    Destination,
}

/// The type of an object that a refspec sends, which determines the proposed ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentKind {
    /// A commit, for which a branch is proposed.
    Commit,
    /// A tag object, for which a tag is proposed.
    Tag,
    /// A tree, for which a tag is proposed.
    Tree,
    /// A blob, for which a tag is proposed.
    Blob,
}

/// A notice about a push. [`Display`](fmt::Display) writes Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PushNotice {
    /// A name of a refspec matches more than one ref.
    Ambiguous {
        /// The side of the refspec with the name.
        side: RefspecSide,
        /// The name.
        name: BString,
    },
    /// This source matches no ref or object.
    NoSource(BString),
    /// This ref is the destination of two refspecs.
    SharedDestination(BString),
    /// This ref is to be deleted but does not exist.
    NothingToDelete(BString),
    /// The destination is not a full name and cannot be completed.
    Unqualified {
        /// The destination as it was given.
        destination: BString,
        /// The source as it was given.
        source: BString,
    },
    /// Advice with a proposed full name.
    Proposal {
        /// The type of the object.
        kind: SentKind,
        /// The destination as it was given.
        destination: BString,
        /// The source as it was given.
        source: BString,
    },
    /// The server reports a status for a ref that was not pushed.
    UnknownReport(BString),
    /// The server reports a second status for this ref, or a status for a ref that needs none.
    UnexpectedReport(BString),
    /// The configuration of the server names an unknown message id of fsck.
    UnknownFsckCheck(BString),
    /// The command of `core.alternateRefsCommand` printed this malformed line.
    MalformedAlternateRef(BString),
}

impl PushNotice {
    /// Returns whether Git reports the notice as an error.
    pub fn is_error(&self) -> bool {
        matches!(
            self,
            PushNotice::Ambiguous { .. }
                | PushNotice::NoSource(_)
                | PushNotice::SharedDestination(_)
                | PushNotice::NothingToDelete(_)
                | PushNotice::Unqualified { .. }
        )
    }

    /// Returns whether the notice is advice.
    pub fn is_hint(&self) -> bool {
        matches!(self, PushNotice::Proposal { .. })
    }
}

impl fmt::Display for PushNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PushNotice::Ambiguous { side, name } => {
                let side = match side {
                    RefspecSide::Source => "src",
                    RefspecSide::Destination => "dst",
                };
                write!(f, "{side} refspec {name} matches more than one")
            }
            PushNotice::NoSource(name) => write!(f, "src refspec {name} does not match any"),
            PushNotice::SharedDestination(name) => {
                write!(f, "dst ref {name} receives from more than one src")
            }
            PushNotice::NothingToDelete(name) => {
                write!(f, "unable to delete '{name}': remote ref does not exist")
            }
            PushNotice::Unqualified {
                destination,
                source,
            } => write!(
                f,
                "The destination you provided is not a full refname (i.e.,\n\
                 starting with \"refs/\"). We tried to guess what you meant by:\n\
                 \n\
                 - Looking for a ref that matches '{destination}' on the remote side.\n\
                 - Checking if the <src> being pushed ('{source}')\n  \
                 is a ref in \"refs/{{heads,tags}}/\". If so we add a corresponding\n  \
                 refs/{{heads,tags}}/ prefix on the remote side.\n\
                 \n\
                 Neither worked, so we gave up. You must fully qualify the ref."
            ),
            PushNotice::Proposal {
                kind,
                destination,
                source,
            } => {
                let (kind, action, place) = match kind {
                    SentKind::Commit => ("commit", "create a new branch", "heads"),
                    SentKind::Tag => ("tag", "create a new tag", "tags"),
                    SentKind::Tree => ("tree", "tag a new tree", "tags"),
                    SentKind::Blob => ("blob", "tag a new blob", "tags"),
                };
                write!(
                    f,
                    "The <src> part of the refspec is a {kind} object.\n\
                     Did you mean to {action} by pushing to\n\
                     '{source}:refs/{place}/{destination}'?"
                )
            }
            PushNotice::UnknownReport(name) => {
                write!(f, "remote reported status on unknown ref: {name}")
            }
            PushNotice::UnexpectedReport(name) => {
                write!(f, "remote reported status on unexpected ref: {name}")
            }
            PushNotice::UnknownFsckCheck(name) => write!(f, "skipping unknown msg id '{name}'"),
            PushNotice::MalformedAlternateRef(line) => {
                write!(f, "invalid line while parsing alternate refs: {line}")
            }
        }
    }
}
