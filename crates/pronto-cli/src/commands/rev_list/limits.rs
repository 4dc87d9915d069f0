//! The options that limit a walk over commits.

use bstr::{BStr, BString, ByteSlice};
use pronto::revision::approximate_date;
use pronto::walk::WalkOptions;
use pronto_io::short::Short as _;

use crate::CliError;

/// An iterator over arguments, which gives access to the values of options.
pub(crate) struct ArgumentWords<'a> {
    rest: std::slice::Iter<'a, BString>,
}

impl<'a> ArgumentWords<'a> {
    pub(crate) fn new(arguments: &'a [BString]) -> Self {
        ArgumentWords {
            rest: arguments.iter(),
        }
    }

    /// Returns the next argument.
    pub(crate) fn next(&mut self) -> Option<&'a BString> {
        self.rest.next()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.len() == 0
    }

    /// Applies `option` to `walk`. Returns whether `option` limits a walk.
    pub(crate) fn limit(
        &mut self,
        option: &BStr,
        walk: &mut WalkOptions,
    ) -> Result<bool, CliError> {
        if let Some(text) = self.count(option)? {
            walk.max_count = u64::try_from(number(&text, option)?).ok();
            return Ok(true);
        }
        if let Some(text) = self.value(option, "--skip")? {
            walk.skip = u64::try_from(number(&text, option)?).unwrap_or(0);
            return Ok(true);
        }
        if let Some(text) = option.strip_prefix(b"--min-parents=") {
            walk.min_parents = u32::try_from(number(text, option)?).unwrap_or(0);
            return Ok(true);
        }
        if let Some(text) = option.strip_prefix(b"--max-parents=") {
            walk.max_parents = u32::try_from(number(text, option)?).ok();
            return Ok(true);
        }
        for name in ["--since", "--after", "--max-age"] {
            if let Some(text) = self.value(option, name)? {
                walk.since = Some(time(&text, name)?);
                return Ok(true);
            }
        }
        for name in ["--until", "--before", "--min-age"] {
            if let Some(text) = self.value(option, name)? {
                walk.until = Some(time(&text, name)?);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the value of `-<n>`, `-n <n>` or `--max-count=<n>`.
    fn count(&mut self, option: &BStr) -> Result<Option<BString>, CliError> {
        match option.as_bytes() {
            [b'-', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => {
                Ok(Some(digits.into()))
            }
            b"-n" => match self.rest.next() {
                Some(value) => Ok(Some(value.clone())),
                None => Err(CliError::misuse("-n requires an argument")),
            },
            [b'-', b'n', value @ ..] => Ok(Some(value.into())),
            _ => self.value(option, "--max-count"),
        }
    }

    /// Returns the value of `name=value`, or of `name` and the next argument.
    pub(crate) fn value(&mut self, option: &BStr, name: &str) -> Result<Option<BString>, CliError> {
        match option.strip_prefix(name.as_bytes()) {
            Some([b'=', value @ ..]) => Ok(Some(value.into())),
            Some([]) => match self.rest.next() {
                Some(value) => Ok(Some(value.clone())),
                None => Err(CliError::fatal(format!("Option '{name}' requires a value"))),
            },
            _ => Ok(None),
        }
    }
}

/// Parses an integer, such as the value of `-n`.
fn number(text: &[u8], option: &BStr) -> Result<i64, CliError> {
    let number = text.to_str().ok().and_then(|text| text.parse().ok());
    let name = option
        .split_at_each(b'=')
        .next()
        .unwrap_or_default()
        .as_bstr();
    number.ok_or_else(|| CliError::misuse(format!("option '{name}' needs an integer")))
}

/// Parses a time: in seconds for `--max-age` and `--min-age`, and as a date otherwise.
fn time(text: &BString, name: &str) -> Result<i64, CliError> {
    let moment = match name.ends_with("-age") {
        true => text.to_str().ok().and_then(|text| text.parse().ok()),
        false => Some(approximate_date(text.as_bstr())),
    };
    moment.ok_or_else(|| CliError::unsupported(format!("the date '{text}'")))
}
