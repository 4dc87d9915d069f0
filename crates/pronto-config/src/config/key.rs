//! Configuration keys: `section.variable` and `section.subsection.variable`.

use std::borrow::Cow;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::short::Short as _;

use super::parse::is_key_byte;
use crate::{Error, ErrorKind, Result};

/// The parts of a key in canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigKey<'a> {
    /// The section, in lower case.
    pub section: &'a BStr,
    /// The subsection, in its original case.
    pub subsection: Option<&'a BStr>,
    /// The variable, in lower case.
    pub variable: &'a BStr,
}

impl<'a> ConfigKey<'a> {
    /// Splits a canonical key at its first and last dot.
    pub fn split(key: &'a BStr) -> Self {
        let first = key.position_of(b'.').unwrap_or(key.len());
        let last = key.last_position_of(b'.').unwrap_or(key.len());
        ConfigKey {
            section: key[..first].as_bstr(),
            subsection: (first < last).then(|| key[first + 1..last].as_bstr()),
            variable: key.get(last + 1..).unwrap_or_default().as_bstr(),
        }
    }

    /// Returns the canonical form of a key for a lookup. Accepts any text; an invalid key is never
    /// found.
    pub(super) fn lookup(key: &[u8]) -> Cow<'_, [u8]> {
        let first = key.position_of(b'.').unwrap_or(key.len());
        let last = key.last_position_of(b'.').unwrap_or(key.len());
        let has_upper = |part: &[u8]| part.iter().any(u8::is_ascii_uppercase);
        if !has_upper(&key[..first]) && !has_upper(&key[last..]) {
            return Cow::Borrowed(key);
        }
        let mut lower = key.to_vec();
        lower[..first].make_ascii_lowercase();
        lower[last..].make_ascii_lowercase();
        Cow::Owned(lower)
    }
}

/// Checks a key as Git does, and returns its canonical form.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if the key has no section or no variable, and with
/// [`ErrorKind::InvalidInput`] if it has an invalid character.
pub fn canonical(key: &BStr) -> Result<BString> {
    let fail = |kind, message: String| Err(Error::new(kind, message));
    let last = match key.last_position_of(b'.') {
        None | Some(0) => {
            let message = format!("key does not contain a section: {key}");
            return fail(ErrorKind::Config, message);
        }
        Some(last) => last,
    };
    if last + 1 == key.len() {
        let message = format!("key does not contain variable name: {key}");
        return fail(ErrorKind::Config, message);
    }
    let first = key.position_of(b'.').unwrap_or(last);
    let (section, variable) = (&key[..first], &key[last + 1..]);
    if !section.iter().copied().all(is_key_byte)
        || !variable.iter().copied().all(is_key_byte)
        || !variable[0].is_ascii_alphabetic()
    {
        return fail(ErrorKind::InvalidInput, format!("invalid key: {key}"));
    }
    if key[first..last].contains(&b'\n') {
        return fail(
            ErrorKind::InvalidInput,
            format!("invalid key (newline): {key}"),
        );
    }
    Ok(ConfigKey::lookup(key).into_owned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_subsection_keeps_its_case() {
        let key = canonical("Remote.My.Origin.URL".into()).expect("a key");
        assert_eq!(key, "remote.My.Origin.url");
        let parts = ConfigKey::split(key.as_bstr());
        assert_eq!(parts.section, "remote");
        assert_eq!(parts.subsection, Some("My.Origin".into()));
        assert_eq!(parts.variable, "url");
    }

    #[test]
    fn impossible_keys_are_named() {
        for (key, message) in [
            ("a", "key does not contain a section: a"),
            ("a.", "key does not contain variable name: a."),
            ("a.1", "invalid key: a.1"),
            ("a_b.c", "invalid key: a_b.c"),
            ("a.b\nc.d", "invalid key (newline): a.b\nc.d"),
        ] {
            let error = canonical(key.into()).expect_err("no key");
            assert_eq!(error.message(), message);
        }
    }
}
