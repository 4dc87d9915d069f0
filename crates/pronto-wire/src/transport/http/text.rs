//! The text of error responses.

use encoding_rs::{Encoding, UTF_8, UTF_16BE};

use crate::sanitize::sanitized;

/// The maximum number of bytes of a text that are shown.
pub(super) const MOST_BYTES: u64 = 16 << 10;

/// Returns the encoding of a body of this media type (`Content-Type`); `None` if it is not plain text.
pub(super) fn encoding(media_type: &str) -> Option<&'static Encoding> {
    let mut parts = media_type.split(';').map(str::trim);
    if !parts.next()?.eq_ignore_ascii_case("text/plain") {
        return None;
    }
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let is_charset = name.trim().eq_ignore_ascii_case("charset");
        is_charset.then(|| value.trim().trim_matches('"'))
    });
    match charset {
        None => Some(UTF_8),
        // UTF-16 without a byte order mark is big-endian (RFC 2781).
        Some(charset) if charset.eq_ignore_ascii_case("utf-16") => Some(UTF_16BE),
        Some(charset) => Encoding::for_label(charset.as_bytes()),
    }
}

/// Decodes a text, and makes it safe for a terminal.
pub(super) fn shown(bytes: &[u8], encoding: &'static Encoding) -> String {
    let (text, ..) = encoding.decode(bytes);
    sanitized(text.replace("\r\n", "\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_decoded_and_made_safe() {
        let show = |media_type: &str, bytes: &[u8]| {
            encoding(media_type).map(|encoding| shown(bytes, encoding))
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(show("text/html", b"a"), None);
        assert_eq!(show("text/plain", b"a\r\nb\x1b[2J"), text("a\nb^[[2J"));
        assert_eq!(
            show("Text/Plain; charset=ISO-8859-1", b"\xe9"),
            text("\u{e9}")
        );
        assert_eq!(show("text/plain; charset=utf-16", b"\0a"), text("a"));
        let odd = "text/plain; x=y ;charset=\"utf-16\"; z";
        assert_eq!(show(odd, b"\xff\xfea\0"), text("a"));
        assert_eq!(show("text/plain; charset=unknown", b"a"), None);
    }
}
