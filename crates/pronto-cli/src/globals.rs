//! Parses the options before the command, in order, as Git does.
//!
//! Git turns most of these options into environment variables, for itself and for every child
//! process. pronto does not change the environment of this process: [`Globals::variable`] looks at
//! the options first, and [`Globals::variables`] must be set on child processes.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command as Definition};
use pronto_io::shell::quote_into;
use rustix::fs::{Mode, OFlags};

use crate::error::{CliError, display};

const PARAMETERS: &str = "GIT_CONFIG_PARAMETERS";

/// The options before the command.
#[derive(Debug, Default)]
pub struct Globals {
    variables: Vec<(&'static str, OsString)>,
    /// The directory in which the process started; `None` unless `-C` has changed the directory.
    pub(crate) start: Option<OwnedFd>,
    /// The path of the directory in which the process started, if known.
    pub(crate) original_dir: Option<PathBuf>,
    /// Whether output is paged: `-p` (`--paginate`) or `-P` (`--no-pager`).
    pub paginate: Option<bool>,
    /// Whether the repository is treated as bare (`--bare`).
    pub(crate) bare: bool,
    /// The output file of `--trace-chrome`, for a trace in the format of Chrome and Perfetto.
    pub trace_chrome: Option<PathBuf>,
}

/// Returns an environment variable of the process.
fn of_process(name: &OsStr) -> Option<OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "options before the command are read before there is an environment"
    )]
    std::env::var_os(name)
}

/// The kind of arguments after the options.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// A command at this index of the arguments.
    Command(usize),
    /// No command.
    Nothing,
    /// The option `--version` or `-v`.
    Version,
    /// The option `--help` or `-h`, at this index of the arguments.
    Help(usize),
    /// The option `--list-native`.
    ListNative,
    /// An option that only git has, at this index of the arguments.
    Unknown(usize),
}

/// An option before the command that sets an environment variable.
struct OptionVariable {
    name: &'static str,
    variable: &'static str,
    /// The fixed value of the variable; `None` for the value of the option.
    value: Option<&'static str>,
    help: &'static str,
}

const OPTIONS: &[OptionVariable] = &[
    valued("--git-dir", "GIT_DIR", "Use the repository at this path"),
    valued(
        "--work-tree",
        "GIT_WORK_TREE",
        "Use the worktree at this path",
    ),
    valued("--namespace", "GIT_NAMESPACE", "Use this namespace of refs"),
    valued(
        "--attr-source",
        "GIT_ATTR_SOURCE",
        "Read attributes from this tree",
    ),
    fixed(
        "--no-replace-objects",
        "GIT_NO_REPLACE_OBJECTS",
        "1",
        "Do not follow replacement refs",
    ),
    fixed(
        "--no-lazy-fetch",
        "GIT_NO_LAZY_FETCH",
        "1",
        "Do not fetch missing objects on demand",
    ),
    fixed(
        "--no-optional-locks",
        "GIT_OPTIONAL_LOCKS",
        "0",
        "Do not take optional locks",
    ),
    fixed("--no-advice", "GIT_ADVICE", "0", "Do not print advice"),
    fixed(
        "--literal-pathspecs",
        "GIT_LITERAL_PATHSPECS",
        "1",
        "Treat pathspecs literally",
    ),
    fixed(
        "--no-literal-pathspecs",
        "GIT_LITERAL_PATHSPECS",
        "0",
        "Do not treat pathspecs literally",
    ),
    fixed(
        "--glob-pathspecs",
        "GIT_GLOB_PATHSPECS",
        "1",
        "Treat all pathspecs as globs",
    ),
    fixed(
        "--noglob-pathspecs",
        "GIT_NOGLOB_PATHSPECS",
        "1",
        "Treat no pathspec as a glob",
    ),
    fixed(
        "--icase-pathspecs",
        "GIT_ICASE_PATHSPECS",
        "1",
        "Match pathspecs without regard to case",
    ),
];

const fn valued(name: &'static str, variable: &'static str, help: &'static str) -> OptionVariable {
    OptionVariable {
        name,
        variable,
        value: None,
        help,
    }
}

const fn fixed(
    name: &'static str,
    variable: &'static str,
    value: &'static str,
    help: &'static str,
) -> OptionVariable {
    OptionVariable {
        name,
        variable,
        value: Some(value),
        help,
    }
}

/// Adds the options before the command to `definition`, for the documentation.
pub(crate) fn define(definition: Definition) -> Definition {
    let flag = |long: &'static str, help: &'static str| {
        Arg::new(long)
            .long(long)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    let with_value = |long: &'static str, value: &'static str, help: &'static str| {
        Arg::new(long).long(long).value_name(value).help(help)
    };
    let mut arguments = vec![
        Arg::new("C")
            .short('C')
            .value_name("PATH")
            .help("Run as if started in this directory"),
        Arg::new("c")
            .short('c')
            .value_name("NAME=VALUE")
            .help("Set a configuration variable"),
        with_value(
            "config-env",
            "NAME=VARIABLE",
            "Set a configuration variable to the value of an environment variable",
        ),
        with_value("exec-path", "PATH", "The directory of git's programs"),
        flag("paginate", "Pass the output through a pager").short('p'),
        flag("no-pager", "Do not use a pager").short('P'),
        flag("bare", "Treat the repository as bare"),
    ];
    arguments.extend(OPTIONS.iter().map(|option| {
        let name = option.name.trim_start_matches('-');
        match option.value {
            None => with_value(name, "VALUE", option.help),
            Some(_) => flag(name, option.help),
        }
    }));
    arguments.extend([
        with_value(
            "trace-chrome",
            "FILE",
            "Write a trace for Chrome and Perfetto",
        ),
        flag("list-native", "List the native commands"),
        flag("version", "Show the version").short('v'),
        flag("help", "Show the commands, or the manual of one").short('h'),
    ]);
    definition.args(arguments)
}

impl Globals {
    /// Parses the options in `arguments`, of which the first is the name of the program. Changes
    /// the directory for `-C`, and returns the kind of the remaining arguments.
    pub(crate) fn read(arguments: &[OsString]) -> Result<(Self, Rest), (Self, CliError)> {
        let mut globals = Globals::default();
        match globals.walk(arguments) {
            Ok(rest) => Ok((globals, rest)),
            Err(error) => Err((globals, error)),
        }
    }

    fn walk(&mut self, arguments: &[OsString]) -> Result<Rest, CliError> {
        let mut at = 1;
        while let Some(argument) = arguments.get(at) {
            let bytes = argument.as_bytes();
            if bytes.first() != Some(&b'-') {
                return Ok(Rest::Command(at));
            }
            match bytes {
                b"--version" | b"-v" => return Ok(Rest::Version),
                b"--help" | b"-h" => return Ok(Rest::Help(at)),
                b"--list-native" => return Ok(Rest::ListNative),
                _ => {}
            }
            match self.option(bytes, arguments.get(at + 1))? {
                Some(used) => at += used,
                None => return Ok(Rest::Unknown(at)),
            }
        }
        Ok(Rest::Nothing)
    }

    /// Parses one option. Returns the number of arguments that the option has used, or `None` for
    /// an unknown option.
    fn option(&mut self, bytes: &[u8], next: Option<&OsString>) -> Result<Option<usize>, CliError> {
        match bytes {
            b"-p" | b"--paginate" => self.paginate = Some(true),
            b"-P" | b"--no-pager" => {
                self.paginate = Some(false);
                self.set("GIT_PAGER", "cat".into());
            }
            b"--bare" => self.treat_as_bare()?,
            b"-C" => {
                let message = "no directory given for '-C' option";
                self.change_directory(next.ok_or_else(|| usage(message))?)?;
                return Ok(Some(2));
            }
            b"-c" => {
                let message = "-c expects a configuration string";
                self.parameter(next.ok_or_else(|| usage(message))?.as_bytes())?;
                return Ok(Some(2));
            }
            b"--config-env" => {
                let message = "no config key given for --config-env";
                self.parameter_from(next.ok_or_else(|| usage(message))?.as_bytes())?;
                return Ok(Some(2));
            }
            b"--trace-chrome" => {
                let message = "no file given for --trace-chrome";
                self.trace_chrome = Some(next.ok_or_else(|| usage(message))?.into());
                return Ok(Some(2));
            }
            _ => return self.spelt_out(bytes, next),
        }
        Ok(Some(1))
    }

    fn spelt_out(
        &mut self,
        bytes: &[u8],
        next: Option<&OsString>,
    ) -> Result<Option<usize>, CliError> {
        let equals = bytes.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&bytes[..at], Some(&bytes[at + 1..])),
            None => (bytes, None),
        };
        match (name, value) {
            (b"--exec-path", Some(value)) => self.set("GIT_EXEC_PATH", os(value)),
            (b"--config-env", Some(value)) => self.parameter_from(value)?,
            (b"--trace-chrome", Some(value)) => self.trace_chrome = Some(os(value).into()),
            _ => {
                let known = OPTIONS.iter().find(|known| known.name.as_bytes() == name);
                let Some(known) = known else {
                    return Ok(None);
                };
                match (known.value, value) {
                    (Some(fixed), None) => self.set(known.variable, fixed.into()),
                    (None, Some(value)) => self.set(known.variable, os(value)),
                    (None, None) => {
                        let message = format!("no directory given for '{}' option", known.name);
                        let value = next.ok_or_else(|| usage(&message))?;
                        self.set(known.variable, value.clone());
                        return Ok(Some(2));
                    }
                    (Some(_), Some(_)) => return Ok(None),
                }
            }
        }
        Ok(Some(1))
    }

    /// Returns the value of an environment variable, as changed by the options before the command.
    pub fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.variables.iter().rev().find(|(key, _)| *key == name);
        match own {
            Some((_, value)) => Some(value.clone()),
            None => of_process(name.as_ref()),
        }
    }

    /// Returns the environment variables that the options before the command set. The caller sets
    /// them on each child process of the command.
    pub fn variables(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (*name, value.as_os_str()))
    }

    /// Returns the [`variables`](Self::variables) that do not result from options. git needs only
    /// these, because it parses the options again.
    pub(crate) fn trace_variables(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        self.variables()
            .filter(|(name, _)| name.starts_with("GIT_TRACE2_PARENT_"))
    }

    pub(crate) fn set(&mut self, name: &'static str, value: OsString) {
        self.variables.retain(|(key, _)| *key != name);
        self.variables.push((name, value));
    }

    fn treat_as_bare(&mut self) -> Result<(), CliError> {
        if self.variable("GIT_DIR").is_none() {
            let here = std::env::current_dir()
                .map_err(|_| CliError::fatal("unable to get current working directory"))?;
            self.set("GIT_DIR", here.into());
        }
        self.set("GIT_IMPLICIT_WORK_TREE", "0".into());
        self.bare = true;
        Ok(())
    }

    fn change_directory(&mut self, directory: &OsStr) -> Result<(), CliError> {
        if directory.is_empty() {
            return Ok(());
        }
        if self.start.is_none() {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            self.start = rustix::fs::open(".", flags, Mode::empty()).ok();
            self.original_dir = std::env::current_dir().ok();
        }
        std::env::set_current_dir(directory).map_err(|error| {
            let (name, reason) = (display(directory), pronto_io::error::reason(&error));
            CliError::fatal(format!("cannot change to '{name}': {reason}"))
        })
    }

    /// Handles `-c NAME=VALUE`, or `-c NAME` for a boolean that is true.
    fn parameter(&mut self, text: &[u8]) -> Result<(), CliError> {
        let equals = text.iter().position(|&byte| byte == b'=');
        let (name, value) = match equals {
            Some(at) => (&text[..at], Some(&text[at + 1..])),
            None => (text, None),
        };
        if name.is_empty() {
            return Err(CliError::error("empty config key").with_code(crate::ExitCode::FATAL));
        }
        self.push(name, value);
        Ok(())
    }

    /// Handles `--config-env NAME=VARIABLE`.
    fn parameter_from(&mut self, text: &[u8]) -> Result<(), CliError> {
        let lossy = String::from_utf8_lossy(text).into_owned();
        let Some(at) = text.iter().rposition(|&byte| byte == b'=') else {
            return Err(CliError::fatal(format!("invalid config format: {lossy}")));
        };
        let (name, variable) = (&text[..at], os(&text[at + 1..]));
        if variable.is_empty() {
            let name = String::from_utf8_lossy(name);
            let message = format!("missing environment variable name for configuration '{name}'");
            return Err(CliError::fatal(message));
        }
        let Some(value) = of_process(&variable) else {
            let (name, variable) = (String::from_utf8_lossy(name), display(&variable));
            let message =
                format!("missing environment variable '{variable}' for configuration '{name}'");
            return Err(CliError::fatal(message));
        };
        self.push(name, Some(value.as_bytes()));
        Ok(())
    }

    fn push(&mut self, name: &[u8], value: Option<&[u8]>) {
        let mut text = self.variable(PARAMETERS).unwrap_or_default().into_vec();
        if !text.is_empty() {
            text.push(b' ');
        }
        quote_into(name, &mut text);
        text.push(b'=');
        if let Some(value) = value {
            quote_into(value, &mut text);
        }
        self.set(PARAMETERS, OsString::from_vec(text));
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}

/// Returns a usage error. git prints its usage after the message.
fn usage(message: &str) -> CliError {
    CliError::misuse(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> (Globals, Rest) {
        let all: Vec<OsString> = std::iter::once(&"pronto")
            .chain(arguments)
            .map(Into::into)
            .collect();
        Globals::read(&all)
            .map_err(|(_, error)| error)
            .expect("the options are well formed")
    }

    #[test]
    fn options_become_variables() {
        let (globals, rest) = read(&["--git-dir=a", "--work-tree", "b", "--icase-pathspecs", "x"]);
        assert_eq!(rest, Rest::Command(5));
        assert_eq!(globals.variable("GIT_DIR"), Some("a".into()));
        assert_eq!(globals.variable("GIT_WORK_TREE"), Some("b".into()));
        assert_eq!(globals.variable("GIT_ICASE_PATHSPECS"), Some("1".into()));
    }

    #[test]
    fn parameters_are_quoted_and_kept_in_order() {
        let (globals, _) = read(&["-c", "a.b=it's!", "-c", "c.d", "-c", "e.f="]);
        let expected = r"'a.b'='it'\''s'\!'' 'c.d'= 'e.f'=''";
        assert_eq!(globals.variable(PARAMETERS), Some(expected.into()));
    }

    #[test]
    fn what_only_git_knows_is_left_alone() {
        assert_eq!(read(&["--html-path"]).1, Rest::Unknown(1));
        assert_eq!(read(&["--exec-path"]).1, Rest::Unknown(1));
        assert_eq!(read(&["--bare=1"]).1, Rest::Unknown(1));
        assert_eq!(read(&["-P", "--version"]).1, Rest::Version);
        assert_eq!(read(&["-P"]).1, Rest::Nothing);
    }
}
