//! Messages of commits and tags: the subject, and the cleanup of a message that a user wrote.

use bstr::{BStr, BString, ByteSlice};

/// The cleanup mode of a message (`commit.cleanup`, `--cleanup`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cleanup {
    /// Leave the message unchanged (`verbatim`).
    Verbatim,
    /// Remove leading and trailing empty lines, trailing white space, and all but one of
    /// consecutive empty lines (`whitespace`).
    #[default]
    Whitespace,
    /// Clean up like `Whitespace`, and remove lines that start with `#` (`strip`).
    Strip,
}

impl Cleanup {
    /// Parses a value of `--cleanup` or `commit.cleanup`, for a message that is not edited. Returns
    /// `None` for an unknown value.
    pub fn named(name: &BStr) -> Option<Self> {
        match name.as_bytes() {
            b"verbatim" => Some(Cleanup::Verbatim),
            b"whitespace" | b"default" => Some(Cleanup::Whitespace),
            b"strip" => Some(Cleanup::Strip),
            _ => None,
        }
    }
}

/// Removes trailing white space, leading and trailing empty lines, and all but one of consecutive
/// empty lines, like `git stripspace`. `comments` also removes lines that start with `#`
/// (`--strip-comments`). The result ends with a line feed unless it is empty.
pub fn stripped(text: &BStr, comments: bool) -> BString {
    let mut out = BString::default();
    let mut empty = 0;
    for line in text.split(|byte| *byte == b'\n') {
        if comments && line.first() == Some(&b'#') {
            continue;
        }
        // Like Git's `isspace`, which excludes the vertical tab and the form feed.
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

/// Cleans up a message with the mode `cleanup` (`--cleanup`).
pub fn cleaned(text: &BStr, cleanup: Cleanup) -> BString {
    match cleanup {
        Cleanup::Verbatim => text.to_owned(),
        Cleanup::Whitespace => stripped(text, false),
        Cleanup::Strip => stripped(text, true),
    }
}

/// Returns whether a message counts as empty, so that `git commit` aborts. Such a message has only
/// white space and `Signed-off-by:` lines, or with [`Cleanup::Verbatim`] no bytes.
pub fn is_empty(text: &BStr, cleanup: Cleanup) -> bool {
    if cleanup == Cleanup::Verbatim && !text.is_empty() {
        return false;
    }
    text.lines()
        .all(|line| line.starts_with(b"Signed-off-by: ") || line.trim_ascii().is_empty())
}

/// Returns the subject of a message: its first paragraph on one line (`%s`).
pub fn subject(message: &BStr) -> BString {
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let paragraph = message.split(|byte| *byte == b'\n').skip_while(is_blank);
    let lines: Vec<&[u8]> = paragraph
        .take_while(|line| !is_blank(line))
        .map(<[u8]>::trim_ascii_end)
        .collect();
    lines.join(&b' ').into()
}

/// Joins several messages (repeated `-m`) as paragraphs of one message.
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
    fn modes_of_cleanup_have_the_names_of_git() {
        for (name, expected) in [
            ("verbatim", Some(Cleanup::Verbatim)),
            ("whitespace", Some(Cleanup::Whitespace)),
            ("default", Some(Cleanup::Whitespace)),
            ("strip", Some(Cleanup::Strip)),
            ("scissors", None),
            ("", None),
        ] {
            assert_eq!(Cleanup::named(name.into()), expected, "{name}");
        }
    }

    #[test]
    fn messages_without_text_of_their_own_are_empty() {
        for (text, whitespace, verbatim) in [
            ("", true, true),
            (" \n\t\n", true, false),
            ("Signed-off-by: a <a@x>\n\n", true, false),
            ("\nSigned-off-by: a <a@x>\ntext\n", false, false),
            ("Signed-off-by:\n", false, false),
        ] {
            assert_eq!(
                is_empty(text.into(), Cleanup::Whitespace),
                whitespace,
                "{text:?}"
            );
            assert_eq!(
                is_empty(text.into(), Cleanup::Strip),
                whitespace,
                "{text:?}"
            );
            assert_eq!(
                is_empty(text.into(), Cleanup::Verbatim),
                verbatim,
                "{text:?}"
            );
        }
    }

    #[test]
    fn messages_become_paragraphs() {
        let messages = ["one", "two\n", "", "three"].map(BStr::new);
        assert_eq!(joined(messages), "one\n\ntwo\n\n\nthree\n");
    }
}
