//! Chooses whether a push is signed, and warns if the server lacks a requested feature.

use pronto::push::{Outcome, Signed};

use crate::{CliError, Context};

/// The warning about a server that does not support signed pushes.
const NOT_SENT: &str =
    "not sending a push certificate since the receiving end does not support --signed push";

/// Prints warnings if the server does not support push certificates or the negotiation of a push.
pub(in crate::commands) fn warn(outcome: &Outcome, context: &mut Context) {
    if let Some(error) = &outcome.not_negotiated {
        context.warn(&error.to_string());
        context.warn("push negotiation failed; proceeding anyway with push");
    }
    if outcome.unsigned {
        context.warn(NOT_SENT);
    }
}

/// Returns whether the push is signed, by the value of `--signed` or by `push.gpgSign`.
///
/// # Errors
/// `text` is neither a boolean nor `if-asked`.
pub(in crate::commands) fn given(text: &str) -> Result<Signed, CliError> {
    Signed::parse(Some(text.into()))
        .ok_or_else(|| CliError::fatal(format!("bad signed argument: {text}")))
}
