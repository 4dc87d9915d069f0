//! The header lines of commits and tags: lines `NAME VALUE` before the first empty line.

use bstr::{BStr, ByteSlice};
use pronto_io::short::Short as _;

/// Returns the value of the first header line `name`, without its continuation lines (as in
/// `gpgsig`).
pub(crate) fn value<'a>(content: &'a [u8], name: &str) -> Option<&'a BStr> {
    lines(content)
        .find_map(|line| value_of(line, name))
        .map(ByteSlice::as_bstr)
}

/// Returns the value of the last header line `name`, without its continuation lines.
pub(crate) fn last_value<'a>(content: &'a [u8], name: &str) -> Option<&'a BStr> {
    lines(content)
        .filter_map(|line| value_of(line, name))
        .last()
        .map(ByteSlice::as_bstr)
}

/// Returns the header lines, including continuation lines.
pub(crate) fn lines(content: &[u8]) -> impl Iterator<Item = &[u8]> {
    content
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.is_empty())
}

/// Returns the value of a header line if its name is `name`.
pub(crate) fn value_of<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    line.strip_prefix(name.as_bytes())?.strip_prefix(b" ")
}

/// Returns the message: the content after the first empty line.
pub(crate) fn message(content: &[u8]) -> &BStr {
    let start = content.position_of_text(b"\n\n").map(|at| at + 2);
    content[start.unwrap_or(content.len())..].as_bstr()
}
