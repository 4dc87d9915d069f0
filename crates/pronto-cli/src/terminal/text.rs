//! Removes control characters from text. This module is the only path of text to standard error,
//! and of all bytes to a terminal.
//!
//! Untrusted bytes that Git prints unchanged are unchanged in a file or a pipe, where a script
//! reads them. On a terminal, names of refs and files, commit messages and messages of a server may
//! contain escape sequences that change the window title, hide output, or answer a query of the
//! terminal in the user's name.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};

use crate::terminal::colors::Paint;

/// Returns `text` with each control character except newlines and tabs replaced by `?`, as git does
/// in its messages. Does not allocate if nothing is replaced.
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

/// Does the same as [`sanitized`] for bytes on standard output. Bytes that are not UTF-8 are kept.
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

/// Returns bytes of standard output in the form for a terminal. Sequences that select colours, CRLF
/// line ends, and NUL bytes after names (`-z`) are kept.
pub(crate) fn for_terminal(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        clean(&rest[..at], &mut out);
        out.extend_from_slice(b"\r\n");
        rest = &rest[at + 2..];
    }
    clean(rest, &mut out);
    out
}

fn clean(bytes: &[u8], out: &mut Vec<u8>) {
    for (at, name) in bytes.split(|byte| *byte == 0).enumerate() {
        if at > 0 {
            out.push(0);
        }
        for chunk in name.utf8_chunks() {
            out.extend_from_slice(sanitized_but_colours(chunk.valid()).as_bytes());
            out.extend_from_slice(&sanitized_bytes(chunk.invalid()));
        }
    }
}

/// Does the same as [`sanitized`] for a line that may be coloured: sequences that only select
/// colours are kept.
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

/// Sanitizes `text` and writes it to standard error. A closed standard error is not an error.
pub(crate) fn write_to_stderr(text: &str) {
    let _ = io::stderr().write_all(sanitized(text).as_bytes());
}

/// Writes untrusted bytes to standard error, sanitized if that is a terminal. Git writes the bytes
/// unchanged.
///
/// # Errors
/// Fails if standard error cannot be written.
pub(crate) fn write_foreign_to_stderr(bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr();
    match stderr.is_terminal() {
        true => stderr.write_all(&sanitized_bytes(bytes)),
        false => stderr.write_all(bytes),
    }
}

/// Writes the output of a child process to standard error. If that is a terminal, the output is
/// sanitized, except for colours and sequences that replace lines.
///
/// # Errors
/// Fails if standard error cannot be written.
pub(crate) fn write_output_of_child(bytes: &[u8]) -> io::Result<()> {
    let mut stderr = io::stderr();
    if !stderr.is_terminal() {
        return stderr.write_all(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len());
    for (at, line) in bytes.split(|byte| *byte == b'\r').enumerate() {
        if at > 0 {
            out.push(b'\r');
        }
        // The sequence clears the rest of a line of progress.
        let end = line.strip_suffix(b"\x1b[K").unwrap_or(line);
        out.extend_from_slice(&for_terminal(end));
        out.extend_from_slice(&line[end.len()..]);
    }
    stderr.write_all(&out)
}

/// Does the same as [`write_to_stderr`] for `text` between the escape sequences of `paint`.
pub(crate) fn write_painted(paint: &Paint, text: &str, end: &str) {
    let text = sanitized(text);
    let Paint { start, end: reset } = paint;
    let _ = io::stderr().write_all(format!("{start}{text}{reset}{end}").as_bytes());
}

/// Sanitizes `text`, except for its colours, and writes it to standard error.
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
    fn a_terminal_gets_colours_and_ends_of_lines_and_names() {
        let shown = |text: &[u8]| String::from_utf8_lossy(&for_terminal(text)).into_owned();
        assert_eq!(shown(b"a\r\nb\0c\td\n"), "a\r\nb\0c\td\n");
        assert_eq!(
            shown(b"\x1b[1;31mred\x1b[m\x1b[2J\x1b]0;x\x07"),
            "\x1b[1;31mred\x1b[m?[2J?]0;x?"
        );
        assert_eq!(shown(b"hidden\rshown\x08\x0c"), "hidden?shown??");
        assert_eq!(for_terminal(b"\xe4\x9b\xc2\x9b\x1b"), b"\xe4???");
    }

    /// Only these files write to standard streams without the buffer: protocol data, and text that
    /// they sanitize.
    #[test]
    fn no_other_file_writes_to_a_standard_stream() {
        const ALLOWED: [&str; 4] = [
            "terminal/text.rs",
            // The server prints its events in lines of its own.
            "commands/serve/listen.rs",
            "commands/serve/log.rs",
            // The file writes one NUL byte.
            "commands/index_pack/input.rs",
        ];
        let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut directories = vec![top.clone()];
        let mut found = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).expect("the sources are there") {
                let path = entry.expect("the sources are there").path();
                if path.is_dir() {
                    directories.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).expect("text");
                let name = path.strip_prefix(&top).expect("it is below");
                let writes = [
                    "stderr().write",
                    "stdout().write",
                    "stderr().lock()",
                    "stdout().lock()",
                ];
                let is_allowed = ALLOWED.iter().any(|allowed| name.ends_with(allowed));
                if !is_allowed && writes.iter().any(|write| text.contains(write)) {
                    found.push(name.to_owned());
                }
            }
        }
        assert!(found.is_empty(), "use terminal::text: {found:?}");
    }

    #[test]
    fn colours_may_stay() {
        let text = "\x1b[31mred\x1b[m\x1b[2J\x1b]0;x\x07";
        assert_eq!(sanitized_but_colours(text), "\x1b[31mred\x1b[m?[2J?]0;x?");
        assert_eq!(sanitized_but_colours("plain\r"), "plain?");
    }
}
