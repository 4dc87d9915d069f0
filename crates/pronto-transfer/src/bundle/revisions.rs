//! Parses the revisions of a new bundle.

use bstr::{BString, ByteSlice};

use crate::revision::{RevisionParser, RevisionSet};
use crate::{Error, ErrorKind, Repository, Result};

/// Parses `arguments` with [`RevisionParser`]: revisions, and options that select refs.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if an argument is neither of these or could be a file, so
/// that Git can report the error, and with the errors of [`RevisionParser::option`].
pub fn parse_revisions(repository: &Repository, arguments: &[BString]) -> Result<RevisionSet> {
    let mut parser = RevisionParser::new(repository);
    for argument in arguments {
        let text = argument.as_bstr();
        let is_known = match text.starts_with(b"-") {
            true => parser.option(text)?,
            false => !repository.could_be_file(text) && parser.revision(text).unwrap_or(false),
        };
        if !is_known {
            let message = format!("cannot create a bundle of revision '{argument}'");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
    }
    Ok(parser.into_set())
}
