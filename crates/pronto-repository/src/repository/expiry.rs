//! Times of expiry: when unused objects, reflog entries and worktrees are removed.

use bstr::BStr;

use pronto_object::date;

/// The age at which unused things expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    #[default]
    Now,
    /// Since this moment, in seconds since 1970.
    Before(i64),
}

impl Expiry {
    /// Parses a time of expiry, as in `--expire`: `never`, `now`, or a date. `None` if it is not understood.
    pub fn parse(text: &BStr) -> Option<Self> {
        Some(match date::parse_expiry(text)? {
            i64::MAX => Expiry::Now,
            moment => Expiry::Before(moment),
        })
    }
}
