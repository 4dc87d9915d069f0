//! Converts Git's way of writing options into the form that clap parses.
//!
//! clap's derive defines a command. [`normalise`] reads the arguments by this definition as Git
//! would and passes `--name`, `--name=value` and, after `--`, the plain arguments to clap:
//!
//! - long options may be abbreviated as long as that is unambiguous;
//! - flags may be bundled, and a value may follow its letter (`-uno`, `-b name`);
//! - an option whose value is optional takes it only when attached (`--color=always`, `-M50%`);
//! - options and plain arguments may be mixed up to `--` or `--end-of-options`;
//! - the last of several options wins, and every option has a `--no-` form that cancels earlier
//!   ones.
//!
//! For the author of a command that means:
//!
//! | field of `Args` | what the user can write |
//! |---|---|
//! | `quiet: bool` | `--quiet`, `--no-quiet` |
//! | `no_checkout: bool` | `--no-checkout`, `--checkout` |
//! | `progress: Option<bool>` | `--progress`, `--no-progress`, or neither |
//! | `depth: Option<String>` | `--depth=1`, `--depth 1`, `--no-depth` |
//! | `config: Vec<OsString>` | `--config a`, … `--no-config` empties it |
//! | `#[arg(action = Count)] verbose: u8` | `-v`, `-vv`, `--no-verbose` |
//! | `#[arg(num_args = 0..=1, default_missing_value = "all")] untracked: Option<String>` | `-u`, `-uno` |
//!
//! `#[arg(overrides_with_all = ["short", "long"])]` makes the last of several different options
//! win.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::{ArgAction, Command};

use crate::error::CliError;
use crate::git_names;
use reader::{Reader, Takes, is_toggle, takes};

mod one_way;
mod reader;

/// Arguments in the form that clap reads.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Normalised {
    /// Options, then `--`, then the plain arguments.
    pub tokens: Vec<OsString>,
    /// The number of plain arguments before a `--`, if there was one.
    pub separator: Option<usize>,
}

/// Completes a definition made by clap's derive for Git's habits (see the table above).
pub fn complete(definition: Command) -> Command {
    definition
        .no_binary_name(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .args_override_self(true)
        .mut_args(|argument| {
            if is_toggle(&argument) {
                argument
                    .num_args(0..=1)
                    .require_equals(true)
                    .default_missing_value("true")
            } else if takes(&argument) == Takes::Optional {
                argument.require_equals(true)
            } else {
                argument
            }
        })
        .mut_subcommands(complete)
}

/// Does the same as [`complete`] for documentation: an `Option<bool>` is shown as a flag.
pub fn document(definition: Command) -> Command {
    definition
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_args(|argument| {
            if is_toggle(&argument) {
                argument.action(ArgAction::SetTrue).num_args(0)
            } else if takes(&argument) == Takes::Optional {
                argument.require_equals(true)
            } else {
                argument
            }
        })
        .disable_help_subcommand(true)
        .mut_subcommands(document)
}

/// Converts `arguments` into the form that clap parses, by the options in `definition`.
///
/// # Errors
/// Fails with a usage error if an option is unknown in `definition`, ambiguous, or malformed.
pub fn normalise(definition: &Command, arguments: &[OsString]) -> Result<Normalised, CliError> {
    read(definition, arguments, false)
}

/// Does the same as [`normalise`] for commands whose options end at the first plain argument.
///
/// # Errors
/// As for [`normalise`].
pub fn normalise_leading(
    definition: &Command,
    arguments: &[OsString],
) -> Result<Normalised, CliError> {
    read(definition, arguments, true)
}

fn read(
    definition: &Command,
    arguments: &[OsString],
    ends_at_plain: bool,
) -> Result<Normalised, CliError> {
    let mut reader = Reader {
        definition,
        is_own: is_own(definition, arguments),
        options: Vec::new(),
        plain: Vec::new(),
    };
    let mut separator = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        match bytes {
            b"--" => {
                separator = Some(reader.plain.len());
                reader.plain.extend(rest.by_ref().cloned());
            }
            b"--end-of-options" => {
                for argument in rest.by_ref() {
                    if argument == "--" && separator.is_none() {
                        separator = Some(reader.plain.len());
                    } else {
                        reader.plain.push(argument.clone());
                    }
                }
            }
            [b'-', b'-', name @ ..] => reader.long(name, &mut rest)?,
            [b'-', _, ..] => reader.short(&bytes[1..], &mut rest)?,
            _ => {
                reader.plain.push(argument.clone());
                if ends_at_plain {
                    reader.plain.extend(rest.by_ref().cloned());
                }
            }
        }
    }
    let mut tokens: Vec<OsString> = reader
        .options
        .into_iter()
        .map(|option| option.token)
        .collect();
    tokens.push("--".into());
    tokens.append(&mut reader.plain);
    Ok(Normalised { tokens, separator })
}

/// Returns whether only pronto can run the call of the defined command, or of the command above a
/// subcommand.
fn is_own(definition: &Command, arguments: &[OsString]) -> bool {
    let path = definition.get_bin_name().unwrap_or_default();
    let command = path.split(' ').nth(1);
    command.is_some_and(|command| git_names::is_own_call(command, arguments))
}

/// Returns whether `command` has a `--no-` form of `option`.
pub(crate) fn may_negate(command: &str, option: &str) -> bool {
    !one_way::is_one_way(command, option)
}

/// Returns whether the only argument requests the usage (`-h`).
pub(crate) fn asks_for_usage(arguments: &[OsString]) -> bool {
    matches!(arguments, [only] if only == OsStr::new("-h") || only == OsStr::new("--help-all"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    #[derive(clap::Args, Debug)]
    struct Args {
        #[arg(short, long)]
        quiet: bool,
        #[arg(short = 'n', long)]
        no_checkout: bool,
        #[arg(long)]
        progress: Option<bool>,
        #[arg(short, long)]
        branch: Option<OsString>,
        #[arg(long)]
        config: Vec<OsString>,
        #[arg(short, long, action = ArgAction::Count)]
        verbose: u8,
        #[arg(short, long, num_args = 0..=1, default_missing_value = "all")]
        untracked_files: Option<String>,
        paths: Vec<OsString>,
    }

    fn parse(arguments: &[&str]) -> Result<(Args, Option<usize>), CliError> {
        let definition = complete(Args::augment_args(Command::new("test")));
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        let normalised = normalise(&definition, &arguments)?;
        let mut matches = definition
            .try_get_matches_from(normalised.tokens)
            .expect("normalised arguments are understood");
        let args = Args::from_arg_matches_mut(&mut matches).expect("the definition fits");
        Ok((args, normalised.separator))
    }

    fn refused(arguments: &[&str]) -> String {
        parse(arguments).expect_err("it is wrong").messages()[0].clone()
    }

    #[test]
    fn abbreviations_are_completed_when_they_are_unambiguous() {
        assert!(parse(&["--qui"]).expect("fine").0.quiet);
        assert_eq!(parse(&["--br=x"]).expect("fine").0.branch, Some("x".into()));
        assert_eq!(
            refused(&["--n"]),
            "ambiguous option: n (could be --no-quiet or --no-checkout)"
        );
        assert_eq!(
            refused(&["--zap"]),
            "option '--zap' of 'test' is not implemented natively"
        );
        assert_eq!(
            refused(&["-qz"]),
            "option '-z' of 'test' is not implemented natively"
        );
    }

    #[test]
    fn the_last_one_wins_and_negations_take_back() {
        assert_eq!(
            parse(&["--progress", "--no-progress"])
                .expect("fine")
                .0
                .progress,
            Some(false)
        );
        assert_eq!(
            parse(&["--no-progress", "--progress"])
                .expect("fine")
                .0
                .progress,
            Some(true)
        );
        assert_eq!(parse(&[]).expect("fine").0.progress, None);
        assert!(!parse(&["-q", "--no-quiet"]).expect("fine").0.quiet);
        assert!(!parse(&["-n", "--checkout"]).expect("fine").0.no_checkout);
        assert!(parse(&["--no-check"]).expect("fine").0.no_checkout);
        assert_eq!(
            parse(&["-b", "a", "-bb", "--no-branch"])
                .expect("fine")
                .0
                .branch,
            None
        );
        assert_eq!(
            parse(&["-b", "a", "--branch", "--x"]).expect("ok").0.branch,
            Some("--x".into())
        );
        let (args, _) = parse(&[
            "--config",
            "a",
            "--no-config",
            "--config=b=c",
            "--config",
            "d",
        ])
        .expect("ok");
        assert_eq!(args.config, ["b=c", "d"]);
        assert_eq!(
            parse(&["-vv", "--no-verbose", "-v"])
                .expect("fine")
                .0
                .verbose,
            1
        );
    }

    #[test]
    fn optional_values_are_attached_and_bundles_taken_apart() {
        let (args, _) = parse(&["-qu", "no"]).expect("fine");
        assert_eq!(
            (args.untracked_files.as_deref(), args.paths),
            (Some("all"), vec!["no".into()])
        );
        assert_eq!(
            parse(&["-quno"]).expect("ok").0.untracked_files.as_deref(),
            Some("no")
        );
        assert_eq!(
            parse(&["--untracked"])
                .expect("ok")
                .0
                .untracked_files
                .as_deref(),
            Some("all")
        );
        assert_eq!(
            refused(&["--progress=yes"]),
            "option `progress' takes no value"
        );
        assert_eq!(
            refused(&["--no-branch=x"]),
            "option `no-branch' takes no value"
        );
        assert_eq!(refused(&["-b"]), "switch `b' requires a value");
        assert_eq!(refused(&["--branch"]), "option `branch' requires a value");
    }

    #[test]
    fn leading_options_end_at_the_first_plain_argument() {
        let definition = complete(Args::augment_args(Command::new("test")));
        let arguments = ["-q", "a", "-q", "--", "b"].map(OsString::from);
        let normalised = normalise_leading(&definition, &arguments).expect("fine");
        let expected = ["--quiet", "--", "a", "-q", "--", "b"].map(OsString::from);
        assert_eq!(normalised.tokens, expected);
    }

    #[test]
    fn the_separator_is_remembered() {
        let (args, separator) = parse(&["a", "-", "--", "-q", "--"]).expect("fine");
        assert_eq!(
            (args.paths.len(), separator, args.quiet),
            (4, Some(2), false)
        );
        let (args, separator) = parse(&["a", "--end-of-options", "-q", "--", "b"]).expect("fine");
        assert_eq!(
            (args.paths.len(), separator, args.quiet),
            (3, Some(2), false)
        );
        assert_eq!(parse(&["a"]).expect("fine").1, None);
    }
}
