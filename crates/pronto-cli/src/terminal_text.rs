//! The only path of text to standard error. It removes control characters.
//!
//! Names of refs and files, commit messages and messages of a server can contain escape sequences
//! that change the window title, hide output or answer a query of the terminal in the user's name.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::colors::Paint;

/// Returns `text` with each control character replaced by `?`, as git does in its messages.
/// Newlines and tabs stay. Does not allocate if nothing is replaced.
pub(crate) fn sanitized(text: &str) -> Cow<'_, str> {
    let is_kept = |each: char| !each.is_control() || matches!(each, '\n' | '\t');
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let replaced = text
        .chars()
        .map(|each| if is_kept(each) { each } else { '?' });
    Cow::Owned(replaced.collect())
}

/// Does the same as [`sanitized`] for bytes that go to standard output: bytes that are not UTF-8
/// stay.
pub(crate) fn sanitized_bytes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        out.extend_from_slice(sanitized(chunk.valid()).as_bytes());
        let replace = |&byte: &u8| {
            if matches!(byte, 0x80..=0x9f) {
                b'?'
            } else {
                byte
            }
        };
        out.extend(chunk.invalid().iter().map(replace));
    }
    out
}

/// Does the same as [`sanitized`] for a line that may be coloured: sequences that only select
/// colours stay.
pub(crate) fn sanitized_but_colours(line: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("\x1b[") {
        let parameters = &rest[at + 2..];
        let end = parameters.find(|each: char| !matches!(each, '0'..='9' | ';' | ':'));
        let length = match end {
            Some(end) if parameters[end..].starts_with('m') => end + 3,
            _ => 0,
        };
        out.push_str(&sanitized(&rest[..at]));
        match length {
            0 => out.push('?'),
            _ => out.push_str(&rest[at..at + length]),
        }
        rest = &rest[at + length.max(1)..];
    }
    if out.is_empty() {
        return sanitized(rest);
    }
    out.push_str(&sanitized(rest));
    Cow::Owned(out)
}

/// Writes `text` to standard error, sanitized. A closed standard error is not an error.
pub(crate) fn write_to_stderr(text: &str) {
    let _ = io::stderr().write_all(sanitized(text).as_bytes());
}

/// Does the same as [`write_to_stderr`] for `text` between the escape sequences of `paint`.
pub(crate) fn write_painted(paint: &Paint, text: &str, end: &str) {
    let text = sanitized(text);
    let Paint { start, end: reset } = paint;
    let _ = io::stderr().write_all(format!("{start}{text}{reset}{end}").as_bytes());
}

/// Writes `text`, which is sanitized but for its colours, to standard error.
pub(crate) fn write_colored(text: &str) {
    let _ = io::stderr().write_all(sanitized_but_colours(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_question_marks() {
        assert_eq!(sanitized("a\tb\nc"), "a\tb\nc");
        assert_eq!(sanitized("a\x1b]0;b\x07\r\x7fc\u{9b}d"), "a?]0;b???c?d");
        assert!(matches!(sanitized("größe"), Cow::Borrowed(_)));
    }

    #[test]
    fn bytes_that_are_not_text_stay() {
        assert_eq!(sanitized_bytes(b"a\x1b\xe4\x9b\xff"), b"a?\xe4?\xff");
        assert_eq!(sanitized_bytes("ä\u{9b}".as_bytes()), "ä?".as_bytes());
    }

    #[test]
    fn colours_may_stay() {
        let text = "\x1b[31mred\x1b[m\x1b[2J\x1b]0;x\x07";
        assert_eq!(sanitized_but_colours(text), "\x1b[31mred\x1b[m?[2J?]0;x?");
        assert_eq!(sanitized_but_colours("plain\r"), "plain?");
    }
}
