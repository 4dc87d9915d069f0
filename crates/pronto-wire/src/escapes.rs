//! Escapes of URLs, and removal of passwords from messages.

use bstr::{BStr, BString, ByteSlice};

/// Removes everything up to the last `@` from `text`, for messages about texts that are not valid URLs.
/// The end of a password in such a text is not known.
pub(crate) fn redacted(text: &BStr) -> BString {
    match (text.find(b"://"), text.rfind_byte(b'@')) {
        (Some(scheme), Some(at)) if scheme < at => {
            let (scheme, rest) = (&text.as_bytes()[..scheme + 3], &text.as_bytes()[at..]);
            [scheme, b"...", rest].concat().into()
        }
        _ => text.into(),
    }
}

/// Decodes `%XX` in `text`. Other percent signs are kept.
pub(crate) fn decoded(text: &[u8]) -> BString {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, tail)) = rest.split_first() {
        let digit = |at: usize| tail.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) if high + low > 0 => {
                out.push((high << 4 | low) as u8);
                rest = &tail[2..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out.into()
}
