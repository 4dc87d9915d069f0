//! `store`: manage repositories in an object store. The program `pronto-server` implements the
//! command.

#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
mod arguments;
#[cfg(feature = "serve")]
mod examine;
#[cfg(feature = "serve")]
mod import;
#[cfg(feature = "serve")]
mod retries;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod settings;
#[cfg(feature = "serve")]
mod transfer;
#[cfg(feature = "serve")]
mod upkeep;

use arguments::{CommonArguments, StoreCommand};

use crate::{CliError, Context, ExitCode};

#[cfg(feature = "serve")]
pub(super) use server::run as run_here;

/// Arguments of `store`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "STORE: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`. \
    Credentials are taken from the variables of the environment that the programs of these services use."
)]
#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
pub(crate) struct Args {
    #[command(flatten)]
    common: CommonArguments,
    #[command(subcommand)]
    command: StoreCommand,
}

/// Continues in the program `pronto-server`.
pub(crate) fn run(_: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    Err(context.become_server("store"))
}
