//! Warnings of filters and conversions.

use std::fmt;

use std::sync::{Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};

/// A line ending, as Git names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnding {
    /// A line feed.
    Lf,
    /// A carriage return and a line feed.
    Crlf,
}

/// The reason for which content is not valid in its encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingFlaw {
    /// The content starts with a byte order mark, although the name of the encoding includes the byte
    /// order.
    MarkProhibited,
    /// The content does not start with a byte order mark, although the name of the encoding does not
    /// include the byte order.
    MarkRequired,
    /// The bytes are not valid in the encoding.
    Malformed,
}

/// A problem of a conversion that does not stop the operation. [`Display`](fmt::Display) writes Git's
/// message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterWarning {
    /// The content cannot be encoded in its `working-tree-encoding`.
    NotEncodable {
        /// The path from the top of the worktree.
        path: BString,
        /// The name of the encoding.
        encoding: BString,
    },
    /// The content is not valid in its `working-tree-encoding`, so that it is compared unchanged.
    NotDecodable {
        /// The path from the top of the worktree.
        path: BString,
        /// The name of the encoding.
        encoding: BString,
        /// The reason.
        flaw: EncodingFlaw,
    },
    /// A filter program ended with an exit code other than 0. [`ProgramFailed`](Self::ProgramFailed) is
    /// reported next.
    ProgramExited {
        /// The command of the program.
        command: BString,
        /// Its exit code.
        code: i64,
    },
    /// A filter program failed.
    ProgramFailed {
        /// The command of the program.
        command: BString,
    },
    /// The program of a filter does not exist.
    ProgramMissing {
        /// The command of the program.
        command: BString,
        /// Whether the program is a long-running process for many files (`filter.NAME.process`).
        is_process: bool,
    },
    /// A checkout would not restore the present line endings (`core.safecrlf`).
    LineEndings {
        /// The path from the top of the worktree.
        path: BString,
        /// The line ending in the file.
        lost: LineEnding,
        /// The line ending that replaces it.
        kept: LineEnding,
    },
}

impl FilterWarning {
    /// Returns whether Git reports the warning as an error.
    pub fn is_error(&self) -> bool {
        !matches!(self, FilterWarning::LineEndings { .. })
    }

    /// Returns the advice that Git prints before the message.
    pub fn hint(&self) -> Option<String> {
        let FilterWarning::NotDecodable {
            path,
            encoding,
            flaw,
        } = self
        else {
            return None;
        };
        match flaw {
            EncodingFlaw::MarkProhibited => Some(format!(
                "The file '{path}' contains a byte order mark (BOM). Please use {} as working-tree-encoding.",
                encoding
                    .trim_end_with(|last| "BELbel".contains(last))
                    .as_bstr()
            )),
            EncodingFlaw::MarkRequired => Some(format!(
                "The file '{path}' is missing a byte order mark (BOM). Please use {encoding}BE or {encoding}LE \
                 (depending on the byte order) as working-tree-encoding."
            )),
            EncodingFlaw::Malformed => None,
        }
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

impl fmt::Display for FilterWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterWarning::NotEncodable { path, encoding } => {
                write!(f, "failed to encode '{path}' from UTF-8 to {encoding}")
            }
            FilterWarning::NotDecodable {
                path,
                encoding,
                flaw,
            } => match flaw {
                EncodingFlaw::MarkProhibited => {
                    write!(f, "BOM is prohibited in '{path}' if encoded as {encoding}")
                }
                EncodingFlaw::MarkRequired => {
                    write!(f, "BOM is required in '{path}' if encoded as {encoding}")
                }
                EncodingFlaw::Malformed => {
                    write!(f, "failed to encode '{path}' from {encoding} to UTF-8")
                }
            },
            FilterWarning::ProgramExited { command, code } => {
                write!(f, "external filter '{command}' failed {code}")
            }
            FilterWarning::ProgramFailed { command } => {
                write!(f, "external filter '{command}' failed")
            }
            FilterWarning::ProgramMissing {
                command,
                is_process,
            } => {
                let what = match is_process {
                    true => "subprocess",
                    false => "external filter",
                };
                write!(
                    f,
                    "cannot run {command}: No such file or directory\n\
                     error: cannot fork to run {what} '{command}'"
                )
            }
            FilterWarning::LineEndings { path, lost, kept } => write!(
                f,
                "in the working copy of '{path}', {lost} will be replaced by {kept} the next \
                 time Git touches it"
            ),
        }
    }
}

/// The warnings of converters in several threads, for a report in the order of paths.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<(BString, FilterWarning)>>);

impl Warnings {
    /// Adds warnings about the file `path`.
    pub fn add(&self, path: &BStr, warnings: impl IntoIterator<Item = FilterWarning>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(
            warnings
                .into_iter()
                .map(|warning| (path.to_owned(), warning)),
        );
    }

    /// Removes and returns the collected warnings, sorted by path. Duplicates about a file that was
    /// converted twice are removed.
    pub fn take(&self) -> Vec<FilterWarning> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = std::mem::take(&mut *all);
        drop(all);
        taken.sort_by(|(first, _), (second, _)| first.cmp(second));
        taken.dedup();
        taken.into_iter().map(|(_, warning)| warning).collect()
    }
}
