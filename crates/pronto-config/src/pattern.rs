//! Regular expressions in Git's configuration and revisions.

use bstr::{BStr, ByteSlice};
use regex::bytes::Regex;

use crate::{Error, ErrorKind, Result};

/// Compiles an extended regular expression, as used by `git config` and in revisions
/// (`:/<text>`).
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the expression is malformed.
pub fn compile(pattern: &BStr, ignore_case: bool) -> Result<Regex> {
    let invalid = || {
        let message = format!("invalid pattern: {pattern}");
        Error::new(ErrorKind::InvalidInput, message)
    };
    let text = pattern.to_str().map_err(|_| invalid())?;
    regex::bytes::RegexBuilder::new(text)
        .unicode(false)
        .multi_line(true)
        .dot_matches_new_line(true)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|_| invalid())
}
