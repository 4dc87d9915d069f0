//! Words of a command line as they are typed in bash.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Removes quotes and backslashes from `word`, whose last quote may be open, and replaces `~/` at its
/// beginning by the directory `home`. Variables and substitutions are not expanded.
pub(super) fn unquoted(word: &OsStr, home: Option<&OsStr>) -> OsString {
    let bytes = word.as_bytes();
    let (mut out, rest) = match (home, bytes.strip_prefix(b"~/")) {
        (Some(home), Some(rest)) => ([home.as_bytes(), b"/"].concat(), rest),
        _ => (Vec::with_capacity(bytes.len()), bytes),
    };
    let mut quote = None;
    let mut letters = rest.iter().copied().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (None, b'\'' | b'"') => quote = Some(letter),
            (Some(open), _) if open == letter => quote = None,
            (None, b'\\') => out.extend(letters.next()),
            (Some(b'"'), b'\\') => match letters.peek() {
                Some(b'"' | b'\\' | b'$' | b'`') => out.extend(letters.next()),
                _ => out.push(letter),
            },
            _ => out.push(letter),
        }
    }
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_removed_as_by_the_shell() {
        for (typed, meant) in [
            (r"a\ b", "a b"),
            (r#""a b"#, "a b"),
            (r#"'a "b"' c"#, r#"a "b" c"#),
            (r#""a\"b\c""#, r#"a"b\c"#),
            ("'", ""),
            ("\\", ""),
            ("~/x", "/home/x"),
            ("~x", "~x"),
        ] {
            let found = unquoted(OsStr::new(typed), Some(OsStr::new("/home")));
            assert_eq!(found, meant, "{typed}");
        }
    }
}
