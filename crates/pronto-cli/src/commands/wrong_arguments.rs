//! Converts errors of clap.

use pronto_config::similar::most_similar;

use crate::error::CliError;

/// Converts an error of clap about invalid arguments.
pub(super) fn wrong(error: &clap::Error) -> CliError {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let names = |kind| match error.get(kind) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    };
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing = names(ContextKind::InvalidArg);
            let noun = match missing.len() {
                1 => "argument",
                _ => "arguments",
            };
            CliError::misuse(format!("missing {noun} {}", missing.join(" ")))
        }
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            CliError::misuse("missing subcommand")
        }
        ErrorKind::InvalidSubcommand => {
            let unknown = names(ContextKind::InvalidSubcommand).join(" ");
            let error_of = CliError::misuse(format!("unknown command '{unknown}'"));
            let suggested = names(ContextKind::SuggestedSubcommand);
            match most_similar(&unknown, suggested.iter().map(String::as_str)) {
                Some(similar) => error_of.with_hint(format!("did you mean '{similar}'?")),
                None => error_of,
            }
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            CliError::misuse(first.strip_prefix("error: ").unwrap_or(first))
        }
    }
}
