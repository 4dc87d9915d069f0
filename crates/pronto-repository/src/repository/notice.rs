//! Notices: what an operation reports beside its result.

mod packs;
mod push;

use std::fmt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::dir::SkipReason;
use pronto_worktree::attributes::Flaw;

use crate::Error;

pub use packs::PackNotice;
pub use push::{PushNotice, SentKind, Side};

/// The severity of a notice, the most severe one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// An error that did not stop the operation.
    Error,
    /// A warning.
    Warning,
    /// A remark, which is printed without a prefix.
    Remark,
    /// Advice for the user.
    Hint,
}

/// A notice of an operation. Its text, which `Display` writes, is Git's, without a prefix such as
/// `warning: `.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// The configuration has both `core.bare` and `core.worktree`.
    BareWithWorktree,
    /// More than one reference has this short name.
    AmbiguousName(BString),
    /// This symbolic reference points to no reference.
    DanglingReference(BString),
    /// This reference cannot be read.
    BrokenReference(BString),
    /// This reference below `refs/replace/` does not end with an object id.
    MalformedReplacement(BString),
    /// A reflog has no entry as old as the requested one.
    ReflogTooShort {
        /// The name as it was given.
        name: BString,
        /// The date of the oldest entry.
        date: String,
    },
    /// An entry of a reflog does not begin with the value with which the one before ended.
    ReflogGap {
        /// The full name of the reference.
        name: BString,
        /// The date of the entry before.
        date: String,
    },
    /// The newest entry of a reflog does not have the value of the reference.
    ReflogEnded {
        /// The full name of the reference.
        name: BString,
        /// The date of the newest entry.
        date: String,
    },
    /// The reflog of this reference names commits that are gone.
    PrunedInReflog(String),
    /// There is no such directory of templates.
    MissingTemplates(PathBuf),
    /// A commit-graph is written though `core.commitGraph` turns it off.
    CommitGraphDisabled,
    /// The file of this hook cannot be executed.
    IgnoredHook(PathBuf),
    /// The branch is switched during a bisection.
    SwitchWhileBisecting,
    /// The file `info/grafts` replaces parents of commits.
    GraftFileDeprecated,
    /// A line of an attributes file, or the whole file, is ignored.
    AttributesFlaw {
        /// The file.
        file: BString,
        /// Why it is ignored.
        flaw: Flaw,
    },
    /// This line of the list of grafts is not a commit and its parents.
    MalformedGraft(BString),
    /// The configuration names an unknown storage of refs, so that the default is used.
    UnknownRefStorage(BString),
    /// The configuration names an unknown check of objects (`fsck.NAME`).
    UnknownFsckCheck(BString),
    /// A received object is malformed in a way that is accepted.
    MalformedObject {
        /// The object.
        object: ObjectId,
        /// The identifier of the check.
        check: &'static str,
        /// The defect.
        detail: String,
    },
    /// This reference points to an object that does not exist, and is not packed.
    MissingTarget(BString),
    /// A part of a commit-graph is not used.
    CommitGraph(pronto_pack::commit_graph::Remark),
    /// Layers of a chain of commit-graphs cannot be loaded.
    IncompleteCommitGraph,
    /// Packs or the files beside them have a problem.
    Packs(PackNotice),
    /// A push has a problem.
    Push(PushNotice),
    /// This line of the patterns of a sparse checkout is not a directory.
    UnrecognizedPattern(BString),
    /// The patterns of a sparse checkout are not all directories, so that they are read as patterns.
    ConeDisabled,
    /// A conversion of a file had a problem.
    Conversion(pronto_worktree::filter::Warning),
    /// A file is not carried to a new worktree.
    NotCarried {
        /// Its path from the top of the worktree.
        path: BString,
        /// The reason.
        reason: SkipReason,
    },
    /// A remote is defined by a file in this directory, instead of by the configuration.
    RemoteInFile {
        /// The directory: `remotes` or `branches`.
        directory: &'static str,
        /// The name of the remote.
        name: BString,
    },
    /// This key has several values where one is to be replaced.
    MultipleValues(BString),
    /// This key is set more than once, and the last value counts.
    SetTwice(BString),
    /// `branch.<name>.rebase` has a value that is unknown.
    UnknownRebase {
        /// The name of the branch.
        branch: BString,
        /// The value.
        value: BString,
    },
    /// `HEAD` points to no reference, though there are branches.
    InvalidHead,
    /// The new branch of a worktree has no commits, because there are none.
    OrphanInferred,
    /// The option `--orphan` makes a worktree with a new branch without commits.
    AdviseOrphan {
        /// The branch that was named.
        branch: Option<BString>,
        /// The place of the worktree.
        place: BString,
        /// Whether the user has asked for the advice (`advice.worktreeAddOrphan`).
        is_decided: bool,
    },
    /// An error that did not stop the operation.
    Failure(Error),
    /// An error that the operation ignored, as a warning.
    Ignored(Error),
}

impl Notice {
    /// Returns the advice that Git prints before the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Notice::Conversion(warning) => warning.hint(),
            _ => None,
        }
    }

    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        match self {
            Notice::IgnoredHook(_) | Notice::GraftFileDeprecated | Notice::AdviseOrphan { .. } => {
                Severity::Hint
            }
            Notice::OrphanInferred => Severity::Remark,
            Notice::AttributesFlaw {
                flaw: Flaw::InvalidName { .. } | Flaw::Macro { .. },
                ..
            } => Severity::Remark,
            Notice::MalformedGraft(_) => Severity::Error,
            Notice::Push(notice) if notice.is_hint() => Severity::Hint,
            Notice::Push(notice) if notice.is_error() => Severity::Error,
            Notice::CommitGraph(remark) if remark.is_error() => Severity::Error,
            Notice::Conversion(warning) if warning.is_error() => Severity::Error,
            Notice::Packs(notice) if notice.is_error() => Severity::Error,
            Notice::MissingTarget(_) | Notice::IncompleteCommitGraph | Notice::Failure(_) => {
                Severity::Error
            }
            _ => Severity::Warning,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Notice::BareWithWorktree => "core.bare and core.worktree do not make sense",
            Notice::CommitGraphDisabled => {
                "attempting to write a commit-graph, but 'core.commitGraph' is disabled"
            }
            Notice::SwitchWhileBisecting => "you are switching branch while bisecting",
            Notice::IncompleteCommitGraph => {
                "one or more commit-graph chain files could not be loaded"
            }
            Notice::InvalidHead => "HEAD points to an invalid (or orphaned) reference.\n",
            Notice::OrphanInferred => "No possible source branch, inferring '--orphan'",
            Notice::ConeDisabled => "disabling cone pattern matching",
            Notice::CommitGraph(remark) => return remark.fmt(f),
            Notice::Packs(notice) => return notice.fmt(f),
            Notice::Push(notice) => return notice.fmt(f),
            Notice::Conversion(warning) => return warning.fmt(f),
            Notice::Failure(error) | Notice::Ignored(error) => return error.fmt(f),
            Notice::AmbiguousName(name) => return write!(f, "refname '{name}' is ambiguous."),
            Notice::DanglingReference(name) => return write!(f, "ignoring dangling symref {name}"),
            Notice::BrokenReference(name) => return write!(f, "ignoring broken ref {name}"),
            Notice::MalformedReplacement(name) => return write!(f, "bad replace ref name: {name}"),
            Notice::MissingTarget(name) => {
                return write!(f, "{name} does not point to a valid object!");
            }
            Notice::ReflogTooShort { name, date } => {
                return write!(f, "log for '{name}' only goes back to {date}");
            }
            Notice::ReflogGap { name, date } => {
                return write!(f, "log for ref {name} has gap after {date}");
            }
            Notice::ReflogEnded { name, date } => {
                return write!(f, "log for ref {name} unexpectedly ended on {date}");
            }
            Notice::PrunedInReflog(name) => {
                return write!(f, "reflog of '{name}' references pruned commits");
            }
            Notice::MissingTemplates(path) => {
                return write!(f, "templates not found in {}", path.display());
            }
            Notice::UnknownRefStorage(name) => return f.write_str(&unknown_storage(name.as_ref())),
            Notice::UnknownFsckCheck(name) => return write!(f, "Skipping unknown msg id '{name}'"),
            Notice::MalformedObject {
                object,
                check,
                detail,
            } => return write!(f, "object {object}: {check}: {detail}"),
            Notice::UnrecognizedPattern(line) => {
                return write!(f, "unrecognized pattern: '{line}'");
            }
            Notice::NotCarried { path, reason } => {
                return write!(f, "not carried: '{path}': {reason}");
            }
            Notice::MultipleValues(key) => return write!(f, "{key} has multiple values"),
            Notice::SetTwice(key) => return write!(f, "more than one {key}"),
            Notice::MalformedGraft(line) => return write!(f, "bad graft data: {line}"),
            Notice::AttributesFlaw { file, flaw } => {
                return describe_flaw(file.as_bstr(), flaw, f);
            }
            _ => return self.write_advice(f),
        })
    }
}

impl Notice {
    /// Writes the text of a notice with advice, or of a rare one.
    fn write_advice(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::IgnoredHook(path) => write!(
                f,
                "The '{}' hook was ignored because it's not set as executable.\n\
                 You can disable this warning with `git config set advice.ignoredHook false`.",
                path.display()
            ),
            Notice::GraftFileDeprecated => f.write_str(
                "Support for <GIT_DIR>/info/grafts is deprecated\n\
                 and will be removed in a future Git version.\n\n\
                 Please use \"git replace --convert-graft-file\"\n\
                 to convert the grafts into replace refs.\n\n\
                 Turn this message off by running\n\
                 \"git config set advice.graftFileDeprecated false\"",
            ),
            Notice::RemoteInFile { directory, name } => write!(
                f,
                "reading remote from \"{directory}/{name}\", which is nominated for removal.\n\n\
                 If you still use the \"remotes/\" directory it is recommended to\n\
                 migrate to config-based remotes:\n\n\tgit remote rename {name} {name}"
            ),
            Notice::AdviseOrphan {
                branch,
                place,
                is_decided,
            } => {
                f.write_str(
                    "If you meant to create a worktree containing a new unborn branch\n\
                     (branch with no commits) for this repository, you can do so\n\
                     using the --orphan flag:\n\n    git worktree add --orphan ",
                )?;
                if let Some(branch) = branch {
                    write!(f, "-b {branch} ")?;
                }
                write!(f, "{place}")?;
                match is_decided {
                    true => Ok(()),
                    false => f.write_str(
                        "\n\nDisable this message with \
                         \"git config set advice.worktreeAddOrphan false\"",
                    ),
                }
            }
            Notice::UnknownRebase { branch, value } => write!(
                f,
                "unhandled branch.{branch}.rebase={value}; assuming 'true'"
            ),
            _ => Ok(()),
        }
    }
}

/// Returns the message about an unknown storage of refs.
pub(crate) fn unknown_storage(name: &BStr) -> String {
    format!("unknown ref storage format '{name}'")
}

fn describe_flaw(file: &BStr, flaw: &Flaw, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match flaw {
        Flaw::Link => write!(
            f,
            "unable to access '{file}': Too many levels of symbolic links"
        ),
        Flaw::LongLine { line } => write!(f, "ignoring overly long attributes line {line}"),
        Flaw::Macro { text, line } => write!(f, "{text} not allowed: {file}:{line}"),
        Flaw::InvalidName { name, line } => {
            write!(f, "{name} is not a valid attribute name: {file}:{line}")
        }
        // Of the others only negative patterns are known.
        _ => f.write_str(
            "Negative patterns are ignored in git attributes\n\
             Use '\\!' for literal leading exclamation.",
        ),
    }
}
