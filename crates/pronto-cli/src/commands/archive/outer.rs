//! The options of `archive` that select the repository and the output: `--remote`, `--exec` and
//! `--output`. All other options are for the process that makes the archive.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};

use crate::CliError;

/// The parsed arguments of `archive`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ArchiveCall {
    /// The file of `--output`.
    pub(super) output: Option<BString>,
    /// The repository of `--remote`.
    pub(super) remote: Option<BString>,
    /// The program of `--exec`, which serves archives on the remote machine.
    pub(super) program: Option<BString>,
    /// The arguments for the process that makes the archive.
    pub(super) rest: Vec<BString>,
}

impl ArchiveCall {
    /// Removes the outer options from `words`. Their names cannot be abbreviated, as in Git.
    ///
    /// # Errors
    /// Fails with Git's message if an option lacks its value or has a superfluous one.
    pub(super) fn parse(words: &[OsString]) -> Result<Self, CliError> {
        let mut outer = ArchiveCall::default();
        let mut words = words.iter().map(|word| word.as_bytes());
        while let Some(word) = words.next() {
            if word == b"--" {
                outer.rest.push(word.into());
                outer.rest.extend(words.map(BString::from));
                break;
            }
            let (name, value) = match word {
                b"-o" => (&b"--output"[..], None),
                [b'-', b'o', value @ ..] => (&b"--output"[..], Some(value)),
                word => match word.split_once_str("=") {
                    Some((name, value)) => (name, Some(value)),
                    None => (word, None),
                },
            };
            let (name, is_negated) = match name.strip_prefix(b"--no-") {
                Some(name) => (name, true),
                None => (name.strip_prefix(b"--").unwrap_or_default(), false),
            };
            let place = match name {
                b"output" => &mut outer.output,
                b"remote" => &mut outer.remote,
                b"exec" => &mut outer.program,
                _ => {
                    outer.rest.push(word.into());
                    continue;
                }
            };
            let name = name.as_bstr();
            *place = match (is_negated, value) {
                (true, Some(_)) => {
                    let message = format!("option `no-{name}' takes no value");
                    return Err(CliError::usage(message));
                }
                // As in Git, `--no-output` keeps the file.
                (true, None) if name == "output" => continue,
                (true, None) => None,
                (false, Some(value)) => Some(value.into()),
                (false, None) => {
                    let missing = || match word {
                        b"-o" => CliError::usage("switch `o' requires a value"),
                        _ => CliError::usage(format!("option `{name}' requires a value")),
                    };
                    Some(words.next().ok_or_else(missing)?.into())
                }
            };
        }
        Ok(outer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> ArchiveCall {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        ArchiveCall::parse(&words).expect("no value is missing")
    }

    #[test]
    fn other_words_keep_their_order() {
        let outer = parse(&["-v", "--remote", "a", "-ox", "HEAD", "--rem=b", "--", "-oy"]);
        assert_eq!(outer.remote, Some("a".into()));
        assert_eq!(outer.output, Some("x".into()));
        assert_eq!(outer.rest, ["-v", "HEAD", "--rem=b", "--", "-oy"]);
        let outer = parse(&["--exec=p", "--no-exec", "--output=a", "-vo"]);
        assert_eq!((outer.program, outer.output), (None, Some("a".into())));
        assert_eq!(outer.rest, ["-vo"]);
    }
}
