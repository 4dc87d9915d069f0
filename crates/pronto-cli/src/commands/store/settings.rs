//! `store config` and `store head`: the configuration of a stored repository, and its default branch.

use std::io::Write as _;

use bstr::{BStr, ByteSlice as _};
use pronto::refs::RefNameRef;
use pronto_store::{ErrorKind, Settings, Value};

use super::Args;
use super::places::Place;
use crate::{CliError, Context, ExitCode};

/// Shows the configuration of `place`, or the values of a key; or changes one.
pub(super) fn config(
    args: &Args,
    place: &Place,
    words: &[&str],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    match (words, args.add, args.unset) {
        ([], false, false) => {
            for (key, value) in place.store.settings(&place.repository)?.entries() {
                writeln!(context.out, "{key}={value}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        ([key], false, false) => {
            let settings = place.store.settings(&place.repository)?;
            let values = settings.values(BStr::new(key))?;
            for value in &values {
                writeln!(context.out, "{value}")?;
            }
            Ok(match values.is_empty() {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            })
        }
        ([key], false, true) => change(place, context, |settings| {
            match settings.unset(BStr::new(key))? {
                true => Ok(()),
                false => {
                    let message = format!("'{key}' has no value");
                    Err(pronto_store::Error::new(ErrorKind::NotFound, message))
                }
            }
        }),
        ([key, value], true, false) => change(place, context, |settings| {
            settings.add(BStr::new(key), BStr::new(value))
        }),
        ([key, value], false, false) => change(place, context, |settings| {
            settings.set(BStr::new(key), BStr::new(value))
        }),
        _ => Err(CliError::usage(
            "store config needs 'STORE NAME', then nothing, 'KEY', 'KEY VALUE', '--add KEY VALUE' or '--unset KEY'",
        )),
    }
}

fn change(
    place: &Place,
    context: &mut Context,
    edit: impl Fn(&mut Settings) -> pronto_store::Result<()>,
) -> Result<ExitCode, CliError> {
    let number = place.store.configure(&place.repository, edit)?;
    writeln!(context.out, "generation {number}")?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the branch that `HEAD` leads to.
pub(super) fn show_head(place: &Place, context: &mut Context) -> Result<ExitCode, CliError> {
    let shown = match place.store.head(&place.repository)? {
        Some(Value::Symbolic(target)) => target.to_string(),
        Some(Value::Direct { id, .. }) => id.to_string(),
        None => return Err(CliError::fatal("the repository has no HEAD")),
    };
    writeln!(context.out, "{shown}")?;
    Ok(ExitCode::SUCCESS)
}

/// Lets `HEAD` lead to a branch.
pub(super) fn set_head(
    place: &Place,
    branch: &str,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let full = match branch.strip_prefix("refs/heads/") {
        Some(_) => branch.to_owned(),
        None => format!("refs/heads/{branch}"),
    };
    if RefNameRef::new(full.as_bytes().as_bstr()).is_err() {
        return Err(CliError::fatal(format!(
            "'{branch}' is not a valid name of a branch"
        )));
    }
    let number = place.store.set_head(&place.repository, BStr::new(&full))?;
    writeln!(context.out, "generation {number}")?;
    Ok(ExitCode::SUCCESS)
}
