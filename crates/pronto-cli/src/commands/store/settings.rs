//! `store config` and `store head`: read and change the configuration and the default branch of a
//! stored repository.

use std::io::Write as _;

use bstr::{BStr, ByteSlice as _};
use pronto::refs::RefNameRef;
use pronto_store::{ErrorKind, Settings, StoredRefValue};

use super::arguments::{CommonArguments, ConfigArguments, HeadArguments};
use super::server::OpenStoredRepository;
use crate::{CliError, Context, ExitCode};

impl HeadArguments {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let place = self.repository.open(common, context)?;
        match &self.branch {
            Some(branch) => set_head(&place, branch, context),
            None => show_head(&place, context),
        }
    }
}

impl ConfigArguments {
    /// Prints the configuration or the values of a key, or changes a key.
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let place = &self.repository.open(common, context)?;
        let words: Vec<&str> = [&self.key, &self.value]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        match (words.as_slice(), self.add, self.unset) {
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
                        let message = format!("'{key}' is not set");
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
                "'--add' needs a key and a value, and '--unset' needs a key alone",
            )),
        }
    }
}

fn change(
    place: &OpenStoredRepository,
    context: &mut Context,
    edit: impl Fn(&mut Settings) -> pronto_store::Result<()>,
) -> Result<ExitCode, CliError> {
    let number = place.store.configure(&place.repository, edit)?;
    writeln!(context.out, "generation {number}")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the branch that `HEAD` names.
fn show_head(place: &OpenStoredRepository, context: &mut Context) -> Result<ExitCode, CliError> {
    let shown = match place.store.head(&place.repository)? {
        Some(StoredRefValue::Symbolic(target)) => target.to_string(),
        Some(StoredRefValue::Direct { id, .. }) => id.to_string(),
        None => return Err(CliError::fatal("repository has no HEAD")),
    };
    writeln!(context.out, "{shown}")?;
    Ok(ExitCode::SUCCESS)
}

/// Makes `HEAD` a symref to a branch.
fn set_head(
    place: &OpenStoredRepository,
    branch: &str,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let full = match branch.strip_prefix("refs/heads/") {
        Some(_) => branch.to_owned(),
        None => format!("refs/heads/{branch}"),
    };
    if RefNameRef::new(full.as_bytes().as_bstr()).is_err() {
        return Err(CliError::fatal(format!("invalid branch name '{branch}'")));
    }
    let number = place.store.set_head(&place.repository, BStr::new(&full))?;
    writeln!(context.out, "generation {number}")?;
    Ok(ExitCode::SUCCESS)
}
