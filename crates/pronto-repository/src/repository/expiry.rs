//! When what is not used any more goes.

/// The age at which unused things expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    #[default]
    Now,
    /// Since this moment, in seconds since 1970.
    Before(i64),
}
