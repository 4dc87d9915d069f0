//! Reads pathspecs from the command line or a file.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};

use crate::CliError;

/// The sources of pathspecs.
pub(crate) struct PathspecSource<'a> {
    /// The pathspecs of the command line.
    pub(crate) given: &'a [OsString],
    /// The file of `--pathspec-from-file`; `-` is standard input.
    pub(crate) file: Option<&'a OsStr>,
    /// Whether NUL bytes separate the pathspecs in the file (`--pathspec-file-nul`).
    pub(crate) ends_with_nul: bool,
}

/// Reads the pathspecs.
///
/// # Errors
/// Fails if the sources exclude each other, or if the file cannot be read or is malformed.
pub(crate) fn read(source: &PathspecSource<'_>) -> Result<Vec<BString>, CliError> {
    let Some(file) = source.file else {
        if source.ends_with_nul {
            let message = "the option '--pathspec-file-nul' requires '--pathspec-from-file'";
            return Err(CliError::fatal(message));
        }
        let given = source.given.iter();
        return Ok(given.map(|path| path.as_bytes().into()).collect());
    };
    if !source.given.is_empty() {
        let message = "'--pathspec-from-file' and pathspec arguments cannot be used together";
        return Err(CliError::fatal(message));
    }
    let mut content = Vec::new();
    let read = if file == "-" {
        std::io::stdin().read_to_end(&mut content).map(|_| ())
    } else {
        std::fs::read(file).map(|bytes| content = bytes)
    };
    read.map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        let name = file.as_bytes().as_bstr();
        CliError::fatal(format!("could not open '{name}' for reading: {reason}"))
    })?;
    if source.ends_with_nul {
        let parts = content.split(|byte| *byte == 0);
        return Ok(parts
            .filter(|part| !part.is_empty())
            .map(BString::from)
            .collect());
    }
    let lines = content.lines().filter(|line| !line.is_empty());
    let bad = |line: &[u8]| {
        let line = line.as_bstr();
        CliError::fatal(format!("line is badly quoted: {line}"))
    };
    lines
        .map(|line| unquote(line).ok_or_else(|| bad(line)))
        .collect()
}

/// Parses a line of a list of paths, which may be C-style quoted. Returns `None` if the quoting is
/// invalid.
pub(crate) fn unquote(line: &[u8]) -> Option<BString> {
    match line.starts_with(b"\"") {
        true => pronto::quote::c_unquote(line).map(BString::from),
        false => Some(line.into()),
    }
}
