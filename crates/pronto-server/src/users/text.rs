//! The text of the file of users, parsed and written user by user.
//!
//! The syntax tree of a TOML document uses a hundred times as much memory as its text. Therefore
//! each user is parsed as a separate document, from its line `[[user]]` to the next such line, and
//! only the tree of one user is in memory.

use std::ops::Range;

use serde::Serialize;

use super::{User, Users};
use crate::{Error, ErrorKind, Result};

/// The largest size in bytes of the text of a user.
pub(crate) const LARGEST_USER_BYTES: usize = 1 << 20;

/// The largest size in bytes of a file that is also parsed as a whole, if a part of it is malformed
/// on its own.
const WHOLE_BYTES: usize = 64 << 10;

/// The first line of a written file.
const HEAD: &str = "# Managed by \"pronto serve user\" and \"pronto serve token\".\n";

/// Parses at most `most` users, in the order of the text. Their names, tokens and keys are not
/// checked.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if the text is malformed, contains more than `most` users, or
/// more than [`LARGEST_USER_BYTES`] for a user.
pub(super) fn parse(text: &str, most: usize) -> Result<Vec<User>> {
    match parse_parts(text, most) {
        // A value may contain a line that looks like the start of a user. Parsing the whole text
        // follows the TOML rules, and gives errors the right line numbers.
        Err(_) if text.len() <= WHOLE_BYTES => parse_part(text, 0..text.len()),
        result => result,
    }
}

fn parse_parts(text: &str, most: usize) -> Result<Vec<User>> {
    let mut users = Vec::new();
    let mut start = 0;
    for end in starts(text).chain([text.len()]) {
        let part = start..end;
        if part.len() > LARGEST_USER_BYTES {
            let message = format!("the entry of a user is longer than {LARGEST_USER_BYTES} bytes");
            return Err(malformed(text, start, &message));
        }
        let at = start;
        start = end;
        let found = parse_part(text, part)?;
        let is_list = at == 0 && !found.is_empty() && !text.lines().next().is_some_and(is_start);
        if is_list && end < text.len() {
            return Err(malformed(
                text,
                end,
                "the list of users is complete already",
            ));
        }
        users.extend(found);
        if users.len() > most {
            return Err(malformed(
                text,
                at,
                &format!("there are more than {most} users"),
            ));
        }
    }
    Ok(users)
}

/// Returns the offsets of the lines that start users, except for offset 0.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        (is_start(line) && start > 0).then_some(start)
    })
}

/// Returns whether a line starts a user: `[[user]]`, in any TOML spelling without escapes.
fn is_start(line: &str) -> bool {
    let inner = line.trim_start().strip_prefix("[[");
    let Some((name, _)) = inner.and_then(|inner| inner.split_once("]]")) else {
        return false;
    };
    matches!(name.trim(), "user" | "\"user\"" | "'user'")
}

/// Parses a part of the text.
fn parse_part(text: &str, part: Range<usize>) -> Result<Vec<User>> {
    let start = part.start;
    let parsed: Result<Users, _> = toml::from_str(&text[part]);
    match parsed {
        Ok(users) => Ok(users.users),
        Err(error) => {
            let at = start + error.span().map_or(0, |span| span.start);
            Err(malformed(text, at, &error.message().replace('\n', " ")))
        }
    }
}

fn malformed(text: &str, at: usize, message: &str) -> Error {
    let newlines = text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let line = newlines + 1;
    Error::new(ErrorKind::Config, format!("line {line}: {message}"))
}

/// The document of a single user.
#[derive(Serialize)]
struct One<'a> {
    user: [&'a User; 1],
}

/// Returns the text of a file with these users.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if a user cannot be written.
pub(super) fn write(users: &[User]) -> Result<String> {
    let mut text = HEAD.to_owned();
    for user in users {
        let one = toml::to_string(&One { user: [user] });
        let one = one.map_err(|error| {
            Error::new(ErrorKind::Config, "cannot encode the users file").because(error)
        })?;
        text.push('\n');
        text.push_str(&one);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Result<Vec<String>> {
        let users = parse(text, 4)?;
        Ok(users.into_iter().map(|user| user.name).collect())
    }

    /// Appends lines after the users, so that the text exceeds the size that is parsed as a whole.
    fn padded(text: &str) -> String {
        format!("{text}\n{}", "# a comment\n".repeat(WHOLE_BYTES / 12 + 1))
    }

    #[test]
    fn parts_say_what_the_whole_says() {
        for text in [
            "",
            "# nothing\n",
            "[[user]]\nname = \"a\"",
            "\u{20}[[ user ]] # first\r\nname = \"a\"\n\t[['user']]\nname = 'b'\n[[\"user\"]]\nname = \"c\"\n",
            "[[user]]\nname = \"a\"\n[[user.token]]\nsha256 = \"x\"\n[[user.key]]\npublic = \"y\"\n[[user]]\nname = \"b\"",
            "user = [{name = \"a\"}, {name = \"b\"}]",
            "user = [{name = \"a\"}]\n[[user]]\nname = \"b\"",
            "[user]\nname = \"a\"\n[[user]]\nname = \"b\"",
            "[[user]]\nname = \"a\"\n[user]\nname = \"b\"",
            "[[user.token]]\nsha256 = \"x\"\n[[user]]\nname = \"a\"",
            "[[user]]\nname = \"a\"\nuser = 1\n[[user]]\nname = \"b\"",
            "x = 1\n[[user]]\nname = \"a\"",
            "[[user]]\nname = \"a\"\n[[users]]\nname = \"b\"",
            "[[user]]\n[[user]]\nname = \"a\"",
        ] {
            let whole: Option<Users> = toml::from_str(text).ok();
            let whole = whole.map(|users| users.users);
            assert_eq!(parse_parts(text, 4).ok(), whole, "{text:?}");
            assert_eq!(parse(&padded(text), 4).ok(), whole, "{text:?}");
        }
    }

    #[test]
    fn a_value_that_looks_like_a_user_is_none() {
        let text = "[[user]]\nname = \"\"\"a\n[[user]]\nb\"\"\"\n";
        assert_eq!(names(text).expect("TOML"), ["a\n[[user]]\nb"]);
        // A text that is not parsed as a whole is refused, and never parsed as other users.
        names(&padded(text)).expect_err("too long");
    }

    #[test]
    fn what_takes_much_memory_is_refused() {
        let user = |name: &str| format!("[[user]]\nname = \"{name}\"\n");
        let four: String = ["a", "b", "c", "d"].map(user).concat();
        assert_eq!(names(&four).expect("room"), ["a", "b", "c", "d"]);
        let error = names(&padded(&format!("{four}{}", user("e")))).expect_err("no room");
        assert_eq!(error.message(), "line 9: there are more than 4 users");
        let token = "[[user.token]]\nsha256 = \"x\"\n";
        let many = token.repeat(LARGEST_USER_BYTES / token.len());
        let error = names(&format!("{}{many}", user("a"))).expect_err("too long");
        let expected =
            format!("line 1: the entry of a user is longer than {LARGEST_USER_BYTES} bytes");
        assert_eq!(error.message(), expected);
        let inline = format!("user = [{}]", "{name = \"a\"}, ".repeat(100_000));
        names(&inline).expect_err("too long");
    }

    #[test]
    fn errors_have_their_lines() {
        let text = "[[user]]\nname = \"a\"\n[[user]]\nname = 1\n";
        for text in [text.to_owned(), padded(text)] {
            let error = names(&text).expect_err("no name");
            assert!(error.message().starts_with("line 4: "), "{error}");
        }
    }
}
