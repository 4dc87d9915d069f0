//! Searches in short byte strings: names, keys, lines of small files.
//!
//! Libraries that search with the vectors of the processor ask it first which it has (`cpuid`). In a virtual machine each
//! such question takes microseconds, and there are ten of them: more than a small call searches. For large texts the
//! libraries are faster.

/// Searches for bytes, one after the other.
pub trait Short {
    /// Returns where `byte` is for the first time.
    fn position_of(&self, byte: u8) -> Option<usize>;

    /// Returns where `byte` is for the last time.
    fn last_position_of(&self, byte: u8) -> Option<usize>;

    /// Returns where `text` begins for the first time.
    fn position_of_text(&self, text: &[u8]) -> Option<usize>;

    /// Returns all places where `text`, which is not empty, begins.
    fn positions_of_text(&self, text: &[u8]) -> impl Iterator<Item = usize>;

    /// Returns the parts before and after the first `byte`.
    fn split_once_at(&self, byte: u8) -> Option<(&[u8], &[u8])>;

    /// Returns the parts between all `byte`s: one if there is none.
    fn split_at_each(&self, byte: u8) -> impl DoubleEndedIterator<Item = &[u8]> + Clone;

    /// Returns the lines, without their ends (LF or CR LF).
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

/// Returns a line without its end.
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
