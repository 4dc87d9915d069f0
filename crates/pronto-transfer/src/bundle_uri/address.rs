//! Parses bundle URIs: paths, HTTP URLs, and URLs relative to a list.

use bstr::{BStr, BString, ByteSlice};
use pronto_wire::address::is_local;

/// Whether `uri` is an HTTP URL.
pub(super) fn is_web(uri: &BStr) -> bool {
    uri.starts_with(b"http:") || uri.starts_with(b"https:")
}

/// Returns the path of a file: `uri` without `file://`.
pub(super) fn path_of(uri: &BStr) -> &BStr {
    uri.strip_prefix(b"file://").unwrap_or(uri).as_bstr()
}

/// Returns `uri` up to its last slash, the base of relative URLs in the list at `uri`.
pub(super) fn directory_of(uri: &BStr) -> &BStr {
    let end = uri.rfind_byte(b'/').map_or(0, |at| at + 1);
    uri[..end].as_bstr()
}

/// Resolves the URL `value` of a list relative to `base`. Returns `None` if the result would be
/// above the root.
pub(super) fn resolve(base: &BStr, value: &BStr) -> Option<BString> {
    if !is_local(value) || value.starts_with(b"/") || base.is_empty() {
        return Some(value.to_owned());
    }
    let mut base = base.strip_suffix(b"/").unwrap_or(base).to_vec();
    let is_relative = is_local(base.as_bstr()) && !base.starts_with(b"/");
    let is_dotted = base.starts_with(b"./") || base.starts_with(b"../");
    if is_relative && !is_dotted {
        base.splice(0..0, *b"./");
    }
    let mut rest = value.as_bytes();
    let mut separator = b'/';
    loop {
        if let Some(shorter) = rest.strip_prefix(b"../") {
            rest = shorter;
            if !chop(&mut base, is_relative, &mut separator) {
                return None;
            }
        } else if let Some(shorter) = rest.strip_prefix(b"./") {
            rest = shorter;
        } else {
            break;
        }
    }
    base.push(separator);
    base.extend_from_slice(rest);
    let whole = base.strip_suffix(b"/").unwrap_or(&base);
    let whole = whole.strip_prefix(b"./").unwrap_or(whole);
    Some(whole.into())
}

/// Removes the last component of `base`. A host before a colon counts as a component.
fn chop(base: &mut Vec<u8>, is_relative: bool, separator: &mut u8) -> bool {
    if let Some(at) = base.rfind_byte(b'/') {
        base.truncate(at);
        return true;
    }
    if let Some(at) = base.rfind_byte(b':') {
        base.truncate(at);
        *separator = b':';
        return true;
    }
    if is_relative || base == b"." {
        return false;
    }
    *base = b".".to_vec();
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_relative_to_their_list() {
        let cases = [
            (
                "https://host/a/",
                "b.bundle",
                Some("https://host/a/b.bundle"),
            ),
            (
                "https://host/a.git",
                "bundle/x",
                Some("https://host/a.git/bundle/x"),
            ),
            ("https://host/a/b", "../c", Some("https://host/a/c")),
            ("https://host/a", "/etc/x", Some("/etc/x")),
            ("https://host/a", "file:///x", Some("file:///x")),
            ("https://host/a", "https://other/x", Some("https://other/x")),
            ("/a/b/", "./c/", Some("/a/b/c")),
            ("a/", "x", Some("a/x")),
            ("", "x", Some("x")),
            ("a/", "../../x", None),
            ("host:a", "../x", Some("host:x")),
        ];
        for (base, value, expected) in cases {
            let found = resolve(base.into(), value.into());
            assert_eq!(found, expected.map(BString::from), "{base} {value}");
        }
    }

    #[test]
    fn the_directory_ends_with_a_slash() {
        assert_eq!(
            directory_of("https://host/a/list".into()),
            "https://host/a/"
        );
        assert_eq!(directory_of("list".into()), "");
    }
}
