//! Reads configuration: `--get` and similar options, `--list`.

use std::collections::BTreeMap;
use std::io::Write;

use bstr::{BStr, BString, ByteSlice};
use pronto::config::{
    self, Config, ConfigEntry, ConfigKey, ConfigOrigin, ConfigScope, NormalUrl, OriginKind, color,
};
use pronto::quote;
use pronto_io::short::Short as _;

use super::arguments::{ConfigAction, Request};
use super::source::ConfigSource;
use super::types::{DEFAULT_LINE, bad_line};
use crate::error::Kind;
use crate::{CliError, Context, ExitCode};

/// The exit code for a malformed pattern.
pub(super) const INVALID_PATTERN: ExitCode = ExitCode::new(6);

pub(super) fn run(
    request: &Request,
    source: &ConfigSource,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let mut reader = Reader {
        request,
        source,
        context,
    };
    match request.action {
        ConfigAction::List => reader.list(),
        ConfigAction::GetUrlMatch => reader.get_url_match(),
        ConfigAction::GetColor => reader.get_color(),
        _ => reader.get(),
    }
}

struct Reader<'a> {
    request: &'a Request,
    source: &'a ConfigSource,
    context: &'a mut Context,
}

/// A test that selects values.
type ValueTest = Box<dyn Fn(&BStr) -> bool>;

/// Returns the test for values: a regular expression, negated if it begins with `!`, or a fixed
/// text (`--fixed-value`).
pub(super) fn value_test(
    request: &Request,
    pattern: Option<&BString>,
) -> Result<ValueTest, CliError> {
    let Some(pattern) = pattern.cloned() else {
        return Ok(Box::new(|_| true));
    };
    if request.fixed_value {
        return Ok(Box::new(move |value| value == pattern));
    }
    let (text, negated) = match pattern.strip_prefix(b"!") {
        Some(rest) => (rest.as_bstr(), true),
        None => (pattern.as_bstr(), false),
    };
    match config::pattern(text) {
        Ok(wanted) => Ok(Box::new(move |value| wanted.is_match(value) != negated)),
        Err(_) => {
            let message = format!("invalid pattern: {pattern}");
            Err(CliError::error(message).with_code(INVALID_PATTERN))
        }
    }
}

impl Reader<'_> {
    fn terminator(&self) -> &'static [u8] {
        if self.request.null { b"\0" } else { b"\n" }
    }

    fn list(&mut self) -> Result<ExitCode, CliError> {
        if let Some(missing) = self.source.missing_file() {
            let message =
                format!("unable to read config file '{missing}': No such file or directory");
            return Err(CliError::fatal(message));
        }
        let config = self.source.load().map_err(|error| {
            if error.kind() != Kind::Error {
                return error;
            }
            self.context.report_error(&error.to_string());
            CliError::fatal("error processing config file(s)")
        })?;
        for entry in config.iter() {
            let mut line = self.start(&entry);
            line.extend_from_slice(entry.key);
            if let Some(value) = entry.value.filter(|_| !self.request.name_only) {
                line.push(if self.request.null { b'\n' } else { b'=' });
                line.extend_from_slice(value);
            }
            line.extend_from_slice(self.terminator());
            self.context.out.write_all(&line)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn get(&mut self) -> Result<ExitCode, CliError> {
        let request = self.request;
        let by_pattern = request.action == ConfigAction::GetRegexp;
        let name = &request.values[0];
        let wants_key: Box<dyn Fn(&BStr) -> bool> = if by_pattern {
            let canonical = lower_but_subsection(name.as_bstr());
            match config::pattern(canonical.as_bstr()) {
                Ok(wanted) => Box::new(move |key| wanted.is_match(key)),
                Err(_) => {
                    let message = format!("invalid key pattern: {name}");
                    return Err(CliError::error(message).with_code(INVALID_PATTERN));
                }
            }
        } else {
            let key = config::canonical(name.as_bstr())
                .map_err(|error| CliError::error(error.message()))?;
            Box::new(move |found| found == key)
        };
        let counts = value_test(request, request.values.get(1))?;
        let config = self.source.load()?;
        let mut found: Vec<ConfigEntry<'_>> = config
            .iter()
            .filter(|entry| wants_key(entry.key))
            .filter(|entry| counts(entry.value.unwrap_or_default()))
            .collect();
        if found.is_empty() {
            return self.show_default(name.as_bstr());
        }
        if request.action == ConfigAction::Get {
            found.drain(..found.len() - 1);
        }
        for entry in &found {
            self.show(entry, by_pattern)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn show_default(&mut self, name: &BStr) -> Result<ExitCode, CliError> {
        let Some(default) = &self.request.default else {
            return Ok(ExitCode::FAILURE);
        };
        let origin = ConfigOrigin {
            scope: ConfigScope::Command,
            kind: OriginKind::CommandLine,
            name: BString::default(),
            path: None,
        };
        let value = Some(default.as_bstr());
        let entry = ConfigEntry {
            key: name,
            value,
            origin: &origin,
            line: DEFAULT_LINE,
        };
        self.show(&entry, false)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Formats the scope (`--show-scope`) and the origin (`--show-origin`) of an entry, if
    /// requested.
    fn start(&self, entry: &ConfigEntry<'_>) -> Vec<u8> {
        let mut line = Vec::new();
        let separator = if self.request.null { b'\0' } else { b'\t' };
        if self.request.show_scope {
            line.extend_from_slice(entry.origin.scope.name().as_bytes());
            line.push(separator);
        }
        if self.request.show_origin {
            line.extend_from_slice(entry.origin.prefix().as_bytes());
            line.push(b':');
            if self.request.null {
                line.extend_from_slice(&entry.origin.name);
            } else {
                quote::c_quote_into(&entry.origin.name, true, &mut line);
            }
            line.push(separator);
        }
        line
    }

    fn show(&mut self, entry: &ConfigEntry<'_>, with_key: bool) -> Result<(), CliError> {
        let home = self.source.environment.home();
        let value = match self.request.value_type {
            Some(value_type) => value_type.show(entry, home, self.context)?,
            None => entry.value.map(BStr::to_owned),
        };
        let mut line = self.start(entry);
        if with_key {
            line.extend_from_slice(entry.key);
        }
        if !self.request.name_only
            && let Some(value) = value
        {
            if with_key {
                line.push(if self.request.null { b'\n' } else { b' ' });
            }
            line.extend_from_slice(&value);
        }
        line.extend_from_slice(self.terminator());
        self.context.out.write_all(&line)?;
        Ok(())
    }

    fn get_url_match(&mut self) -> Result<ExitCode, CliError> {
        let (name, url) = (&self.request.values[0], &self.request.values[1]);
        let url = NormalUrl::parse(url.as_bstr())?;
        let name = BString::from(name.to_ascii_lowercase());
        let (section, variable) = match name.split_once_str(".") {
            Some((section, variable)) => (section.as_bstr(), Some(variable.as_bstr())),
            None => (name.as_bstr(), None),
        };
        let config = self.source.load()?;
        let found = best_for_url(&config, section, variable, &url);
        for (key, entry) in &found {
            let shown = ConfigEntry {
                key: key.as_bstr(),
                ..*entry
            };
            self.show(&shown, variable.is_none())?;
        }
        Ok(if found.is_empty() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }

    fn get_color(&mut self) -> Result<ExitCode, CliError> {
        let name = &self.request.values[0];
        let config = self.source.load()?;
        let mut sequence = None;
        for entry in config.entries(name) {
            let value = entry.string()?;
            sequence = color::parse(value);
            if sequence.is_none() {
                let message = format!("invalid color value: {value}");
                self.context.report_error(&message);
                return Err(bad_line(&entry));
            }
        }
        let default = self.request.values.get(1).filter(|_| sequence.is_none());
        if let Some(default) = default {
            sequence = color::parse(default);
            if sequence.is_none() {
                let message = format!("invalid color value: {default}");
                self.context.report_error(&message);
                let message = "unable to parse default color value";
                self.context.report_error(message);
                return Ok(ExitCode::new(255));
            }
        }
        let sequence = sequence.unwrap_or_default();
        self.context.out.write_all(sequence.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

fn best_for_url<'a>(
    config: &'a Config,
    section: &BStr,
    variable: Option<&BStr>,
    url: &NormalUrl,
) -> BTreeMap<BString, ConfigEntry<'a>> {
    let mut found = BTreeMap::new();
    for entry in config.iter() {
        let key = ConfigKey::split(entry.key);
        if key.section != section || variable.is_some_and(|wanted| key.variable != wanted) {
            continue;
        }
        let section = section.to_str_lossy();
        if let Some(best) = config.for_url(&section, &key.variable.to_str_lossy(), url) {
            let name = BString::from(format!("{section}.{}", key.variable));
            found.insert(name, best);
        }
    }
    found
}

/// Converts a pattern for keys to lower case before the first dot and after the last dot, because
/// subsections are case-sensitive.
fn lower_but_subsection(pattern: &BStr) -> BString {
    let mut lower = pattern.to_owned();
    let first = lower.position_of(b'.').unwrap_or(lower.len());
    let last = lower.last_position_of(b'.').unwrap_or(0);
    lower[..first].make_ascii_lowercase();
    lower[last..].make_ascii_lowercase();
    lower
}
