//! The colours of messages on standard error: advice, rejected refs, and lines of a server.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal};

use pronto::Environment;
use pronto::config::{Config, ConfigEntry, color};

use crate::CliError;

/// The escape sequence that resets the colour.
const RESET: &str = "\x1b[m";

/// The escape sequences before and after a message; both are empty without colours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) start: String,
    pub(crate) end: String,
}

/// The settings of one kind of message: `color.NAME`, `color.NAME.SLOT`, `color.NAME.reset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColourScheme {
    name: &'static str,
    slot: &'static str,
    start: &'static str,
}

/// The colours of advice (`color.advice`).
pub(crate) const ADVICE: ColourScheme = ColourScheme {
    name: "advice",
    slot: "hint",
    start: "\x1b[33m",
};

/// The colours of the message about a failed push (`color.push`).
pub(crate) const PUSH: ColourScheme = ColourScheme {
    name: "push",
    slot: "error",
    start: "\x1b[31m",
};

/// The colours of rejected refs (`color.transport`).
pub(crate) const TRANSPORT: ColourScheme = ColourScheme {
    name: "transport",
    slot: "rejected",
    start: "\x1b[31m",
};

/// A configured value that is not a colour.
#[derive(Debug)]
pub(crate) struct BadColor(String);

impl fmt::Display for BadColor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid color value: {}", self.0)
    }
}

impl ColourScheme {
    /// Returns the colours of this kind of message. Every setting is checked.
    ///
    /// # Errors
    /// Fails if a setting is malformed.
    pub(crate) fn read(
        self,
        config: &Config,
        environment: &Environment,
    ) -> Result<Paint, CliError> {
        let is_colored = self.is_colored(config, environment, false)?;
        let mut paint = self.paint();
        for (slot, sequence) in [(self.slot, &mut paint.start), ("reset", &mut paint.end)] {
            for entry in config.entries(self.key(slot)) {
                *sequence = color(&entry)?.map_err(|bad| {
                    let error = entry.bad_variable();
                    CliError::from(error.reported_after(bad.to_string()))
                })?;
            }
        }
        Ok(if is_colored { paint } else { Paint::default() })
    }

    /// Does the same as [`read`](Self::read), but reads only the last value of each setting, and
    /// does not check colours that are not used.
    ///
    /// # Errors
    /// Fails if a setting is malformed. The inner error is a value that is not a colour.
    pub(crate) fn read_used(
        self,
        config: &Config,
        environment: &Environment,
    ) -> Result<Result<Paint, BadColor>, CliError> {
        if !self.is_colored(config, environment, true)? {
            return Ok(Ok(Paint::default()));
        }
        let mut paint = self.paint();
        for (slot, sequence) in [("reset", &mut paint.end), (self.slot, &mut paint.start)] {
            let Some(entry) = config.entry_of(self.key(slot)) else {
                continue;
            };
            match color(&entry)? {
                Ok(read) => *sequence = read,
                Err(bad) => return Ok(Err(bad)),
            }
        }
        Ok(Ok(paint))
    }

    fn is_colored(
        self,
        config: &Config,
        environment: &Environment,
        needs_value: bool,
    ) -> Result<bool, CliError> {
        let entry = config.entry_of(format!("color.{}", self.name));
        if let Some(entry) = entry.as_ref().filter(|_| needs_value) {
            entry.string()?;
        }
        is_colored(entry, environment)
    }

    fn paint(self) -> Paint {
        Paint {
            start: self.start.to_owned(),
            end: RESET.to_owned(),
        }
    }

    fn key(self, slot: &str) -> String {
        format!("color.{}.{slot}", self.name)
    }
}

/// Returns the escape sequence of the colour in `entry`.
///
/// # Errors
/// Fails if the key has no value. The inner error is a value that is not a colour.
fn color(entry: &ConfigEntry<'_>) -> Result<Result<String, BadColor>, CliError> {
    let value = entry.string()?;
    Ok(color::parse(value).ok_or_else(|| BadColor(value.to_string())))
}

/// Returns whether messages on standard error are coloured, by the setting `entry`. Without a
/// setting, they are coloured on a terminal.
///
/// # Errors
/// Fails if Git does not accept the value.
fn is_colored(entry: Option<ConfigEntry<'_>>, environment: &Environment) -> Result<bool, CliError> {
    let Some(entry) = entry else {
        return Ok(is_terminal(environment));
    };
    let value = entry.value.unwrap_or("true".into());
    if value.eq_ignore_ascii_case(b"always") {
        return Ok(true);
    }
    if value.eq_ignore_ascii_case(b"never") {
        return Ok(false);
    }
    let is_automatic = value.eq_ignore_ascii_case(b"auto") || entry.bool()?;
    Ok(is_automatic && is_terminal(environment))
}

/// Returns whether standard error is a terminal that supports colours.
fn is_terminal(environment: &Environment) -> bool {
    let is_dumb = environment.text("TERM").is_none_or(|term| term == "dumb");
    io::stderr().is_terminal() && !is_dumb
}

/// The words at the start of a server's lines that are coloured, with their escape sequences.
const WORDS: [(&str, &str); 4] = [
    ("hint", "\x1b[33m"),
    ("warning", "\x1b[1;33m"),
    ("success", "\x1b[1;32m"),
    ("error", "\x1b[1;31m"),
];

/// The colours of the words in a server's lines (`color.remote`).
#[derive(Debug, Default)]
pub(crate) struct RemoteWords {
    /// The words and their escape sequences; empty without colours.
    words: Vec<(&'static str, String)>,
    /// The errors in the settings.
    complaints: Vec<String>,
}

impl RemoteWords {
    /// Reads `color.remote` and `color.remote.WORD`. Malformed settings have no effect.
    pub(crate) fn read(config: &Config, environment: &Environment) -> Self {
        let is_colored = is_colored(Self::setting(config), environment).unwrap_or(false);
        let mut read = RemoteWords::default();
        for (word, sequence) in WORDS {
            let entry = config.entry_of(format!("color.remote.{word}"));
            let configured = entry.and_then(|entry| color(&entry).ok());
            let sequence = match configured {
                Some(Ok(configured)) => configured,
                Some(Err(bad)) => {
                    read.complaints.push(bad.to_string());
                    sequence.to_owned()
                }
                None => sequence.to_owned(),
            };
            if is_colored {
                read.words.push((word, sequence));
            }
        }
        read
    }

    /// Returns whether the settings have an error for which git ends at the first line of a server.
    pub(crate) fn are_malformed(config: &Config, environment: &Environment) -> bool {
        let is_bare = |key: &str| {
            config
                .entry_of(key)
                .is_some_and(|entry| entry.value.is_none())
        };
        is_colored(Self::setting(config), environment).is_err()
            || is_bare("color.remote")
            || WORDS
                .iter()
                .any(|(word, _)| is_bare(&format!("color.remote.{word}")))
    }

    fn setting(config: &Config) -> Option<ConfigEntry<'_>> {
        let entry = config.entry_of("color.remote");
        entry.or_else(|| config.entry_of("color.ui"))
    }

    /// Returns the errors in the settings on the first call, and none later.
    pub(crate) fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    /// Colours the word at the start of `text`, if that word has a colour.
    pub(crate) fn paint<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let spaces = text.len() - text.trim_start_matches([' ', '\t']).len();
        let (indent, rest) = text.split_at(spaces);
        for (word, sequence) in &self.words {
            let Some((start, after)) = rest.split_at_checked(word.len()) else {
                continue;
            };
            let goes_on = after.starts_with(|next: char| next.is_ascii_alphanumeric());
            if start.eq_ignore_ascii_case(word) && !goes_on {
                return Cow::Owned(format!("{indent}{sequence}{start}{RESET}{after}"));
            }
        }
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_at_the_start_are_coloured() {
        let words = RemoteWords {
            words: WORDS
                .iter()
                .map(|(word, sequence)| (*word, (*sequence).to_owned()))
                .collect(),
            complaints: Vec::new(),
        };
        for (text, expected) in [
            ("error: x", "\x1b[1;31merror\x1b[m: x"),
            ("\t Hint", "\t \x1b[33mHint\x1b[m"),
            ("WARNING\tx", "\x1b[1;33mWARNING\x1b[m\tx"),
            ("success!", "\x1b[1;32msuccess\x1b[m!"),
            ("errors", "errors"),
            ("an error", "an error"),
            ("hin", "hin"),
            ("", ""),
            ("erro\u{f6}", "erro\u{f6}"),
        ] {
            assert_eq!(words.paint(text), expected);
        }
    }
}
