//! Chooses whether a push is signed, and warns if the server lacks a requested feature.

use bstr::ByteSlice;
use pronto::config::{Config, value};
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
/// Fails if the given or the configured value is invalid.
pub(in crate::commands) fn choose(
    given: Option<&str>,
    config: Option<&Config>,
) -> Result<Signed, CliError> {
    let mut signed = Signed::Never;
    let entries = config.into_iter();
    for entry in entries.flat_map(|config| config.entries("push.gpgsign")) {
        signed = parse(entry.value.map(|value| value.as_bytes())).ok_or_else(|| {
            let message = format!("invalid value for '{}'", entry.key);
            entry.bad_variable().reported_after(message)
        })?;
    }
    match given {
        Some(text) => parse(Some(text.as_bytes()))
            .ok_or_else(|| CliError::fatal(format!("bad signed argument: {text}"))),
        None => Ok(signed),
    }
}

fn parse(text: Option<&[u8]>) -> Option<Signed> {
    match value::parse_bool(text.map(ByteSlice::as_bstr)) {
        Some(true) => Some(Signed::Always),
        Some(false) => Some(Signed::Never),
        None => text
            .filter(|text| text.eq_ignore_ascii_case(b"if-asked"))
            .map(|_| Signed::IfAsked),
    }
}
