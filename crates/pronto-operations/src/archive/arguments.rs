//! Parses the arguments of `git archive`, from a command line or from a remote client.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};

use super::{ArchiveFormat, Formats, Options};
use crate::revision::approximate_date;
use crate::{Error, ErrorKind, Result as Done};

/// The parsed arguments of `git archive`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArchiveArguments {
    /// List the formats (`--list`).
    pub lists: bool,
    /// Show the paths of entries (`--verbose`).
    pub is_verbose: bool,
    /// The name of the format (`--format`).
    pub format: Option<BString>,
    /// The text before each path of the tree (`--prefix`).
    pub prefix: BString,
    /// The compression level (`-0` to `-9`).
    pub level: Option<u32>,
    /// The modification time of all entries, unparsed (`--mtime`).
    pub modified: Option<BString>,
    /// Read attributes from the worktree, too (`--worktree-attributes`).
    pub worktree_attributes: bool,
    /// The files of `--add-file` and `--add-virtual-file`.
    pub added: Vec<AddedFile>,
    /// An option that is not allowed here, without its dashes: `output`, `remote` or `exec`.
    pub misplaced: Option<&'static str>,
    /// The operands: the tree, and pathspecs.
    pub operands: Vec<BString>,
}

/// A file that is added to an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub enum AddedFile {
    /// The value of `--add-file`, with the `--prefix` that was given before.
    File {
        /// The text before the name in the archive.
        prefix: BString,
        /// The path on the command line.
        path: BString,
    },
    /// The value of `--add-virtual-file`: the path, a colon and the content, unparsed.
    Virtual(BString),
}

/// An error of the arguments, with Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentsError {
    message: String,
    shows_usage: bool,
}

/// The usage text of the command.
pub const USAGE: &str = "usage: git archive [<options>] <tree-ish> [<path>...]
   or: git archive --list
   or: git archive --remote <repo> [--exec <cmd>] [<options>] <tree-ish> [<path>...]
   or: git archive --remote <repo> [--exec <cmd>] --list
";

impl fmt::Display for ArgumentsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        match self.shows_usage {
            true => f.write_str(USAGE),
            false => Ok(()),
        }
    }
}

impl std::error::Error for ArgumentsError {}

impl ArgumentsError {
    /// Returns the message, without a prefix.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns whether the usage text follows the message.
    pub fn shows_usage(&self) -> bool {
        self.shows_usage
    }
}

/// A long option.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Long {
    name: &'static str,
    short: Option<u8>,
    takes_value: bool,
    can_be_negated: bool,
}

const fn long(name: &'static str, short: Option<u8>, takes_value: bool) -> Long {
    Long {
        name,
        short,
        takes_value,
        can_be_negated: true,
    }
}

const OPTIONS: [Long; 11] = [
    long("format", None, true),
    long("prefix", None, true),
    long("add-file", None, true),
    long("add-virtual-file", None, true),
    long("output", Some(b'o'), true),
    long("worktree-attributes", None, false),
    long("verbose", Some(b'v'), false),
    Long {
        can_be_negated: false,
        ..long("mtime", None, true)
    },
    long("list", Some(b'l'), false),
    long("remote", None, true),
    long("exec", None, true),
];

/// A long option as it was written.
struct WrittenOption {
    option: Long,
    is_negated: bool,
}

impl WrittenOption {
    fn shown(&self) -> String {
        let no = if self.is_negated { "no-" } else { "" };
        format!("{no}{}", self.option.name)
    }
}

impl ArchiveArguments {
    /// Parses the arguments. Options may follow operands, and their names may be abbreviated.
    ///
    /// # Errors
    /// Fails if an option is unknown or ambiguous, lacks its value, or has a value but takes none.
    pub fn parse<'a>(
        words: impl IntoIterator<Item = &'a BStr>,
    ) -> Result<ArchiveArguments, ArgumentsError> {
        let mut parsed = ArchiveArguments::default();
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"--" | b"--end-of-options" => {
                    parsed.operands.extend(words.map(BStr::to_owned));
                    break;
                }
                [b'-', b'-', option @ ..] => parsed.long(option.as_bstr(), &mut words)?,
                [b'-', rest @ ..] if !rest.is_empty() => parsed.short(rest, &mut words)?,
                _ => parsed.operands.push(word.to_owned()),
            }
        }
        Ok(parsed)
    }

    /// Checks that there is no option that is not allowed here.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] and Git's message if there is such an option.
    pub fn check_places(&self) -> Done<()> {
        let message = match self.misplaced {
            None => return Ok(()),
            Some("exec") => "the option '--exec' requires '--remote'".to_owned(),
            Some(name) => format!("Unexpected option --{name}"),
        };
        Err(Error::new(ErrorKind::InvalidInput, message))
    }

    /// Returns the options of an archive in `format`. The first operand names the tree, and the
    /// others are pathspecs. The caller adds the additional files, because their paths are relative
    /// to its current directory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the format does not have the compression level.
    pub fn options(&self, format: &ArchiveFormat) -> Done<Options> {
        if let Some(level) = self.level {
            format.check_level(level)?;
        }
        let moment = |text: &BString| approximate_date(text.as_bstr());
        Ok(Options {
            format: format.clone(),
            level: self.level,
            prefix: self.prefix.clone(),
            modified: self.modified.as_ref().map(moment),
            worktree_attributes: self.worktree_attributes,
            pathspecs: self.operands.iter().skip(1).cloned().collect(),
            ..Options::default()
        })
    }

    /// Returns the output of `--list`: the name of each format on a line. A remote client sees only
    /// the formats that are enabled for it (`tar.FORMAT.remote`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if there is an operand.
    pub fn listing(&self, formats: &Formats, is_served: bool) -> Done<Vec<u8>> {
        if let Some(extra) = self.operands.first() {
            let message = format!("extra command line parameter '{extra}'");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let formats = formats.iter();
        let formats = formats.filter(|format| !is_served || format.is_remote());
        let lines = formats.map(|format| [format.name().as_bytes(), b"\n"].concat());
        Ok(lines.collect::<Vec<_>>().concat())
    }

    fn long<'a>(
        &mut self,
        text: &BStr,
        words: &mut impl Iterator<Item = &'a BStr>,
    ) -> Result<(), ArgumentsError> {
        let (name, given) = match text.split_once_str("=") {
            Some((name, value)) => (name.as_bstr(), Some(value.as_bstr())),
            None => (text, None),
        };
        let written = find(text, name)?;
        let takes_value = written.option.takes_value && !written.is_negated;
        let value = match (takes_value, given) {
            (false, Some(_)) => {
                return Err(short_error(format!(
                    "option `{}' takes no value",
                    written.shown()
                )));
            }
            (false, None) => BStr::new(b""),
            (true, Some(value)) => value,
            (true, None) => words.next().ok_or_else(|| {
                short_error(format!("option `{}' requires a value", written.shown()))
            })?,
        };
        self.take(&written, value);
        Ok(())
    }

    fn short<'a>(
        &mut self,
        mut rest: &[u8],
        words: &mut impl Iterator<Item = &'a BStr>,
    ) -> Result<(), ArgumentsError> {
        while let Some((&letter, behind)) = rest.split_first() {
            if letter.is_ascii_digit() {
                let end = rest.find_not_byteset(b"0123456789").unwrap_or(rest.len());
                let (digits, behind) = rest.split_at(end);
                // As in Git, a number that overflows is replaced by another large number.
                let level = digits.to_str().ok().and_then(|text| text.parse().ok());
                self.level = Some(level.unwrap_or(u32::MAX));
                rest = behind;
                continue;
            }
            let found = OPTIONS.iter().find(|option| option.short == Some(letter));
            let Some(&option) = found else {
                let shown = [letter];
                let message = format!("unknown switch `{}'", shown.as_bstr());
                return Err(usage_error(message));
            };
            let written = WrittenOption {
                option,
                is_negated: false,
            };
            if !option.takes_value {
                self.take(&written, BStr::new(b""));
                rest = behind;
                continue;
            }
            let value = match behind.is_empty() {
                false => behind.as_bstr(),
                true => words.next().ok_or_else(|| {
                    let shown = char::from(letter);
                    short_error(format!("switch `{shown}' requires a value"))
                })?,
            };
            self.take(&written, value);
            return Ok(());
        }
        Ok(())
    }

    fn take(&mut self, written: &WrittenOption, value: &BStr) {
        let is_set = !written.is_negated;
        let owned = is_set.then(|| value.to_owned());
        match written.option.name {
            "format" => self.format = owned,
            "prefix" => self.prefix = owned.unwrap_or_default(),
            "mtime" => self.modified = owned,
            "worktree-attributes" => self.worktree_attributes = is_set,
            "verbose" => self.is_verbose = is_set,
            "list" => self.lists = is_set,
            "add-file" | "add-virtual-file" if !is_set => self.added.clear(),
            "add-file" => self.added.push(AddedFile::File {
                prefix: self.prefix.clone(),
                path: value.to_owned(),
            }),
            "add-virtual-file" => self.added.push(AddedFile::Virtual(value.to_owned())),
            name if is_set => self.misplaced = Some(name),
            _ => self.misplaced = None,
        }
    }
}

/// Finds the option `name`, which may be abbreviated or negated. `text` is the whole argument.
fn find(text: &BStr, name: &BStr) -> Result<WrittenOption, ArgumentsError> {
    let spellings = OPTIONS.iter().flat_map(|&option| {
        let direct = (option.name.to_owned(), option, false);
        let negated = (format!("no-{}", option.name), option, true);
        [direct, negated]
    });
    let mut fits: Vec<(String, Long, bool)> = spellings
        .filter(|(spelling, ..)| spelling.as_bytes().starts_with(name))
        .collect();
    let exact = fits.iter().position(|(spelling, ..)| name == spelling);
    if let Some(exact) = exact {
        fits = vec![fits.swap_remove(exact)];
    }
    match &fits[..] {
        [] => Err(usage_error(format!("unknown option `{text}'"))),
        [(spelling, option, true)] if !option.can_be_negated => {
            Err(short_error(format!("option `{spelling}' isn't available")))
        }
        [(_, option, is_negated)] => Ok(WrittenOption {
            option: *option,
            is_negated: *is_negated,
        }),
        [(first, ..), (second, ..), ..] => Err(usage_error(format!(
            "ambiguous option: {name} (could be --{first} or --{second})"
        ))),
    }
}

fn short_error(message: String) -> ArgumentsError {
    ArgumentsError {
        message,
        shows_usage: false,
    }
}

fn usage_error(message: String) -> ArgumentsError {
    ArgumentsError {
        message,
        shows_usage: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<ArchiveArguments, String> {
        let words = words.iter().map(|word| BStr::new(*word));
        ArchiveArguments::parse(words).map_err(|error| error.message)
    }

    #[test]
    fn options_are_taken_apart() {
        let words = ["-lv9", "--form", "zip", "HEAD", "--pre=a/", "--", "--list"];
        let parsed = parse(&words).expect("all is known");
        assert!(parsed.lists && parsed.is_verbose && parsed.level == Some(9));
        assert_eq!(parsed.format, Some("zip".into()));
        assert_eq!(parsed.prefix, "a/");
        assert_eq!(parsed.operands, ["HEAD", "--list"]);
        let parsed = parse(&["-l", "--no-list", "--format=tar", "--no-format", "-"]);
        let parsed = parsed.expect("all is known");
        assert!(!parsed.lists && parsed.format.is_none());
        assert_eq!(parsed.operands, ["-"]);
        assert_eq!(
            parse(&["-ofile"]).map(|it| it.misplaced),
            Ok(Some("output"))
        );
    }

    #[test]
    fn mistakes_are_told_in_the_words_of_git() {
        for (words, message) in [
            (&["--bad=x"][..], "unknown option `bad=x'"),
            (&["-x"], "unknown switch `x'"),
            (&["--prefix"], "option `prefix' requires a value"),
            (&["-o"], "switch `o' requires a value"),
            (&["--list=x"], "option `list' takes no value"),
            (&["--no-mtime"], "option `no-mtime' isn't available"),
            (
                &["--add=x"],
                "ambiguous option: add (could be --add-file or --add-virtual-file)",
            ),
        ] {
            assert_eq!(parse(words).expect_err("it is wrong"), message);
        }
    }
}
