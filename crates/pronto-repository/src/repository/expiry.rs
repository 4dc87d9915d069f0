//! Expiry times: the age at which unused objects, reflog entries and worktrees are removed.

use bstr::BStr;

use pronto_object::date;

/// The age at which unused objects or entries expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpiryAge {
    /// Of any age.
    #[default]
    Now,
    /// Older than this time, in seconds since 1970.
    Before(i64),
}

impl ExpiryAge {
    /// Parses an expiry time, as in `--expire`: `never`, `now`, or a date. Returns `None` if the text
    /// is malformed.
    pub fn parse(text: &BStr) -> Option<Self> {
        Some(match date::parse_expiry(text)? {
            i64::MAX => ExpiryAge::Now,
            moment => ExpiryAge::Before(moment),
        })
    }
}
