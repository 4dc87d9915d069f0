//! Notices: warnings, errors and advice that an operation reports besides its result.

mod packs;
mod push;
mod receiver;

use std::fmt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::dir::SkipReason;
use pronto_worktree::attributes::Flaw;

use crate::Error;

pub use packs::PackNotice;
pub use push::{PushNotice, RefspecSide, SentKind};
pub use receiver::{NoticeQueue, NoticeReceiver, Notices};

/// The severity of a notice, the most severe one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A non-fatal error (`error: `).
    Error,
    /// A warning (`warning: `).
    Warning,
    /// A message without a prefix.
    Remark,
    /// Advice for the user (`hint: `).
    Hint,
}

/// A notice of an operation. [`Display`](fmt::Display) writes Git's message, without a prefix such as
/// `warning: `.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice {
    /// The configuration has both `core.bare` and `core.worktree`.
    BareWithWorktree,
    /// More than one ref matches this short name.
    AmbiguousName(BString),
    /// This symref points to a ref that does not exist.
    DanglingReference(BString),
    /// This ref cannot be read.
    BrokenReference(BString),
    /// The ref with this name below `refs/replace/` does not name an object.
    MalformedReplacement(BString),
    /// This object directory, which is an alternate, does not exist.
    MissingObjectDirectory(PathBuf),
    /// The directory in which this alternate would be does not exist.
    UnreachableAlternate(PathBuf),
    /// The alternates of this object directory are ignored, because they are nested too deeply.
    AlternatesTooDeep(PathBuf),
    /// A reflog has no entry as old as the requested one.
    ReflogTooShort {
        /// The name as it was given.
        name: BString,
        /// The date of the oldest entry.
        date: String,
    },
    /// The old id of a reflog entry differs from the new id of the preceding entry.
    ReflogGap {
        /// The full name of the ref.
        name: BString,
        /// The date of the preceding entry.
        date: String,
    },
    /// The new id of the newest reflog entry differs from the value of the ref.
    ReflogEnded {
        /// The full name of the ref.
        name: BString,
        /// The date of the newest entry.
        date: String,
    },
    /// The reflog of this ref names commits that were pruned.
    PrunedInReflog(String),
    /// This template directory does not exist.
    MissingTemplates(PathBuf),
    /// A commit-graph is written though `core.commitGraph` turns it off.
    CommitGraphDisabled,
    /// This hook file is not executable and is ignored.
    IgnoredHook(PathBuf),
    /// The branch is switched during a bisection.
    SwitchWhileBisecting,
    /// The deprecated file `info/grafts` is in use.
    GraftFileDeprecated,
    /// A line of an attributes file, or the whole file, is ignored.
    AttributesFlaw {
        /// The file.
        file: BString,
        /// The reason for which the line or file is ignored.
        flaw: Flaw,
    },
    /// This line of the grafts file is not a list of object ids.
    MalformedGraft(BString),
    /// The configuration names an unknown storage of refs. The default is used.
    UnknownRefStorage(BString),
    /// The configuration names an unknown check of objects (`fsck.NAME`).
    UnknownFsckCheck(BString),
    /// A received object is malformed, but accepted by the configuration (`fsck.<msg-id>`).
    MalformedObject {
        /// The object.
        object: ObjectId,
        /// The message id of the check.
        check: &'static str,
        /// The description of the defect.
        detail: String,
    },
    /// This ref points to a missing object, and is not packed.
    MissingTarget(BString),
    /// A part of the commit-graph file is ignored.
    CommitGraph(pronto_pack::commit_graph::Remark),
    /// The chain of commit-graph files lacks layers.
    IncompleteCommitGraph,
    /// A problem with packs or their accompanying files.
    Packs(PackNotice),
    /// A problem with a push.
    Push(PushNotice),
    /// This line of the sparse-checkout patterns is not a directory pattern.
    UnrecognizedPattern(BString),
    /// The sparse-checkout patterns are not all directories. Cone mode is disabled.
    ConeDisabled,
    /// A problem with the conversion of a file.
    Conversion(pronto_worktree::filter::FilterWarning),
    /// A file is not copied to a new worktree.
    NotCarried {
        /// The path of the file from the top of the worktree.
        path: BString,
        /// The reason.
        reason: SkipReason,
    },
    /// A remote is defined by a file in a legacy directory instead of by the configuration.
    RemoteInFile {
        /// The directory: `remotes` or `branches`.
        directory: &'static str,
        /// The name of the remote.
        name: BString,
    },
    /// This key has several values, but a single value is to be replaced.
    MultipleValues(BString),
    /// This key is set more than once. The last value applies.
    SetTwice(BString),
    /// `branch.<name>.rebase` has an unknown value.
    UnknownRebase {
        /// The name of the branch.
        branch: BString,
        /// The value.
        value: BString,
    },
    /// `HEAD` points to a missing ref although there are branches.
    InvalidHead,
    /// The branch of a new worktree is unborn, because the repository has no commits (`--orphan` is
    /// inferred).
    OrphanInferred,
    /// Advice to use `--orphan` for a worktree with an unborn branch.
    AdviseOrphan {
        /// The branch that was named.
        branch: Option<BString>,
        /// The path of the worktree.
        place: BString,
        /// Whether the user has set `advice.worktreeAddOrphan`.
        is_decided: bool,
    },
    /// An error that did not stop the operation.
    Failure(Error),
    /// An error that the operation ignored; reported as a warning.
    Ignored(Error),
}

impl Notice {
    /// Returns the advice that Git prints with the message.
    pub fn hint(&self) -> Option<String> {
        match self {
            Notice::Conversion(warning) => warning.hint(),
            _ => None,
        }
    }

    /// Returns whether the notice is about parts of the object store. Git reports these flaws when it
    /// uses the store for the first time, before other messages.
    pub fn is_of_store(&self) -> bool {
        matches!(
            self,
            Notice::MissingObjectDirectory(_)
                | Notice::UnreachableAlternate(_)
                | Notice::AlternatesTooDeep(_)
                | Notice::MalformedReplacement(_)
        )
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
            Notice::MissingTarget(_)
            | Notice::IncompleteCommitGraph
            | Notice::MissingObjectDirectory(_)
            | Notice::UnreachableAlternate(_)
            | Notice::AlternatesTooDeep(_)
            | Notice::Failure(_) => Severity::Error,
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
    /// Writes the text of a notice with advice, or of a rare notice.
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
            Notice::MissingObjectDirectory(path) => write!(
                f,
                "object directory {} does not exist; check .git/objects/info/alternates",
                path.display()
            ),
            Notice::UnreachableAlternate(path) => write!(
                f,
                "unable to normalize alternate object path: {}",
                path.display()
            ),
            Notice::AlternatesTooDeep(path) => write!(
                f,
                "{}: ignoring alternate object stores, nesting too deep",
                path.display()
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
        // Among the remaining flaws, only negative patterns have a message.
        _ => f.write_str(
            "Negative patterns are ignored in git attributes\n\
             Use '\\!' for literal leading exclamation.",
        ),
    }
}
