//! The JSON document of a command (`--json`).

use std::io::Write as _;
use std::process::Stdio;

use pronto_io::child;

use super::Context;
use crate::error::CliError;
use crate::json::{Json, JsonField, VERSION};

impl Context {
    /// Prints the document of this command, which has `fields` after those of all documents. An
    /// error that follows is reported on standard error and by the exit code only.
    ///
    /// # Errors
    /// Fails if standard output cannot be written.
    pub(crate) fn print_document(&mut self, fields: Vec<JsonField>) -> Result<(), CliError> {
        let command = self.json.take().unwrap_or_default();
        let mut document = vec![("version", VERSION.into()), ("command", command.into())];
        document.extend(fields);
        let mut text = String::new();
        Json::Object(document).render(&mut text);
        text.push('\n');
        Ok(self.out.write_all(text.as_bytes())?)
    }

    /// Prints the document of a command that fails with `error`, if `--json` was given and the
    /// command has printed no document.
    ///
    /// # Errors
    /// Fails if standard output cannot be written.
    pub(crate) fn print_error_document(&mut self, error: &CliError) -> Result<(), CliError> {
        if self.json.is_none() {
            return Ok(());
        }
        self.out.discard();
        self.print_document(vec![("error", error_of(error))])?;
        Ok(self.out.flush()?)
    }

    /// Returns the standard output of child processes: that of this process, or with `--json` the
    /// standard error, because standard output receives only the document.
    pub(crate) fn stdout_of_children(&self) -> Stdio {
        match self.json {
            None => Stdio::inherit(),
            Some(_) => child::standard_error(),
        }
    }

    /// Returns the milliseconds since this process was started.
    pub(crate) fn duration_ms(&self) -> Json {
        let elapsed = self.begun.elapsed().as_millis();
        u64::try_from(elapsed).unwrap_or(u64::MAX).into()
    }
}

/// Returns the value of an error: kind, message, advice, and the explanation of a remote.
pub(crate) fn error_of(error: &CliError) -> Json {
    let lines = |lines: Vec<&str>| match lines.is_empty() {
        true => Json::Null,
        false => lines.join("\n").into(),
    };
    let mut messages: Vec<&str> = error.earlier().iter().map(String::as_str).collect();
    messages.extend(error.messages().iter().map(String::as_str));
    if messages.is_empty() {
        messages.push("the messages on standard error describe the failure");
    }
    Json::Object(vec![
        ("kind", error.kind_name().into()),
        ("message", messages.join("\n").into()),
        (
            "hint",
            lines(error.hints().iter().map(String::as_str).collect()),
        ),
        (
            "remote",
            lines(error.remote().iter().map(String::as_str).collect()),
        ),
    ])
}
