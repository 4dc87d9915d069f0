//! The types of configuration values (`--type`).

use bstr::{BStr, BString, ByteSlice};
use pronto::config::{BoolOrInt, ConfigEntry, OriginKind, color, value};
use pronto::revision::parse_expiry;

use crate::{CliError, Context};

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int,
    BoolOrInt,
    BoolOrStr,
    Path,
    ExpiryDate,
    Color,
}

impl Type {
    pub(super) fn named(name: &BStr) -> Option<Self> {
        Some(match name.as_bytes() {
            b"bool" => Type::Bool,
            b"int" => Type::Int,
            b"bool-or-int" => Type::BoolOrInt,
            b"bool-or-str" => Type::BoolOrStr,
            b"path" => Type::Path,
            b"expiry-date" => Type::ExpiryDate,
            b"color" => Type::Color,
            _ => return None,
        })
    }

    /// Returns whether the name of this type is also an option (`--bool`).
    pub(super) fn has_option(self) -> bool {
        self != Type::Color
    }

    /// Formats the value for output. Returns `None` if the value is not printed.
    pub(super) fn show(
        self,
        entry: &ConfigEntry<'_>,
        home: Option<&std::path::Path>,
        context: &mut Context,
    ) -> Result<Option<BString>, CliError> {
        let text = match self {
            Type::Bool => entry.bool()?.to_string().into(),
            Type::Int => entry.i64()?.to_string().into(),
            Type::BoolOrInt => match entry.bool_or_i64()? {
                BoolOrInt::Bool(word) => word.to_string().into(),
                BoolOrInt::Int(number) => number.to_string().into(),
            },
            Type::BoolOrStr => match value::parse_bool(entry.value) {
                Some(word) => word.to_string().into(),
                None => entry.value.unwrap_or_default().to_owned(),
            },
            Type::Path => match entry.path(home)? {
                Some(path) => pronto::path::as_bytes(&path).to_owned(),
                None => return Ok(None),
            },
            Type::ExpiryDate => match expiry(entry.string()?) {
                Some(moment) => moment,
                None => {
                    let value = entry.string()?;
                    let message = format!("'{value}' for '{}' is not a valid timestamp", entry.key);
                    context.report_error(&message);
                    return Err(bad_line(entry));
                }
            },
            Type::Color => match color::parse(entry.string()?) {
                Some(sequence) => sequence.into(),
                None => {
                    context.report_error(&format!("invalid color value: {}", entry.string()?));
                    return Err(bad_line(entry));
                }
            },
        };
        Ok(Some(text))
    }

    /// Converts the value into the form in which it is written to a file.
    pub(super) fn normalize(
        self,
        entry: &ConfigEntry<'_>,
        context: &mut Context,
    ) -> Result<BString, CliError> {
        let value = entry.value.unwrap_or_default();
        match self {
            Type::Path | Type::ExpiryDate => Ok(value.to_owned()),
            Type::Color if color::parse(value).is_some() => Ok(value.to_owned()),
            Type::Color => {
                context.report_error(&format!("invalid color value: {value}"));
                Err(CliError::fatal(format!("cannot parse color '{value}'")))
            }
            _ => Ok(self.show(entry, None, context)?.unwrap_or_default()),
        }
    }
}

/// The line number that marks the value of `--default`, which is in no file.
pub(super) const DEFAULT_LINE: u32 = u32::MAX;

/// Returns the message that Git prints after the error about a value.
pub(super) fn bad_line(entry: &ConfigEntry<'_>) -> CliError {
    if entry.line == DEFAULT_LINE {
        let value = entry.value.unwrap_or_default();
        return CliError::fatal(format!("failed to format default config value: {value}"));
    }
    if entry.origin.kind == OriginKind::CommandLine {
        return CliError::fatal("unable to parse command-line config");
    }
    let place = entry.origin.location();
    CliError::fatal(format!("bad config line {} {place}", entry.line))
}

/// Returns the expiry time in seconds since 1970. The largest number stands for "all times".
fn expiry(text: &BStr) -> Option<BString> {
    let moment = match parse_expiry(text)? {
        i64::MAX => u64::MAX,
        moment => moment as u64,
    };
    Some(moment.to_string().into())
}
