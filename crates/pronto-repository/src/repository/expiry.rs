//! When what is not used any more goes.

/// How long something must have been unused before it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expiry {
    /// Not at all.
    #[default]
    Now,
    /// Since this moment, in seconds since 1970.
    Before(i64),
}
