//! Writes JSON objects on one line.

use std::fmt::Write as _;
use std::time::Duration;

use crate::clock;

/// A JSON object that is being written. The members are in the order of the calls.
#[derive(Debug)]
pub(crate) struct JsonObject(String);

impl JsonObject {
    pub(crate) fn new() -> Self {
        JsonObject("{".to_owned())
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        string(key, &mut self.0);
        self.0.push(':');
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        string(value, &mut self.0);
    }

    pub(crate) fn number(&mut self, key: &str, value: i64) {
        self.key(key);
        // Writing to a string does not fail.
        let _ = write!(self.0, "{value}");
    }

    pub(crate) fn seconds(&mut self, key: &str, value: Duration) {
        self.key(key);
        self.0.push_str(&clock::seconds(value));
    }

    pub(crate) fn boolean(&mut self, key: &str, value: bool) {
        self.key(key);
        self.0.push_str(if value { "true" } else { "false" });
    }

    pub(crate) fn array<S: AsRef<str>>(&mut self, key: &str, values: &[S]) {
        self.key(key);
        self.0.push('[');
        for (at, value) in values.iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            string(value.as_ref(), &mut self.0);
        }
        self.0.push(']');
    }

    /// Adds `json` without escaping it.
    pub(crate) fn verbatim(&mut self, key: &str, json: &str) {
        self.key(key);
        self.0.push_str(json);
    }

    pub(crate) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other if u32::from(other) < 0x20 => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(other));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_in_order_and_escaped() {
        let mut object = JsonObject::new();
        object.text("a", "\"\\\n\u{1}é");
        object.number("b", -1);
        object.seconds("c", Duration::from_micros(1_000_042));
        object.array("d", &["x", "y"]);
        object.boolean("e", true);
        let expected = r#"{"a":"\"\\\n\u0001é","b":-1,"c":1.000042,"d":["x","y"],"e":true}"#;
        assert_eq!(object.finish(), expected);
    }
}
