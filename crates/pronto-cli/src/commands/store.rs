//! `store`: repositories in an object store.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pronto::io::progress::Progress;
use pronto_store::{DatabaseAddress, Generation, Store, Stored};

use crate::{CliError, Context, ExitCode};

mod examine;
mod import;
mod settings;
mod transfer;
mod upkeep;

/// Arguments of `store`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "STORE: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`. \
    Credentials are taken from the variables of the environment that the programs of these services use."
)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Options of all commands.
#[derive(clap::Args, Debug)]
struct Common {
    /// The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores
    /// without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL", global = true)]
    generations: Option<String>,
    /// Show no progress
    #[arg(short, long, global = true)]
    quiet: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Make a repository in the store of a Git repository, or one of each below a directory
    Import(import::Import),
    /// Make a bare Git repository of a generation
    Export(transfer::Export),
    /// Make a repository of a generation of another one
    Copy(transfer::Copy),
    /// Read everything, and print what is missing or damaged
    Verify(examine::Verify),
    /// Pack again what is due, and delete what has expired
    Upkeep(upkeep::Upkeep),
    /// List the repositories of the store, or the generations of one
    List(examine::List),
    /// Show or change the configuration of a repository
    Config(settings::Config),
    /// Show or change the default branch of a repository
    Head(settings::Head),
}

/// A repository in a store, as the user names it.
#[derive(clap::Args, Debug)]
struct Named {
    /// The store
    store: String,
    /// The name of the repository
    name: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let common = &args.common;
    match &args.command {
        Command::Import(import) => import.run(common, context),
        Command::Export(export) => export.run(common, context),
        Command::Copy(copy) => copy.run(common, context),
        Command::Verify(verify) => verify.run(common, context),
        Command::Upkeep(upkeep) => upkeep.run(common, context),
        Command::List(list) => list.run(common, context),
        Command::Config(config) => config.run(common, context),
        Command::Head(head) => head.run(common, context),
    }
}

/// Opens the store at `url`, with the database that has its generations.
fn open(url: &str, generations: Option<&str>, context: &mut Context) -> Result<Store, CliError> {
    let environment = context.environment()?;
    let store = Store::open(url, &environment)?;
    match generations {
        None => Ok(store),
        Some(address) => {
            let address = DatabaseAddress::parse(address, &environment)?;
            store.with_generations(address).map_err(CliError::from)
        }
    }
}

impl Common {
    fn open(&self, url: &str, context: &mut Context) -> Result<Store, CliError> {
        open(url, self.generations.as_deref(), context)
    }

    fn progress(&self, context: &mut Context) -> Arc<dyn Progress> {
        let is_shown = !self.quiet && std::io::stderr().is_terminal();
        context.prompt_progress(is_shown)
    }
}

/// A repository in a store.
struct Place {
    store: Store,
    repository: Stored,
}

impl Place {
    fn open(store: Store, name: &str) -> Result<Self, CliError> {
        let repository = store.repository(name)?;
        Ok(Place { store, repository })
    }

    /// Returns a generation, or the newest one.
    fn generation(&self, number: Option<u64>) -> Result<Arc<Generation>, CliError> {
        let found = match number {
            Some(number) => self.store.wait(self.repository.at(number)),
            None => self.store.wait(self.repository.latest()),
        };
        found.map_err(CliError::from)
    }
}

impl Named {
    fn open(&self, common: &Common, context: &mut Context) -> Result<Place, CliError> {
        Place::open(common.open(&self.store, context)?, &self.name)
    }
}

/// Returns the directory for temporary files: the one that the user has chosen, or that of the machine.
fn scratch(chosen: Option<&Path>, context: &mut Context) -> Result<PathBuf, CliError> {
    let environment = context.environment()?;
    let chosen = chosen.or(environment.path("TMPDIR"));
    Ok(environment.absolute(chosen.unwrap_or(Path::new("/tmp"))))
}
