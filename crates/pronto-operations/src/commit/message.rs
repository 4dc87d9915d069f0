//! Cleanup of commit messages.

use bstr::{BStr, BString, ByteSlice};

/// What is taken out (`commit.cleanup`, `--cleanup`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleanup {
    /// Nothing.
    Verbatim,
    /// Empty lines at the start and the end, all but one in a row, and white space at the ends of
    /// lines.
    #[default]
    Whitespace,
    /// That, and lines that start with `#`.
    Strip,
}

impl Cleanup {
    /// Returns the cleanup that Git calls `name`, for a message that is not edited.
    pub fn named(name: &BStr) -> Option<Self> {
        match name.as_bytes() {
            b"verbatim" => Some(Cleanup::Verbatim),
            b"whitespace" | b"default" => Some(Cleanup::Whitespace),
            b"strip" => Some(Cleanup::Strip),
            _ => None,
        }
    }
}

/// `text` without white space at the ends of lines, empty lines at the start and the end, and all but
/// one of several empty lines in a row; with a line feed at its end if anything is left. Lines that
/// start with `#` go too if `comments` is set.
pub fn stripped(text: &BStr, comments: bool) -> BString {
    let mut out = BString::default();
    let mut empty = 0;
    for line in text.split(|byte| *byte == b'\n') {
        if comments && line.first() == Some(&b'#') {
            continue;
        }
        // The white space of C's "isspace" in Git: no vertical tab, no form feed.
        let end = line.iter().rposition(|byte| !b" \t\r\n".contains(byte));
        let Some(end) = end else {
            empty += 1;
            continue;
        };
        if empty > 0 && !out.is_empty() {
            out.push(b'\n');
        }
        empty = 0;
        out.extend_from_slice(&line[..=end]);
        out.push(b'\n');
    }
    out
}

/// `text` after `cleanup`.
pub fn cleaned(text: &BStr, cleanup: Cleanup) -> BString {
    match cleanup {
        Cleanup::Verbatim => text.to_owned(),
        Cleanup::Whitespace => stripped(text, false),
        Cleanup::Strip => stripped(text, true),
    }
}

/// Whether a message says nothing: white space and lines that sign off only. One that is taken
/// verbatim says something unless it has no bytes.
pub fn is_empty(text: &BStr, cleanup: Cleanup) -> bool {
    if cleanup == Cleanup::Verbatim && !text.is_empty() {
        return false;
    }
    text.lines()
        .all(|line| line.starts_with(b"Signed-off-by: ") || line.trim_ascii().is_empty())
}

/// Several messages as the paragraphs of one.
pub fn joined<'a>(messages: impl IntoIterator<Item = &'a BStr>) -> BString {
    let mut out = BString::default();
    for message in messages {
        if !out.is_empty() {
            out.push(b'\n');
        }
        out.extend_from_slice(message);
        if !out.is_empty() && out.last() != Some(&b'\n') {
            out.push(b'\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stripped_is_what_git_strips() {
        let strip = |text: &str| stripped(text.into(), false).to_string();
        assert_eq!(strip("\n\n a \t\n\n\n\nb\n\n"), " a\n\nb\n");
        assert_eq!(strip(" \n\t\n"), "");
        assert_eq!(strip("a"), "a\n");
        assert_eq!(stripped("#x\na\n#y\n\n# z\nb".into(), true), "a\n\nb\n");
    }

    #[test]
    fn messages_become_paragraphs() {
        let messages = ["one", "two\n", "", "three"].map(BStr::new);
        assert_eq!(joined(messages), "one\n\ntwo\n\n\nthree\n");
    }
}
