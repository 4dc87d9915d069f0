//! Reports failures to the user. The examples share this module.

use std::process::ExitCode;

use pronto::{Error, ErrorKind, Result};

/// Returns advice for the user, by the kind of the error.
pub(crate) fn hint(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::NotARepository | ErrorKind::NoRepository => "is this the right directory?",
        ErrorKind::Unsafe => "it belongs to another user: see safe.directory in git-config(1)",
        ErrorKind::Locked => "another git is at work here: try again when it has finished",
        ErrorKind::Refused => "commit, stash or discard the changes that are in the way",
        ErrorKind::Unsupported | ErrorKind::UnknownFormat => "use git itself for this one",
        ErrorKind::Transport | ErrorKind::ProtocolTooOld => {
            "check the URL, the network and your rights"
        }
        ErrorKind::Identity => "set user.name and user.email",
        ErrorKind::UnknownRevision | ErrorKind::Ambiguous => "check the spelling of the revision",
        ErrorKind::NoWorkTree => "the repository is bare",
        ErrorKind::Hook => "a hook refused it",
        _ => return None,
    })
}

/// Returns an error of the example itself.
pub(crate) fn failure(kind: ErrorKind, message: impl Into<String>) -> Error {
    Error::new(kind, message)
}

/// Prints the error of an example, if there is one, and returns the exit code.
pub(crate) fn conclude(result: Result<()>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    if let Some(first) = error.reported_before() {
        eprintln!("error: {first}");
    }
    if let Some(remote) = error.remote_text() {
        eprintln!("{remote}");
    }
    eprintln!("fatal: {error} [{:?}]", error.kind());
    // The library's own advice is more specific than ours.
    if let Some(advice) = error.hint().or_else(|| hint(error.kind())) {
        eprintln!("hint: {advice}");
    }
    ExitCode::FAILURE
}
