//! Whether a push is signed, and warnings about what a push does without.

use pronto::push::{Outcome, Signed};

use crate::{CliError, Context};

/// The warning about a server that takes no signed pushes.
const NOT_SENT: &str =
    "not sending a push certificate since the receiving end does not support --signed push";

/// Prints warnings about a certificate or a negotiation that the other side does not support.
pub(in crate::commands) fn warn(outcome: &Outcome, context: &mut Context) {
    if let Some(error) = &outcome.not_negotiated {
        context.warn(&error.to_string());
        context.warn("push negotiation failed; proceeding anyway with push");
    }
    if outcome.unsigned {
        context.warn(NOT_SENT);
    }
}

/// Returns whether the push is signed, by the value of `--signed`.
///
/// # Errors
/// `text` is neither a boolean nor `if-asked`.
pub(in crate::commands) fn given(text: &str) -> Result<Signed, CliError> {
    Signed::parse(Some(text.into()))
        .ok_or_else(|| CliError::fatal(format!("bad signed argument: {text}")))
}
