//! The refspecs of a fetch, from the command line and from standard input (`--stdin`).

use std::ffi::OsString;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;

use pronto::bstr::ByteSlice;
use pronto::remote::Refspec;

use super::Args;
use crate::CliError;

/// The largest size of the list on standard input.
const LARGEST_LIST_BYTES: u64 = 64 << 20;

/// Returns all refspecs.
pub(super) fn all(args: &Args) -> Result<Vec<Refspec>, CliError> {
    let mut specs = parse(&args.refspecs)?;
    if !args.stdin {
        return Ok(specs);
    }
    let mut list = Vec::new();
    let input = std::io::stdin().lock();
    let read = input.take(LARGEST_LIST_BYTES + 1).read_to_end(&mut list);
    read.map_err(|error| {
        CliError::fatal(format!("cannot read refspecs from standard input: {error}"))
    })?;
    if list.len() as u64 > LARGEST_LIST_BYTES {
        return Err(CliError::fatal("too many refspecs on standard input"));
    }
    for line in list.lines_with_terminator() {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        specs.push(Refspec::parse(line.into())?);
    }
    Ok(specs)
}

/// Parses the refspecs of the command line. `tag NAME` selects a tag.
fn parse(given: &[OsString]) -> Result<Vec<Refspec>, CliError> {
    let mut specs = Vec::new();
    let mut given = given.iter();
    while let Some(text) = given.next() {
        if text == "tag" {
            let Some(name) = given.next() else {
                return Err(CliError::fatal("You need to specify a tag name."));
            };
            let name = name.as_bytes();
            let spec = [b"refs/tags/", name, b":refs/tags/", name].concat();
            specs.push(Refspec::parse(spec.as_slice().into())?);
        } else {
            specs.push(Refspec::parse(text.as_bytes().into())?);
        }
    }
    Ok(specs)
}
