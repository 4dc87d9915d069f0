//! Redacts passwords in URLs.

use std::borrow::Cow;

/// The text that replaces a password.
const REDACTED: &str = "<REDACTED>";

/// Returns `argument` without its password, if it is an HTTP URL with a password.
pub(crate) fn redacted(argument: &str) -> Cow<'_, str> {
    let rest = ["https://", "http://"]
        .iter()
        .find_map(|scheme| argument.strip_prefix(scheme));
    let Some(rest) = rest else {
        return argument.into();
    };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@') else {
        return argument.into();
    };
    let Some((name, password)) = user.split_once(':') else {
        return argument.into();
    };
    let start = argument.len() - rest.len() + name.len() + 1;
    let (before, after) = (&argument[..start], &argument[start + password.len()..]);
    format!("{before}{REDACTED}{after}").into()
}

/// Applies [`redacted`] to each of `arguments`.
pub(crate) fn all(arguments: &[String]) -> Vec<String> {
    let shown = |argument: &String| redacted(argument).into_owned();
    arguments.iter().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_passwords_of_addresses_are_left_out() {
        for (argument, shown) in [
            ("https://me:secret@host/x", "https://me:<REDACTED>@host/x"),
            ("http://me:a@b:c@host", "http://me:<REDACTED>@host"),
            ("https://:secret@host?q", "https://:<REDACTED>@host?q"),
            ("https://me@host/a:b@c", "https://me@host/a:b@c"),
            ("https://host:80/me:x@y", "https://host:80/me:x@y"),
            ("ssh://me:secret@host", "ssh://me:secret@host"),
            ("me:secret@host", "me:secret@host"),
            ("https://", "https://"),
        ] {
            assert_eq!(redacted(argument), shown);
        }
    }
}
