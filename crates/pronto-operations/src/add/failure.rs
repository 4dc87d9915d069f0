//! The reasons for which a file cannot be staged, in Git's words.

use std::io;

use bstr::BStr;
use pronto_io::dir::is_missing;
use pronto_io::error::reason;

/// Why a target is none.
pub(super) enum Failure {
    Lines(Vec<String>),
    Fatal {
        message: String,
        hint: Option<String>,
        /// The messages that precede it.
        lines: Vec<String>,
    },
}

impl Failure {
    pub(super) fn line(text: &str) -> Failure {
        Failure::Lines(vec![format!("error: {text}")])
    }

    pub(super) fn fatal(message: String) -> Failure {
        Failure::Fatal {
            message,
            hint: None,
            lines: Vec::new(),
        }
    }

    /// An error of a file, after which Git says which file it was.
    pub(super) fn file(path: &BStr, text: &str) -> Failure {
        let last = format!("error: unable to index file '{path}'");
        Failure::Lines(vec![format!("error: {text}"), last])
    }
}

pub(super) fn unstored(path: &BStr, error: &pronto_odb::Error) -> Failure {
    Failure::Lines(vec![
        format!("error: {error}"),
        format!("error: {path}: failed to insert into database"),
        format!("error: unable to index file '{path}'"),
    ])
}

pub(super) fn unseen(path: &BStr, error: &io::Error) -> Failure {
    let reason = match is_missing(error) {
        true => "No such file or directory".to_owned(),
        false => reason(error),
    };
    Failure::fatal(format!("unable to stat '{path}': {reason}"))
}

pub(super) fn unfit(path: &BStr) -> Failure {
    Failure::line(&format!(
        "{path}: can only add regular files, symbolic links or git-directories"
    ))
}

pub(super) fn fatal(error: &pronto_worktree::Error, lines: Vec<String>) -> Failure {
    let hint = error.hint().map(ToOwned::to_owned);
    Failure::Fatal {
        message: error.message().to_owned(),
        hint,
        lines,
    }
}
