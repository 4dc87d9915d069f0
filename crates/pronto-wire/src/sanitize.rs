//! Makes text of the remote side safe for a terminal.

use bstr::ByteSlice;

/// Returns `text` with control characters replaced by `^X`, as in Git. Colours and tabs are kept.
/// Invalid UTF-8 becomes replacement characters.
pub(crate) fn sanitized(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| byte.is_ascii_control()) {
        out.push_str(&rest[..at].to_str_lossy());
        let colour = colour_length(&rest[at..]);
        match rest[at] {
            b'\t' | b'\n' => out.push(char::from(rest[at])),
            0x1b if colour > 0 => out.push_str(&rest[at..at + colour].to_str_lossy()),
            control => {
                out.push('^');
                out.push(char::from(control ^ 0x40));
            }
        }
        rest = &rest[at + colour.max(1)..];
    }
    out.push_str(&rest.to_str_lossy());
    out
}

/// Returns the length of the colour sequence (`ESC [ digits ; … m`) at the start, or 0.
fn colour_length(text: &[u8]) -> usize {
    let Some(parameters) = text.strip_prefix(b"\x1b[") else {
        return 0;
    };
    let end = parameters
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'));
    match end {
        Some(end) if parameters[end] == b'm' => end + 3,
        _ => 0,
    }
}
