//! The fields of the JSON document of `clone`.

use std::path::Path;

use bstr::ByteSlice as _;
use pronto::clone::Outcome;
use pronto::path;
use pronto::refs::RefTarget;

use crate::commands::shared::head_document;
use crate::json::{Json, JsonField};
use crate::{CliError, Context};

/// Returns the fields of the document. `received` has the numbers of received objects and bytes.
///
/// # Errors
/// Fails if the refs of the new repository cannot be read.
pub(super) fn fields(
    outcome: &Outcome,
    received: Json,
    context: &Context,
) -> Result<Vec<JsonField>, CliError> {
    let repository = &outcome.repository;
    let mut refs = Vec::new();
    for reference in repository.refs().all("refs/")? {
        let target = match &reference.target {
            RefTarget::Object(_) => None,
            RefTarget::Symbolic(target) => Some(Json::of_bytes(target.as_bytes())),
        };
        refs.push(Json::Object(vec![
            ("local", Json::from(reference.name.as_bstr())),
            ("old", Json::Null),
            ("new", reference.target.object().into()),
            ("target", target.into()),
            ("status", "created".into()),
        ]));
    }
    let head = repository.refs().head()?;
    let checkout = &outcome.checkout;
    let failures = checkout.failed.iter().map(|failure| {
        Json::Object(vec![
            ("path", Json::from(&failure.path)),
            ("message", failure.error.to_string().into()),
        ])
    });
    let stopped = outcome.checkout_error.as_ref().map(ToString::to_string);
    let checkout = Json::Object(vec![
        ("id", outcome.checked_out.into()),
        ("failed", outcome.checkout_failed.into()),
        ("error", stopped.into()),
        ("failures", failures.collect()),
        ("collided", Json::of_names(&checkout.collided)),
    ]);
    let place = |place: &Path| Json::from(path::as_bytes(place));
    let warnings = outcome.warnings.iter();
    let warnings = warnings.map(|warning| Json::from(warning.to_string()));
    Ok(vec![
        ("git_dir", place(repository.git_dir())),
        ("worktree", repository.work_tree().map(place).into()),
        ("head", head_document(&head)),
        ("refs", Json::List(refs)),
        ("checkout", checkout),
        ("received", received),
        ("linked", outcome.was_local.into()),
        ("warnings", warnings.collect()),
        ("duration_ms", context.duration_ms()),
    ])
}
