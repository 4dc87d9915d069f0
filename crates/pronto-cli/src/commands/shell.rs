//! `shell`: serve one request of a client that sshd has authenticated. The program `pronto-server`
//! implements the command.

#[cfg(feature = "serve")]
mod server;

use std::path::{Path, PathBuf};

use crate::{CliError, Context, ExitCode};

#[cfg(feature = "serve")]
pub(super) use server::run as run_here;

/// Arguments of `shell`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Read the configuration of the server from this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The user of the client
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

impl Args {
    /// Returns the configuration file and the user of the arguments.
    fn given(&self) -> Result<(&Path, &str), CliError> {
        match (&self.config, &self.user) {
            (Some(config), Some(user)) => Ok((config, user)),
            // Git has a command of this name.
            (None, None) => Err(CliError::unsupported("'shell' without --config")),
            _ => Err(CliError::usage(
                "'shell' needs --config FILE and --user NAME",
            )),
        }
    }
}

/// Continues in the program `pronto-server`.
pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    args.given()?;
    Err(context.become_server("shell"))
}
