//! Changes configuration: sets, adds and unsets values, and renames and removes sections.

use bstr::{BStr, BString, ByteSlice};
use pronto::config::edit::{self, Document, EditRefusal};
use pronto::config::{Config, ConfigEntry, ConfigOrigin, ConfigScope, OriginKind, canonical};
use pronto::{Error, ErrorKind, Repository};

use super::arguments::{ConfigAction, Request};
use super::read::value_test;
use super::source::ConfigSource;
use crate::{CliError, Context, ExitCode};

/// The exit code for a malformed key.
const INVALID_KEY: ExitCode = ExitCode::new(1);
/// The exit code for a key without a section or a name.
const NO_SECTION_OR_NAME: ExitCode = ExitCode::new(2);
/// The exit code for a malformed file.
const INVALID_FILE: ExitCode = ExitCode::new(3);
/// The exit code for a file that cannot be written.
const NO_WRITE: ExitCode = ExitCode::new(4);
/// The exit code if there is no value to unset, or if several values match a change of one value.
const NOTHING_SET: ExitCode = ExitCode::new(5);
/// The exit code for a locked file.
const NO_LOCK: ExitCode = ExitCode::new(255);

pub(super) fn run(
    request: &Request,
    source: &ConfigSource,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let (file, display_path) = source.target()?;
    let outside = Config::default();
    let config = (source.repository.as_ref()).map_or(&outside, Repository::config);
    let edit = |change: &dyn Fn(&mut Document) -> Result<Option<EditRefusal>, Error>| {
        if display_path.is_empty() {
            let message = "could not write config file : Not a directory";
            return Err(CliError::error(message).with_code(NO_WRITE));
        }
        edit::edit_file(&file, display_path.as_bstr(), config, change)
            .map_err(|error| not_edited(&error))
    };
    let name = request.values[0].as_bstr();
    if matches!(
        request.action,
        ConfigAction::RenameSection | ConfigAction::RemoveSection
    ) {
        if !file.exists() {
            return Err(CliError::fatal(format!("no such section: {name}")));
        }
        let new = request.values.get(1).map(|new| new.as_bstr());
        edit(&|document| match document.rename_section(name, new)? {
            0 => Err(Error::new(
                ErrorKind::UnknownRevision,
                format!("no such section: {name}"),
            )),
            _ => Ok(None),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let value = match request.action {
        ConfigAction::Unset | ConfigAction::UnsetAll => BString::default(),
        _ => normal_value(request, name, context)?,
    };
    let key = canonical(name).map_err(|error| {
        let code = match error.kind() {
            ErrorKind::Config => NO_SECTION_OR_NAME,
            _ => INVALID_KEY,
        };
        CliError::error(error.message()).with_code(code)
    })?;
    let pattern = match request.action {
        ConfigAction::Unset | ConfigAction::UnsetAll => request.values.get(1),
        _ => request.values.get(2),
    };
    let counts = value_test(request, pattern)?;
    let is_unset = matches!(request.action, ConfigAction::Unset | ConfigAction::UnsetAll);
    if is_unset && !file.exists() {
        return Ok(NOTHING_SET);
    }
    let refusal = edit(&|document| {
        let result = match request.action {
            ConfigAction::Add => {
                document.add(name, value.as_bstr());
                Ok(())
            }
            ConfigAction::Unset => document.unset(name, false, &*counts),
            ConfigAction::UnsetAll => document.unset(name, true, &*counts),
            ConfigAction::ReplaceAll => document.set(name, value.as_bstr(), true, &*counts),
            _ => document.set(name, value.as_bstr(), false, &*counts),
        };
        Ok(result.err())
    })?;
    finish(request, key.as_bstr(), refusal, context)
}

fn not_edited(error: &Error) -> CliError {
    match error.kind() {
        ErrorKind::Locked => CliError::error(error.message()).with_code(NO_LOCK),
        ErrorKind::Config => CliError::fatal(error.to_string()).with_code(INVALID_FILE),
        ErrorKind::InvalidInput => CliError::error(error.message()).with_code(NO_LOCK),
        ErrorKind::UnknownRevision => CliError::fatal(error.message()),
        _ => CliError::error(error.to_string()).with_code(NO_WRITE),
    }
}

fn finish(
    request: &Request,
    key: &BStr,
    refusal: Option<EditRefusal>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let Some(refusal) = refusal else {
        return Ok(ExitCode::SUCCESS);
    };
    if refusal == EditRefusal::Multiple {
        context.warn(&format!("{key} has multiple values"));
        if request.action == ConfigAction::Set {
            let message = format!(
                "cannot overwrite multiple values with a single value\n       \
                 Use a regexp, --add or --replace-all to change {}.",
                request.values[0]
            );
            return Err(CliError::error(message).with_code(NOTHING_SET));
        }
    }
    Ok(NOTHING_SET)
}

/// Converts the value to the canonical form of its type.
fn normal_value(
    request: &Request,
    name: &BStr,
    context: &mut Context,
) -> Result<BString, CliError> {
    let value = request.values.get(1).cloned().unwrap_or_default();
    let Some(value_type) = request.value_type else {
        return Ok(value);
    };
    let origin = ConfigOrigin {
        scope: ConfigScope::Command,
        kind: OriginKind::CommandLine,
        name: BString::default(),
        path: None,
    };
    let entry = ConfigEntry {
        key: name,
        value: Some(value.as_bstr()),
        origin: &origin,
        line: 0,
    };
    value_type.normalize(&entry, context)
}
