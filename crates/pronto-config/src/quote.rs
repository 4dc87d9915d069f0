//! Quotes text for the shell and for lines of output, as Git does.

use bstr::{BStr, BString};

pub use pronto_io::shell::quote_into as shell_quote_into;

/// Parses a quoted word at the front of `text`. Returns the word and the rest of `text`, or `None`
/// if the word is not quoted as by [`shell_quote_into`].
pub fn shell_unquote_step(text: &[u8]) -> Option<(BString, &[u8])> {
    let mut rest = text.strip_prefix(b"'")?;
    let mut word = Vec::new();
    loop {
        let end = rest.iter().position(|&byte| byte == b'\'')?;
        word.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', escaped @ (b'\'' | b'!'), b'\'', tail @ ..] => {
                word.push(*escaped);
                rest = tail;
            }
            _ => return Some((word.into(), rest)),
        }
    }
}

/// Splits a command line into words without a shell, as Git does: at white space, with quotes and
/// backslashes. Returns `None` if a quote or a backslash is not terminated.
pub fn split_words(line: &[u8]) -> Option<Vec<BString>> {
    let mut words = vec![BString::default()];
    let mut quoted: Option<u8> = None;
    let mut bytes = line.trim_ascii_end().iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let word = words.last_mut()?;
        match (byte, quoted) {
            (b' ' | b'\t' | b'\n' | b'\r', None) => {
                while bytes.next_if(u8::is_ascii_whitespace).is_some() {}
                words.push(BString::default());
            }
            (b'\'' | b'"', None) => quoted = Some(byte),
            (byte, Some(quote)) if byte == quote => quoted = None,
            (b'\\', None | Some(b'"')) => word.push(bytes.next()?),
            _ => word.push(byte),
        }
    }
    quoted.is_none().then_some(words)
}

/// Returns whether `path` must be quoted in a line of output. With `all` (`core.quotePath`), bytes
/// above 0x7f must be quoted, too.
pub fn needs_c_quoting(path: &[u8], all: bool) -> bool {
    path.iter().any(|&byte| must_escape(byte, all))
}

/// Appends `path`, in double quotes and with C escapes if it must be quoted.
pub fn c_quote_into(path: &[u8], all: bool, out: &mut Vec<u8>) {
    if !needs_c_quoting(path, all) {
        out.extend_from_slice(path);
        return;
    }
    out.push(b'"');
    for &byte in path {
        if !must_escape(byte, all) {
            out.push(byte);
            continue;
        }
        out.push(b'\\');
        match byte {
            0x07 => out.push(b'a'),
            0x08 => out.push(b'b'),
            b'\t' => out.push(b't'),
            b'\n' => out.push(b'n'),
            0x0b => out.push(b'v'),
            0x0c => out.push(b'f'),
            b'\r' => out.push(b'r'),
            b'"' | b'\\' => out.push(byte),
            _ => out.extend([byte >> 6, (byte >> 3) & 7, byte & 7].map(|digit| digit + b'0')),
        }
    }
    out.push(b'"');
}

/// Returns `path` as [`c_quote_into`] writes it.
pub fn c_quote(path: &BStr, all: bool) -> BString {
    let mut out = Vec::with_capacity(path.len() + 2);
    c_quote_into(path, all, &mut out);
    out.into()
}

/// Removes the C-style quoting of `line`. Returns `None` if `line` is not enclosed in double
/// quotes, or if an escape is malformed.
pub fn c_unquote(line: &[u8]) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix(b"\"")?.strip_suffix(b"\"")?.iter();
    let mut out = Vec::with_capacity(line.len());
    while let Some(&byte) = rest.next() {
        if byte == b'"' {
            return None;
        }
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match *rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            byte @ (b'"' | b'\\') => byte,
            first @ b'0'..=b'3' => {
                let mut value = first - b'0';
                for _ in 0..2 {
                    let digit = rest.next()?.checked_sub(b'0').filter(|digit| *digit < 8)?;
                    value = value << 3 | digit;
                }
                value
            }
            _ => return None,
        });
    }
    Some(out)
}

fn must_escape(byte: u8, all: bool) -> bool {
    byte < 0x20 || byte == 0x7f || byte == b'"' || byte == b'\\' || (all && byte >= 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_word_comes_back() {
        let mut quoted = Vec::new();
        shell_quote_into(b"it's !x", &mut quoted);
        assert_eq!(quoted, br"'it'\''s '\!'x'");
        quoted.extend_from_slice(b"=1");
        let (word, rest) = shell_unquote_step(&quoted).expect("it is quoted");
        assert_eq!((word.as_slice(), rest), (&b"it's !x"[..], &b"=1"[..]));
        assert_eq!(shell_unquote_step(b"'open"), None);
    }

    #[test]
    fn paths_are_quoted_only_when_they_must_be() {
        assert_eq!(c_quote("a b".into(), true), "a b");
        assert_eq!(c_quote("a\tb\u{e9}".into(), true), "\"a\\tb\\303\\251\"");
        assert_eq!(c_quote("\u{e9}".into(), false), "\u{e9}");
    }
}
