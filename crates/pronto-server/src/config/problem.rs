//! Errors at places in the configuration file.

use toml::Spanned;

/// An error at a place in the file.
pub(super) struct Problem {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// Checks that a value is in a range; `message` describes the range.
pub(super) fn within<T: PartialOrd + Copy>(
    value: &Spanned<T>,
    least: T,
    most: T,
    message: &str,
) -> Result<(), Problem> {
    match *value.get_ref() >= least && *value.get_ref() <= most {
        true => Ok(()),
        false => Err(problem(value, message.to_owned())),
    }
}

/// Returns an error at the place of a value.
pub(super) fn problem<T>(at: &Spanned<T>, message: String) -> Problem {
    Problem {
        offset: at.span().start,
        message,
    }
}
