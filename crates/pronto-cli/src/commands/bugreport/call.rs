//! Whether pronto runs a call itself, for a report. Nothing is run.

use std::ffi::OsString;

use bstr::ByteSlice as _;
use pronto::support::{self, Lacking, LackingSource};

use super::settings::KnownSettings;
use super::{Surroundings, line};
use crate::commands::partial::native_part;
use crate::commands::{ArgumentStyle, NativeCommand, find};
use crate::git_names;
use crate::settings::{check_config, check_variables, operations_of};

/// Appends the description of the call `words`. Of the call, only names that pronto or git define are
/// written, and the name of an option that pronto lacks.
pub(super) fn describe(words: &[OsString], surroundings: &Surroundings, text: &mut String) {
    let is_program = |word: &OsString| word == "git" || word == "pronto";
    let words = match words.split_first() {
        Some((first, rest)) if is_program(first) => rest,
        _ => words,
    };
    let Some((name, arguments)) = words.split_first() else {
        return line(text, "command", "none");
    };
    let Some(command) = name.to_str().and_then(find) else {
        let what = match git_names::is_command(name) {
            true => "pronto does not implement this command of git: git runs it",
            false if name.as_encoded_bytes().starts_with(b"-") => {
                "not examined, because options precede the command"
            }
            false => "neither pronto nor git has the command; an alias is not examined",
        };
        let shown = name.to_str().filter(|_| git_names::is_command(name));
        line(text, "command", shown.unwrap_or("(not named here)"));
        return line(text, "runs", what);
    };
    line(text, "command", command.name);
    if let Some(part) = native_part(command.name) {
        line(text, "native", part);
    }
    let mut reasons = Vec::new();
    match command.style {
        ArgumentStyle::Raw => line(text, "arguments", "examined only when the command runs"),
        _ => reasons.extend(command.check_arguments(arguments).err()),
    }
    settings_of(command, surroundings, &mut reasons);
    for reason in &reasons {
        line(text, "lacks", reason);
    }
    let is_git = git_names::is_command(name);
    line(
        text,
        "runs",
        match (reasons.is_empty(), is_git) {
            (true, _) => "pronto, unless it finds later that it lacks something",
            (false, true) => "git",
            (false, false) => "not at all: git does not have this command",
        },
    );
}

/// Adds the settings, variables and hooks in effect that the command lacks.
fn settings_of(command: &NativeCommand, surroundings: &Surroundings, reasons: &mut Vec<String>) {
    let variable = |name: &str| surroundings.environment.get(name).map(ToOwned::to_owned);
    if let Err(error) = check_variables(command.name, variable) {
        reasons.push(error.to_string());
    }
    let Some(config) = &surroundings.config else {
        return;
    };
    if let Err(error) = check_config(command.name, config) {
        reasons.push(error.to_string());
    }
    let known = KnownSettings::new();
    for &operation in operations_of(command.name) {
        let lacking = match &surroundings.repository {
            Some(repository) => support::check(repository, operation),
            None => support::check_settings(operation, config, &surroundings.environment),
        };
        reasons.extend(lacking.iter().map(|lacking| name_of(lacking, &known)));
    }
    reasons.dedup();
}

/// Returns the name of something that the command lacks, without the subsection of a setting.
fn name_of(lacking: &Lacking, known: &KnownSettings) -> String {
    match lacking.source {
        LackingSource::Setting => {
            let name = known.name_of(lacking.name.as_bstr());
            format!("setting '{}'", name.unwrap_or("(not named here)"))
        }
        _ => lacking.to_string(),
    }
}
