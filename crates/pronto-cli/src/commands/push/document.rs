//! The fields of the JSON document of `push`.

use bstr::BString;
use pronto::push::{Options, Outcome, PushStatus, PushedRef, RewrittenRef};

use super::Args;
use crate::context::error_of;
use crate::json::{Json, JsonField};
use crate::{CliError, Context};

/// Refuses an option that prints something else than the document.
pub(super) fn check(args: &Args) -> Result<(), CliError> {
    match args.json && args.porcelain {
        true => Err(CliError::fatal(
            "options '--json' and '--porcelain' cannot be used together",
        )),
        false => Ok(()),
    }
}

/// Returns the fields of the document, with the `entries` of the URLs.
pub(super) fn fields(options: &Options, entries: Vec<Json>, context: &Context) -> Vec<JsonField> {
    vec![
        ("dry_run", options.dry_run.into()),
        ("destinations", Json::List(entries)),
        ("duration_ms", context.duration_ms()),
    ]
}

/// Returns the entry of a URL to which refs were pushed, or to which that failed.
pub(super) fn entry(url: &BString, outcome: &Outcome, sent: Json) -> Json {
    let is_listed = |pushed: &&PushedRef| pushed.status != PushStatus::None;
    let refs = outcome.refs.iter().filter(is_listed).map(pushed_ref);
    let upstreams = outcome.upstreams.iter().map(|upstream| {
        Json::Object(vec![
            ("branch", Json::from(&upstream.branch)),
            ("upstream", Json::from(&upstream.followed)),
        ])
    });
    Json::Object(vec![
        ("url", Json::from(url)),
        ("failed", outcome.has_errors().into()),
        ("refs", refs.collect()),
        ("upstreams", upstreams.collect()),
        ("sent", sent),
        ("error", Json::Null),
    ])
}

/// Returns the entry of a URL to which nothing can be pushed.
pub(super) fn failed_entry(url: &BString, error: Option<&CliError>) -> Json {
    Json::Object(vec![
        ("url", Json::from(url)),
        ("failed", true.into()),
        ("refs", Json::List(Vec::new())),
        ("upstreams", Json::List(Vec::new())),
        ("sent", Json::Null),
        ("error", error.map(error_of).into()),
    ])
}

fn pushed_ref(pushed: &PushedRef) -> Json {
    let local = pushed.peer.as_ref().filter(|_| !pushed.deletes);
    let (status, reason) = status(pushed);
    Json::Object(vec![
        ("local", local.map(|peer| &peer.name).into()),
        ("remote", Json::from(&pushed.name)),
        ("old", pushed.old.into()),
        ("new", pushed.new.into()),
        ("status", status.into()),
        ("reason", reason.into()),
        ("message", pushed.remark.as_deref().into()),
        ("rewrites", pushed.rewrites.iter().map(rewrite).collect()),
    ])
}

/// Returns a change that the remote made in place of the requested one.
fn rewrite(rewrite: &RewrittenRef) -> Json {
    Json::Object(vec![
        ("remote", rewrite.name.as_ref().into()),
        ("old", rewrite.old.into()),
        ("new", rewrite.new.into()),
        ("forced", rewrite.forced.into()),
    ])
}

/// Returns the result of an update, and the reason of a rejection.
fn status(pushed: &PushedRef) -> (&'static str, Option<&'static str>) {
    let rejected = |reason| ("rejected", Some(reason));
    match pushed.status {
        PushStatus::None => ("not_pushed", None),
        PushStatus::Ok if pushed.deletes => ("deleted", None),
        PushStatus::Ok if pushed.old.is_null() => ("created", None),
        PushStatus::Ok if pushed.forced_update => ("forced", None),
        PushStatus::Ok => ("updated", None),
        PushStatus::UpToDate => ("up_to_date", None),
        PushStatus::RejectNonFastForward => rejected("not_fast_forward"),
        PushStatus::RejectAlreadyExists => rejected("already_exists"),
        PushStatus::RejectNoDelete => rejected("no_deletion"),
        PushStatus::RejectFetchFirst => rejected("fetch_first"),
        PushStatus::RejectNeedsForce => rejected("needs_force"),
        PushStatus::RejectStale => rejected("stale"),
        PushStatus::RejectRemoteUpdated => rejected("remote_updated"),
        PushStatus::AtomicPushFailed => rejected("atomic"),
        PushStatus::RemoteReject => ("remote_rejected", None),
        PushStatus::ExpectingReport => ("not_reported", None),
    }
}
