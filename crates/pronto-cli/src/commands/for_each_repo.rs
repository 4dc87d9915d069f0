//! `for-each-repo`: run a command in each repository that a configuration variable names.

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use bstr::ByteSlice;
use pronto::config::{self, Config};
use pronto::environment::variables_of_repository;

use crate::maintenance::own_program;
use crate::{CliError, Context, ExitCode};

/// Arguments of `for-each-repo`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// `--config=KEY`: the variable that lists repositories; `--keep-going`: continue after a
    /// failure; then the command and its arguments
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let call = ParsedCall::read(&args.words)?;
    let places = call.places(context)?;
    let mut code = ExitCode::SUCCESS;
    for place in places {
        let mut command = own_program(context)?;
        for name in variables_of_repository() {
            command.env_remove(name);
        }
        command.arg("-C").arg(&place).args(&call.command);
        context.out.flush()?;
        let traced = pronto_io::child::started("?", &command);
        let mut child = command.spawn()?;
        let status = child.wait()?;
        traced.ended(child.id(), status);
        if status.success() {
            continue;
        }
        if !call.keeps_going {
            let by_signal = status.signal().map_or(1, |signal| 128 + signal);
            let number = status.code().unwrap_or(by_signal);
            return Ok(ExitCode::new(u8::try_from(number).unwrap_or(1)));
        }
        code = ExitCode::FAILURE;
    }
    Ok(code)
}

/// A parsed call.
struct ParsedCall {
    key: String,
    keeps_going: bool,
    command: Vec<OsString>,
}

impl ParsedCall {
    /// Parses the arguments. Git runs calls in any other form.
    fn read(words: &[OsString]) -> Result<Self, CliError> {
        let unsupported =
            || CliError::unsupported("this combination of arguments of 'for-each-repo'");
        let (mut key, mut keeps_going) = (None, false);
        let mut at = 0;
        while let Some(word) = words.get(at).map(|word| word.as_bytes()) {
            if let Some(name) = word.strip_prefix(b"--config=") {
                key = Some(name);
            } else if word == b"--keep-going" {
                keeps_going = true;
            } else if word == b"--" {
                at += 1;
                break;
            } else if word.starts_with(b"-") {
                return Err(unsupported());
            } else {
                break;
            }
            at += 1;
        }
        let key = key.and_then(|key| config::canonical(key.as_bstr()).ok());
        let key = key.and_then(|key| String::from_utf8(key.into()).ok());
        Ok(ParsedCall {
            key: key.ok_or_else(unsupported)?,
            keeps_going,
            command: words[at..].to_vec(),
        })
    }

    /// Returns the repositories that the configuration variable names.
    fn places(&self, context: &mut Context) -> Result<Vec<PathBuf>, CliError> {
        let environment = context.environment()?;
        let repository = context.repository_if_any()?;
        let other: Config;
        let config = match &repository {
            Some(repository) => repository.config(),
            None => {
                other = config::without_repository(&environment)?;
                &other
            }
        };
        let mut places = Vec::new();
        for entry in config.entries(&self.key) {
            // git reports an entry without a value.
            let known = entry
                .value
                .and_then(|_| entry.path(environment.home()).ok()?);
            places.push(known.ok_or_else(|| {
                CliError::unsupported("a repository list with an entry that has no value")
            })?);
        }
        Ok(places)
    }
}
