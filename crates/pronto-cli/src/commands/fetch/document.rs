//! The fields of the JSON document of `fetch`.

use bstr::ByteSlice as _;
use pronto::config::value;
use pronto::fetch::{Flag, Options, Outcome, Update, UpdateNote};
use pronto::remote::Remote;

use super::Args;
use crate::context::error_of;
use crate::json::Json;
use crate::{CliError, Context};

/// Refuses options that print something else than the document.
pub(super) fn check(args: &Args) -> Result<(), CliError> {
    let recurses = args.recurse_submodules.as_deref();
    let others = [
        ("--porcelain", args.porcelain),
        ("--negotiate-only", args.negotiate_only),
        (
            "--recurse-submodules",
            recurses.is_some_and(|when| value::parse_bool(Some(when.into())) != Some(false)),
        ),
    ];
    let other = others.iter().find(|(_, given)| *given && args.json);
    match other {
        None => Ok(()),
        Some((other, _)) => Err(CliError::fatal(format!(
            "options '--json' and '{other}' cannot be used together"
        ))),
    }
}

/// Prints the document, with the `entries` of the remotes, if it is requested.
pub(super) fn print(
    args: &Args,
    options: &Options,
    entries: Vec<Json>,
    context: &mut Context,
) -> Result<(), CliError> {
    if !args.json {
        return Ok(());
    }
    let duration = context.duration_ms();
    context.print_document(vec![
        ("dry_run", options.dry_run.into()),
        ("remotes", Json::List(entries)),
        ("duration_ms", duration),
    ])
}

/// Returns the entry of a remote from which was fetched.
pub(super) fn entry(remote: &Remote, outcome: &Outcome, received: Json) -> Json {
    let texts = |texts: Vec<String>| texts.into_iter().map(Json::from).collect();
    let errors = outcome.errors.iter().map(ToString::to_string).collect();
    let warnings = outcome.warnings.iter().map(ToString::to_string).collect();
    Json::Object(vec![
        ("remote", name_of(remote)),
        ("url", Json::from(&outcome.url)),
        ("refs", outcome.updates.iter().map(update).collect()),
        (
            "dangling",
            Json::of_names(outcome.dangling.iter().map(|it| &it.name)),
        ),
        ("failed", outcome.failed.into()),
        ("errors", texts(errors)),
        ("warnings", texts(warnings)),
        ("received", received),
        ("error", Json::Null),
    ])
}

/// Returns the entry of a remote from which could not be fetched, beside others.
pub(super) fn failed_entry(remote: &Remote, error: &CliError) -> Json {
    Json::Object(vec![
        ("remote", name_of(remote)),
        ("failed", true.into()),
        ("error", error_of(error)),
    ])
}

/// Returns the name of the remote, without credentials if it is an address.
fn name_of(remote: &Remote) -> Json {
    Json::from(&pronto::remote::connection::shown(remote.name.as_bstr()))
}

fn update(update: &Update) -> Json {
    let remote = match update.remote.is_empty() {
        true => Json::Null,
        false => Json::from(&update.remote),
    };
    let reason = match update.note {
        Some(UpdateNote::CheckedOut) => Some("checked_out"),
        Some(UpdateNote::ExistingTag) => Some("existing_tag"),
        Some(UpdateNote::NotFastForward) => Some("not_fast_forward"),
        Some(UpdateNote::NotWritten) => Some("not_written"),
        _ => None,
    };
    Json::Object(vec![
        ("remote", remote),
        ("local", Json::from(&update.local)),
        ("old", update.old.into()),
        ("new", update.new.into()),
        ("status", status(update.flag).into()),
        ("reason", reason.into()),
    ])
}

fn status(flag: Flag) -> &'static str {
    match flag {
        Flag::FastForward => "updated",
        Flag::Forced => "forced",
        Flag::New => "created",
        Flag::Pruned => "pruned",
        Flag::Tag => "tag_updated",
        Flag::Rejected => "rejected",
        Flag::UpToDate => "up_to_date",
        _ => "unknown",
    }
}
