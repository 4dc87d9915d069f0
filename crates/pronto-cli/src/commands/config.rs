//! `config`: read and change configuration.

mod arguments;
mod read;
mod source;
mod types;
mod write;

use bstr::BStr;
use std::ffi::OsString;

use crate::{CliError, Context, ExitCode};

/// Arguments of `config`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Options (--get, --get-all, --get-regexp, --get-urlmatch, --add, --replace-all, --unset,
    /// --unset-all, --rename-section, --remove-section, --list, --get-color; --global, --system,
    /// --local, --worktree, --file, --blob; --type, --null, --name-only, --show-origin,
    /// --show-scope, --includes, --default, --fixed-value), then a name and values
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if let [only] = args.arguments.as_slice()
        && only.as_encoded_bytes().contains(&b'=')
    {
        return Err(CliError::unsupported("'config NAME=VALUE'"));
    }
    let request = arguments::parse(&args.arguments)?;
    if matches!(
        request.action,
        arguments::ConfigAction::Get | arguments::ConfigAction::GetAll
    ) {
        // Git refuses a malformed key before it reads the configuration.
        pronto::config::canonical(BStr::new(&request.values[0]))
            .map_err(|error| CliError::error(error.message()))?;
    }
    let source = source::ConfigSource::find(&request, context)?;
    if request.action.writes() {
        write::run(&request, &source, context)
    } else {
        read::run(&request, &source, context)
    }
}
