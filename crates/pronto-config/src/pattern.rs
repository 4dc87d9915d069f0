//! Regular expressions as Git's configuration and names of revisions have them.

use bstr::{BStr, ByteSlice};
use regex::bytes::Regex;

use crate::{Error, ErrorKind, Result};

/// A regular expression as configuration and names of revisions use them.
///
/// # Errors
/// It is malformed.
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
