//! The types of configuration values, and Git's messages about values that are not of their type.

use bstr::{BStr, ByteSlice};
use pronto::config::{ConfigEntry, ConfigKey, color, value};
use pronto_io::short::Short as _;

use crate::error::CliError;

/// The type of the values of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A boolean. A key without a value is true.
    Bool,
    /// A boolean or one of these words, in any case.
    BoolOr(&'static [&'static str]),
    /// A boolean or one of these words, in exactly this case.
    BoolOrExactly(&'static [&'static str]),
    /// A boolean or one of these words, like [`Kind::BoolOr`], but the key needs a value.
    TextBoolOr(&'static [&'static str]),
    /// A boolean or an integer.
    BoolOrInt,
    /// An integer.
    Int,
    /// An integer that is not negative. The text is the message about a negative number, with the
    /// number in place of `{}`.
    Natural(&'static str),
    /// An integer of 64 bits.
    Long,
    /// A number of bytes, with an optional unit suffix.
    Size,
    /// Any text. The key needs a value.
    Text,
    /// A path. The key needs a value.
    Path,
    /// One of these words, in any case. The key needs a value. The second text is the message about
    /// any other value, with the key in place of `{key}` and the value in place of `{value}`.
    Words(&'static [&'static str], &'static str),
    /// One of these words, like [`Kind::Words`], but in exactly this case.
    ExactWords(&'static [&'static str], &'static str),
    /// One of these words, like [`Kind::Words`], but the command ends with the message alone.
    FatalWords(&'static [&'static str], &'static str),
    /// One of these words, like [`Kind::FatalWords`], but in exactly this case.
    FatalExactWords(&'static [&'static str], &'static str),
    /// Any value. An unexpected value has no effect.
    Any,
    /// A colour. The key needs a value.
    Color,
    /// A compression level. The text names the kind of level in the message.
    Level(&'static str),
    /// A type that this function checks.
    Other(fn(&ConfigEntry<'_>) -> Result<(), CliError>),
}

impl Kind {
    /// Checks the value of `entry`.
    ///
    /// # Errors
    /// Fails with Git's message if the value is not of this type.
    pub(super) fn check(self, entry: &ConfigEntry<'_>) -> Result<(), CliError> {
        match self {
            Kind::Bool => entry.bool().map(|_| ())?,
            Kind::BoolOr(words) => bool_or(entry, |value| is_one_of(value, words))?,
            Kind::BoolOrExactly(words) => bool_or(entry, |value| words.iter().any(|w| value == w))?,
            Kind::TextBoolOr(words) => {
                entry.string()?;
                bool_or(entry, |value| is_one_of(value, words))?;
            }
            Kind::BoolOrInt => entry.bool_or_i64().map(|_| ())?,
            Kind::Int => entry.i32().map(|_| ())?,
            Kind::Natural(message) => {
                let number = entry.i32()?;
                if number < 0 {
                    let number = number.to_string();
                    return Err(CliError::fatal(message.replace("{}", &number)));
                }
            }
            Kind::Long => entry.i64().map(|_| ())?,
            Kind::Size => entry.u64().map(|_| ())?,
            Kind::Text => entry.string().map(|_| ())?,
            Kind::Path => check_path(entry)?,
            Kind::Words(words, message) => {
                let value = entry.string()?;
                if !is_one_of(value, words) {
                    return Err(wrong(entry, &filled(message, entry, value)));
                }
            }
            Kind::ExactWords(words, message) => {
                let value = entry.string()?;
                if !words.iter().any(|word| value == word) {
                    return Err(wrong(entry, &filled(message, entry, value)));
                }
            }
            Kind::FatalWords(words, message) => {
                let value = entry.string()?;
                if !is_one_of(value, words) {
                    return Err(CliError::fatal(filled(message, entry, value)));
                }
            }
            Kind::FatalExactWords(words, message) => {
                let value = entry.string()?;
                if !words.iter().any(|word| value == word) {
                    return Err(CliError::fatal(filled(message, entry, value)));
                }
            }
            Kind::Any => {}
            Kind::Color => {
                let value = entry.string()?;
                if color::parse(value).is_none() {
                    return Err(wrong(entry, &format!("invalid color value: {value}")));
                }
            }
            Kind::Level(word) => {
                let level = entry.i32()?;
                if !(-1..=9).contains(&level) {
                    return Err(CliError::fatal(format!(
                        "bad {word} compression level {level}"
                    )));
                }
            }
            Kind::Other(check) => check(entry)?,
        }
        Ok(())
    }
}

/// Returns the error for a value: Git prints `message`, then the file and line of the setting.
fn wrong(entry: &ConfigEntry<'_>, message: &str) -> CliError {
    entry
        .bad_variable()
        .reported_after(message.to_owned())
        .into()
}

fn filled(message: &str, entry: &ConfigEntry<'_>, value: &BStr) -> String {
    let message = message.replace("{key}", &entry.key.to_str_lossy());
    message.replace("{value}", &value.to_str_lossy())
}

fn is_one_of(value: &BStr, words: &[&str]) -> bool {
    let is = |word: &&str| value.eq_ignore_ascii_case(word.as_bytes());
    words.iter().any(is)
}

fn bool_or(entry: &ConfigEntry<'_>, is_word: impl FnOnce(&BStr) -> bool) -> Result<(), CliError> {
    if !entry.value.is_some_and(is_word) {
        entry.bool()?;
    }
    Ok(())
}

/// Checks a path. A path is invalid only if `~USER` names an unknown user.
fn check_path(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let value = entry.string()?;
    let text = value.strip_prefix(b":(optional)").unwrap_or(value);
    if text.starts_with(b"~") && !text.starts_with(b"~/") {
        entry.path(Some(std::path::Path::new("/")))?;
    }
    Ok(())
}

/// Checks a value of `core.abbrev`.
pub(super) fn abbreviation(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const SHORTEST: i32 = 4;
    let text = entry.string()?;
    if is_one_of(text, &["auto"]) || value::parse_bool_word(Some(text)) == Some(false) {
        return Ok(());
    }
    let length = entry.i32()?;
    match length < SHORTEST {
        true => Err(wrong(
            entry,
            &format!("abbrev length out of range: {length}"),
        )),
        false => Ok(()),
    }
}

/// Checks a value of `core.commentString` or `core.commentChar`.
pub(super) fn comment(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let text = entry.string()?;
    if text.is_empty() {
        let message = format!("{} must have at least one character", entry.key);
        return Err(wrong(entry, &message));
    }
    match text.contains(&b'\n') {
        true => Err(wrong(
            entry,
            &format!("{} cannot contain newline", entry.key),
        )),
        false => Ok(()),
    }
}

/// Checks a value of `push.default`.
pub(super) fn push_default(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const MODES: &[&str] = &[
        "nothing", "matching", "simple", "upstream", "tracking", "current",
    ];
    let text = entry.string()?;
    if MODES.iter().any(|mode| text == mode) {
        return Ok(());
    }
    let error = CliError::from(entry.bad_variable());
    let malformed = format!("malformed value for {}: {text}", entry.key);
    let expected = "must be one of nothing, matching, simple, upstream or current";
    Err(error.after(malformed).after(expected))
}

/// Checks a value of `push.gpgSign`.
pub(super) fn push_signature(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let is_known = value::parse_bool(entry.value).is_some()
        || entry
            .value
            .is_some_and(|text| is_one_of(text, &["if-asked"]));
    match is_known {
        true => Ok(()),
        false => Err(wrong(entry, &format!("invalid value for '{}'", entry.key))),
    }
}

/// Checks a value of `push.recurseSubmodules`.
pub(super) fn push_recursion(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let text = entry.value.unwrap_or_default();
    let is_known = match value::parse_bool(entry.value) {
        Some(is_on) => !is_on,
        None => ["on-demand", "check", "only"]
            .iter()
            .any(|word| text == word),
    };
    recursion(entry, is_known)
}

/// Checks a value of `fetch.recurseSubmodules`.
pub(super) fn fetch_recursion(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let is_known = value::parse_bool(entry.value).is_some()
        || entry.value.is_some_and(|text| text == "on-demand");
    recursion(entry, is_known)
}

fn recursion(entry: &ConfigEntry<'_>, is_known: bool) -> Result<(), CliError> {
    let text = entry.value.unwrap_or("(null)".into());
    match is_known {
        true => Ok(()),
        false => Err(CliError::fatal(format!(
            "bad {} argument: {text}",
            entry.key
        ))),
    }
}

/// Checks a value of `pack.indexVersion`.
pub(super) fn pack_version(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let version = entry.i32()? as u32;
    match version > 2 {
        true => Err(CliError::fatal(format!("bad pack.indexVersion={version}"))),
        false => Ok(()),
    }
}

/// Checks a value of `remote.NAME.fetch`.
pub(super) fn fetch_refspec(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let text = entry.string()?;
    let parsed = pronto::remote::Refspec::parse(text).map(|_| ());
    parsed.map_err(|_| invalid_refspec(text))
}

/// Checks a value of `remote.NAME.push`.
pub(super) fn push_refspec(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let text = entry.string()?;
    let parsed = pronto::push::PushSpec::parse(text).map(|_| ());
    parsed.map_err(|_| invalid_refspec(text))
}

fn invalid_refspec(text: &BStr) -> CliError {
    CliError::fatal(format!("invalid refspec '{text}'"))
}

/// Checks a value of `status.showUntrackedFiles`.
pub(super) fn untracked_files(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    let text = entry.value.unwrap_or_default();
    let is_known = value::parse_bool(entry.value).is_some()
        || ["no", "normal", "all"].iter().any(|mode| text == mode);
    match is_known {
        true => Ok(()),
        false => Err(wrong(
            entry,
            &format!("Invalid untracked files mode '{text}'"),
        )),
    }
}

/// Checks a value of `column.ui` or `column.COMMAND`.
pub(super) fn columns(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const WORDS: &[&str] = &[
        "always", "never", "auto", "plain", "column", "row", "dense", "nodense",
    ];
    let text = entry.string()?;
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let length = rest.find_byteset(b" ,").unwrap_or(rest.len());
        let (word, _) = rest.split_at(length);
        if length > 0 && !WORDS.iter().any(|known| known.as_bytes() == word) {
            let name = ConfigKey::split(entry.key).variable;
            let message = format!("invalid column.{} mode {text}", name);
            let error = CliError::from(entry.bad_variable());
            let unsupported = format!("unsupported option '{}'", rest.as_bstr());
            return Err(error.after(unsupported).after(message));
        }
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    Ok(())
}

/// Checks a number of context lines, which cannot be negative.
pub(super) fn context_lines(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    match entry.i32()? < 0 {
        true => Err(entry.bad_variable().into()),
        false => Ok(()),
    }
}

/// Checks a value of `diff.colorMoved`.
pub(super) fn moved_lines(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const MODES: &[&str] = &[
        "plain",
        "blocks",
        "zebra",
        "default",
        "dimmed-zebra",
        "dimmed_zebra",
    ];
    let text = entry.value.unwrap_or_default();
    let is_known =
        value::parse_bool(entry.value).is_some() || MODES.iter().any(|mode| text == mode);
    let message = "color moved setting must be one of 'no', 'default', 'blocks', 'zebra', \
        'dimmed-zebra', 'plain'";
    match is_known {
        true => Ok(()),
        false => Err(wrong(entry, message)),
    }
}

/// Checks a value of `diff.wsErrorHighlight`.
pub(super) fn highlighted_spaces(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    const WORDS: &[&str] = &["none", "default", "all", "new", "old", "context"];
    let text = entry.string()?;
    let is_known = text.is_empty()
        || text
            .split_at_each(b',')
            .all(|word| WORDS.iter().any(|known| known.as_bytes() == word));
    let message = format!("unknown value for config '{}': {text}", entry.key);
    match is_known {
        true => Ok(()),
        false => Err(wrong(entry, &message)),
    }
}

/// Checks a value of `tar.umask`.
pub(super) fn tar_umask(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    if entry.value.is_none_or(|text| text != "user") {
        entry.i32()?;
    }
    Ok(())
}

/// Checks an integer that must be at least `least`.
fn at_least(entry: &ConfigEntry<'_>, least: i32) -> Result<(), CliError> {
    let number = entry.i32()?;
    let message = format!("value of '{}' out of range: {number}", entry.key);
    match number < least {
        true => Err(wrong(entry, &message)),
        false => Ok(()),
    }
}

/// Checks a value of `fsmonitor.ipcThreads`.
pub(super) fn positive(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    at_least(entry, 1)
}

/// Checks a value of `fsmonitor.startTimeout`.
pub(super) fn not_negative(entry: &ConfigEntry<'_>) -> Result<(), CliError> {
    at_least(entry, 0)
}
