//! Notices: what an operation reports beside its result.

use std::fmt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto_worktree::attributes::Flaw;

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
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// `core.fsync` has a component that is unknown.
    UnknownFsyncComponent(String),
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
    /// Any other notice.
    Message {
        /// Its severity.
        severity: Severity,
        /// Its text, in Git's words.
        text: String,
    },
}

impl Notice {
    /// Returns a notice of an error that did not stop the operation.
    pub fn error(text: impl Into<String>) -> Self {
        Self::message(Severity::Error, text.into())
    }

    /// Returns a warning.
    pub fn warning(text: impl Into<String>) -> Self {
        Self::message(Severity::Warning, text.into())
    }

    fn message(severity: Severity, text: String) -> Self {
        Notice::Message { severity, text }
    }

    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        match self {
            Notice::Message { severity, .. } => *severity,
            Notice::IgnoredHook(_) | Notice::GraftFileDeprecated => Severity::Hint,
            Notice::AttributesFlaw {
                flaw: Flaw::InvalidName { .. } | Flaw::Macro { .. },
                ..
            } => Severity::Remark,
            _ => Severity::Warning,
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::BareWithWorktree => {
                f.write_str("core.bare and core.worktree do not make sense")
            }
            Notice::AmbiguousName(name) => write!(f, "refname '{name}' is ambiguous."),
            Notice::DanglingReference(name) => write!(f, "ignoring dangling symref {name}"),
            Notice::BrokenReference(name) => write!(f, "ignoring broken ref {name}"),
            Notice::MalformedReplacement(name) => write!(f, "bad replace ref name: {name}"),
            Notice::ReflogTooShort { name, date } => {
                write!(f, "log for '{name}' only goes back to {date}")
            }
            Notice::ReflogGap { name, date } => {
                write!(f, "log for ref {name} has gap after {date}")
            }
            Notice::ReflogEnded { name, date } => {
                write!(f, "log for ref {name} unexpectedly ended on {date}")
            }
            Notice::PrunedInReflog(name) => {
                write!(f, "reflog of '{name}' references pruned commits")
            }
            Notice::MissingTemplates(path) => {
                write!(f, "templates not found in {}", path.display())
            }
            Notice::UnknownFsyncComponent(name) => {
                write!(f, "ignoring unknown core.fsync component '{name}'")
            }
            Notice::CommitGraphDisabled => f.write_str(
                "attempting to write a commit-graph, but 'core.commitGraph' is disabled",
            ),
            Notice::IgnoredHook(path) => write!(
                f,
                "The '{}' hook was ignored because it's not set as executable.\n\
                 You can disable this warning with `git config set advice.ignoredHook false`.",
                path.display()
            ),
            Notice::SwitchWhileBisecting => f.write_str("you are switching branch while bisecting"),
            Notice::GraftFileDeprecated => f.write_str(
                "Support for <GIT_DIR>/info/grafts is deprecated\n\
                 and will be removed in a future Git version.\n\n\
                 Please use \"git replace --convert-graft-file\"\n\
                 to convert the grafts into replace refs.\n\n\
                 Turn this message off by running\n\
                 \"git config set advice.graftFileDeprecated false\"",
            ),
            Notice::AttributesFlaw { file, flaw } => describe_flaw(file.as_bstr(), flaw, f),
            Notice::Message { text, .. } => f.write_str(text),
        }
    }
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
