//! Code that `sync` and `serve` share: limits of a session with a peer, default globs and errors.

use std::time::Duration;

use pronto_netsync::message::Globs;
use pronto_netsync::{Error, ErrorKind};

use crate::CliError;

/// The timeout for a silent peer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// The largest number of bytes that a session may receive.
pub(crate) const BUDGET_BYTES: u64 = 1 << 40;

/// Returns the globs that select all branches and tags.
pub(crate) fn default_globs() -> Globs {
    Globs {
        include: vec![b"refs/heads/*".to_vec(), b"refs/tags/*".to_vec()],
        exclude: Vec::new(),
    }
}

/// Converts the error of a session into an error with advice.
pub(crate) fn failure(error: &Error) -> CliError {
    let hint = match error.kind() {
        _ if error.hint().is_some() => error.hint().map(str::to_owned),
        ErrorKind::Unrelated => {
            Some("use --allow-unrelated to combine the two histories".to_owned())
        }
        ErrorKind::Busy => Some("try again later: the received objects have been kept".to_owned()),
        ErrorKind::Closed => {
            Some("run the command again to resume: the received objects have been kept".to_owned())
        }
        _ => None,
    };
    let shown = CliError::fatal(error.to_string());
    match hint {
        Some(hint) => shown.with_hint(hint),
        None => shown,
    }
}
