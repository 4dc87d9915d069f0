//! Errors with a position in the configuration file.

use toml::Spanned;

/// An error with its position in the file.
pub(super) struct ConfigProblem {
    pub(super) offset: usize,
    pub(super) message: String,
}

/// Checks that a value is in a range; `message` describes the range.
pub(super) fn within<T: PartialOrd + Copy>(
    value: &Spanned<T>,
    least: T,
    most: T,
    message: &str,
) -> Result<(), ConfigProblem> {
    match *value.get_ref() >= least && *value.get_ref() <= most {
        true => Ok(()),
        false => Err(problem(value, message.to_owned())),
    }
}

/// Returns an error at the position of a value.
pub(super) fn problem<T>(at: &Spanned<T>, message: String) -> ConfigProblem {
    ConfigProblem {
        offset: at.span().start,
        message,
    }
}

/// Returns a glob whose brackets are closed, so that it can match.
pub(super) fn glob(glob: &Spanned<String>) -> Result<String, ConfigProblem> {
    let text = glob.get_ref();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once('[') {
        // The first character of a class may be a bracket.
        let Some(end) = after
            .char_indices()
            .skip(1)
            .find(|(_, found)| *found == ']')
        else {
            return Err(problem(glob, format!("'{text}' has a '[' without a ']'")));
        };
        rest = after.get(end.0..).unwrap_or_default();
    }
    match text.is_empty() {
        true => Err(problem(glob, "a glob must not be empty".to_owned())),
        false => Ok(text.clone()),
    }
}
