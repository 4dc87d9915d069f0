//! Searches in short byte strings: names, keys, lines of small files.
//!
//! Search libraries that use vector instructions first query the processor's features (`cpuid`). In
//! a virtual machine each query takes microseconds, and there are about ten: more time than a short
//! search takes. For large texts these libraries are faster.

/// Searches in byte strings, byte by byte.
pub trait Short {
    /// Returns the position of the first `byte`.
    fn position_of(&self, byte: u8) -> Option<usize>;

    /// Returns the position of the last `byte`.
    fn last_position_of(&self, byte: u8) -> Option<usize>;

    /// Returns the position of the first occurrence of `text`.
    fn position_of_text(&self, text: &[u8]) -> Option<usize>;

    /// Returns the positions of all occurrences of `text`, which must not be empty.
    fn positions_of_text(&self, text: &[u8]) -> impl Iterator<Item = usize>;

    /// Returns the parts before and after the first `byte`.
    fn split_once_at(&self, byte: u8) -> Option<(&[u8], &[u8])>;

    /// Returns the parts between all occurrences of `byte`: the whole string if there is none.
    fn split_at_each(&self, byte: u8) -> impl DoubleEndedIterator<Item = &[u8]> + Clone;

    /// Returns the lines, without their line endings (LF or CR LF).
    fn each_line(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone;
}

impl Short for [u8] {
    fn position_of(&self, byte: u8) -> Option<usize> {
        self.iter().position(|other| *other == byte)
    }

    fn last_position_of(&self, byte: u8) -> Option<usize> {
        self.iter().rposition(|other| *other == byte)
    }

    fn position_of_text(&self, text: &[u8]) -> Option<usize> {
        match text.is_empty() {
            true => Some(0),
            false => self.windows(text.len()).position(|part| part == text),
        }
    }

    fn positions_of_text(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let parts = self.windows(text.len().max(1)).enumerate();
        parts.filter_map(move |(at, part)| (part == text).then_some(at))
    }

    fn split_once_at(&self, byte: u8) -> Option<(&[u8], &[u8])> {
        let at = self.position_of(byte)?;
        Some((&self[..at], &self[at + 1..]))
    }

    fn split_at_each(&self, byte: u8) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.split(move |other| *other == byte)
    }

    fn each_line(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        self.split_inclusive(|byte| *byte == b'\n').map(without_end)
    }
}

/// Removes the line ending.
fn without_end(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_from_both_ends() {
        for (text, first, last) in [
            ("", None, None),
            ("a", None, None),
            ("/", Some(0), Some(0)),
            ("a/b/", Some(1), Some(3)),
        ] {
            assert_eq!(text.as_bytes().position_of(b'/'), first);
            assert_eq!(text.as_bytes().last_position_of(b'/'), last);
        }
    }

    #[test]
    fn texts_are_found_as_in_strings() {
        for text in ["", "a", "a..b..c", "a...", "."] {
            for part in ["", "..", "a", "a/b", "a...x"] {
                assert_eq!(
                    text.as_bytes().position_of_text(part.as_bytes()),
                    text.find(part)
                );
            }
        }
    }

    #[test]
    fn parts_and_lines_are_those_of_strings() {
        for text in [
            "",
            "a",
            "/",
            "a//b/",
            "\n",
            "a\r\nb",
            "a\r\n\r\n",
            "a\r",
            "a\n\nb\n",
        ] {
            let parts = text.as_bytes().split_at_each(b'/');
            assert!(parts.eq(text.split('/').map(str::as_bytes)), "{text:?}");
            let lines = text.as_bytes().each_line();
            assert!(lines.eq(text.lines().map(str::as_bytes)), "{text:?}");
        }
    }
}
