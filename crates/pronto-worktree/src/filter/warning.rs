//! Warnings of filters and conversions.

use std::fmt;

use bstr::BString;

/// A line ending, as Git names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    Crlf,
}

/// A problem of a conversion that took place nevertheless.
/// [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The content cannot be encoded as the attribute `working-tree-encoding` says.
    NotEncodable {
        /// The path from the top of the worktree.
        path: BString,
        /// The name of the encoding.
        encoding: BString,
    },
    /// The program of a filter ended with an exit code.
    /// [`ProgramFailed`](Self::ProgramFailed) follows.
    ProgramExited {
        /// The command of the program.
        command: BString,
        /// Its exit code.
        code: i64,
    },
    /// The program of a filter failed.
    ProgramFailed {
        /// The command of the program.
        command: BString,
    },
    /// A checkout would not restore the present line endings (`core.safecrlf`).
    LineEndings {
        /// The path from the top of the worktree.
        path: BString,
        /// The present line ending.
        lost: LineEnding,
        /// The one that replaces it.
        kept: LineEnding,
    },
}

impl Warning {
    /// Whether Git reports it as an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, Warning::LineEndings { .. })
    }
}

impl fmt::Display for LineEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LineEnding::Lf => "LF",
            LineEnding::Crlf => "CRLF",
        })
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::NotEncodable { path, encoding } => {
                write!(f, "failed to encode '{path}' from UTF-8 to {encoding}")
            }
            Warning::ProgramExited { command, code } => {
                write!(f, "external filter '{command}' failed {code}")
            }
            Warning::ProgramFailed { command } => {
                write!(f, "external filter '{command}' failed")
            }
            Warning::LineEndings { path, lost, kept } => write!(
                f,
                "in the working copy of '{path}', {lost} will be replaced by {kept} the next \
                 time Git touches it"
            ),
        }
    }
}
