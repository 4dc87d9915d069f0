//! Records of a log, and their representation as lines.

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::token;

/// The format of the lines of a log (`--log-format`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text for people: time, level and event, and then the fields as `name=value`.
    Human,
    /// An object of JSON.
    Json,
}

/// The severity of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// A normal event.
    Info,
    /// An event that an operator may have to examine.
    Warning,
    /// A fault, on which an operator has to act.
    Error,
}

impl LogLevel {
    fn name(self) -> &'static str {
        match self {
            LogLevel::Info => "info",
            LogLevel::Warning => "warning",
            LogLevel::Error => "error",
        }
    }
}

/// A record of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRecord {
    level: LogLevel,
    event: &'static str,
    fields: Vec<(&'static str, Value)>,
}

impl EventRecord {
    /// Creates a record without fields.
    pub fn new(level: LogLevel, event: &'static str) -> Self {
        EventRecord {
            level,
            event,
            fields: Vec::new(),
        }
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Returns the record, with the current time in UTC (RFC 3339), as a line without its end. Secrets of
    /// tokens are replaced, and characters that control terminals are escaped.
    pub fn line(&self, format: LogFormat) -> String {
        let time = format!("{:.3}", Timestamp::now());
        let line = match format {
            LogFormat::Json => self.json(time),
            LogFormat::Human => self.text(&time),
        };
        printable(&token::redacted(&line))
    }

    fn json(&self, time: String) -> String {
        let mut object = Map::new();
        object.insert("time".to_owned(), time.into());
        object.insert("level".to_owned(), self.level.name().into());
        object.insert("event".to_owned(), self.event.into());
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), value.clone());
        }
        Value::Object(object).to_string()
    }

    fn text(&self, time: &str) -> String {
        let mut line = format!("{time} {} {}:", self.level.name(), self.event);
        for (name, value) in &self.fields {
            match value {
                Value::Object(parts) => {
                    for (part, value) in parts {
                        line.push_str(&format!(" {name}.{part}={}", shown(value)));
                    }
                }
                value => line.push_str(&format!(" {name}={}", shown(value))),
            }
        }
        line
    }
}

/// Returns a value as text, in quotes if it is not a single word.
fn shown(value: &Value) -> String {
    let is_word = |text: &String| {
        let is_plain = |found: char| found.is_ascii_graphic() && !"\"\\=".contains(found);
        !text.is_empty() && text.chars().all(is_plain)
    };
    match value {
        Value::String(text) if is_word(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Escapes characters that control terminals, or change the direction of text.
fn printable(line: &str) -> String {
    let is_special = |character: char| {
        let marks = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'];
        character.is_control()
            || marks.contains(&character)
            || ('\u{202a}'..='\u{202e}').contains(&character)
            || ('\u{2066}'..='\u{2069}').contains(&character)
    };
    let mut text = String::with_capacity(line.len());
    for character in line.chars() {
        match is_special(character) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => text.push(character),
        }
    }
    text
}
