//! Changes the URLs of a remote (`git remote set-url`).

use bstr::{BStr, BString, ByteSlice};

use super::file::{self, SetValue};
use super::key;
use crate::config;
use crate::remote::{Remote, rewritten};
use crate::{Error, ErrorKind, Repository, Result};

/// The kind of URLs to change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The URLs for fetches, and for pushes if there are no push URLs (`remote.NAME.url`).
    #[default]
    Fetch,
    /// The push URLs (`--push`, `remote.NAME.pushUrl`).
    Push,
}

/// A change of the URLs of a remote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlChange {
    /// Replace the only URL by this one.
    Set(BString),
    /// Replace the URL that matches the regular expression `old` by `new`.
    Replace {
        /// The new URL.
        new: BString,
        /// The regular expression.
        old: BString,
    },
    /// Add this URL (`--add`).
    Add(BString),
    /// Delete all URLs that match this regular expression (`--delete`).
    Delete(BString),
}

/// Changes the URLs of `remote`.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the regular expression is malformed or matches no URL,
/// or if no fetch URL would be left, with [`ErrorKind::Refused`] if several URLs would be replaced
/// by one, and with `ErrorKind::Config` if the configuration file cannot be changed.
pub fn change_url(
    repository: &Repository,
    remote: &Remote,
    kind: Kind,
    change: &UrlChange,
) -> Result<()> {
    let name = remote.name.as_bstr();
    let key = match kind {
        Kind::Fetch => key(name, "url"),
        Kind::Push => key(name, "pushurl"),
    };
    let key = key.as_bstr();
    let set = |value: &BString, counts: &dyn Fn(&BStr) -> bool| {
        let value = value.as_bstr();
        let failure = file::cannot_set(key, value);
        file::edit(repository, &failure, |document| {
            file::set(repository, document, &SetValue { key, value }, counts)
        })
    };
    match change {
        UrlChange::Set(url) => set(url, &|_| true),
        UrlChange::Add(url) => set(url, &|value| value.is_empty()),
        UrlChange::Replace { new, old } => {
            let matches = count(repository, remote, kind, old.as_bstr())?;
            if matches.matching == 0 {
                let message = format!("No such URL found: {old}");
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            let counts = value_test(old.as_bstr())?;
            set(new, &counts)
        }
        UrlChange::Delete(old) => {
            let matches = count(repository, remote, kind, old.as_bstr())?;
            if matches.other == 0 && kind == Kind::Fetch {
                let message = "Will not delete all non-push URLs";
                return Err(Error::new(ErrorKind::Refused, message));
            }
            let counts = value_test(old.as_bstr())?;
            let failure = file::cannot_unset(key);
            file::edit(repository, &failure, |document| {
                match file::unset_all(document, key, &counts)? {
                    true => Ok(()),
                    false => Err(Error::new(ErrorKind::InvalidInput, failure.clone())),
                }
            })
        }
    }
}

/// The numbers of URLs that match an expression, and that do not match.
#[derive(Default)]
struct MatchCounts {
    matching: usize,
    other: usize,
}

fn count(
    repository: &Repository,
    remote: &Remote,
    kind: Kind,
    pattern: &BStr,
) -> Result<MatchCounts> {
    let expression = compile(pattern, pattern)?;
    let config = repository.config();
    let urls = match kind {
        Kind::Fetch => remote.urls.clone(),
        Kind::Push => {
            let urls = config.list(key(remote.name.as_bstr(), "pushurl"));
            urls.iter().map(|url| rewritten(config, url)).collect()
        }
    };
    let mut matches = MatchCounts::default();
    for url in urls {
        match expression(url.as_bstr()) {
            true => matches.matching += 1,
            false => matches.other += 1,
        }
    }
    Ok(matches)
}

/// Compiles `pattern` into a predicate. `shown` is the text for error messages.
fn compile(pattern: &BStr, shown: &BStr) -> Result<impl Fn(&BStr) -> bool + use<>> {
    let expression = config::pattern(pattern).map_err(|_| {
        let message = format!("Invalid old URL pattern: {shown}");
        Error::new(ErrorKind::InvalidInput, message)
    })?;
    Ok(move |text: &BStr| expression.is_match(text))
}

/// Returns a predicate for configured values: whether they match `pattern`, or with a leading `!`,
/// do not match.
fn value_test(pattern: &BStr) -> Result<impl Fn(&BStr) -> bool + use<>> {
    let (inverted, text) = match pattern.strip_prefix(b"!") {
        Some(text) => (true, text.as_bstr()),
        None => (false, pattern),
    };
    let expression = compile(text, pattern)?;
    Ok(move |value: &BStr| expression(value) != inverted)
}
