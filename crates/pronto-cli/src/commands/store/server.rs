//! `store` in the program `pronto-server`: opens stores, and repositories in them.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pronto::Progress;
use pronto_store::{BlockingStore, DatabaseAddress, ErrorKind, Generation, StoredRepository};

use super::Args;
use super::arguments::{CommonArguments, RepositoryArguments, StoreCommand};
use super::retries::RetryReport;
use crate::{CliError, Context, ExitCode};

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let common = &args.common;
    match &args.command {
        StoreCommand::Import(import) => import.run(common, context),
        StoreCommand::Export(export) => export.run(common, context),
        StoreCommand::Copy(copy) => copy.run(common, context),
        StoreCommand::Verify(verify) => verify.run(common, context),
        StoreCommand::Upkeep(upkeep) => upkeep.run(common, context),
        StoreCommand::List(list) => list.run(common, context),
        StoreCommand::Config(config) => config.run(common, context),
        StoreCommand::Head(head) => head.run(common, context),
    }
}

/// The address of the database of generations, and the option that gave the address.
#[derive(Clone, Copy)]
pub(super) struct DatabaseOption<'a> {
    pub(super) option: &'static str,
    pub(super) address: Option<&'a str>,
}

/// Opens the store at `url` with the database that records its generations, and checks that both
/// respond.
pub(super) fn open(
    url: &str,
    generations: DatabaseOption<'_>,
    context: &mut Context,
) -> Result<BlockingStore, CliError> {
    let environment = context.environment()?;
    let store = BlockingStore::open(url, &environment)?;
    let store = match generations.address {
        None => store,
        Some(address) => {
            let address = DatabaseAddress::parse(address, &environment);
            // The message names the option, because an abbreviation may be the name of another
            // option (`--generation`).
            let address = address.map_err(|error| {
                let message = format!("option '{}': {}", generations.option, error.message());
                let usage = CliError::usage(message);
                match error.hint() {
                    Some(hint) => usage.with_hint(hint),
                    None => usage,
                }
            })?;
            store.with_generations(address)?
        }
    };
    if std::io::stderr().is_terminal() {
        store.observe(Arc::new(RetryReport::new(url)));
    }
    // Later calls are retried, and the user would wait for the error.
    let is_in_bucket = generations.address.is_none();
    match store.check() {
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error.into()),
        Err(error) if error.kind() == ErrorKind::NoStore && is_in_bucket => Err(error.into()),
        _ => Ok(store),
    }
}

impl CommonArguments {
    pub(super) fn open(&self, url: &str, context: &mut Context) -> Result<BlockingStore, CliError> {
        let generations = DatabaseOption {
            option: "--generations",
            address: self.generations.as_deref(),
        };
        open(url, generations, context)
    }

    pub(super) fn progress(&self, context: &mut Context) -> Arc<dyn Progress> {
        let is_shown = !self.quiet && std::io::stderr().is_terminal();
        context.prompt_progress(is_shown)
    }
}

/// A repository in a store, opened by its name.
pub(super) struct OpenStoredRepository {
    pub(super) store: BlockingStore,
    pub(super) repository: StoredRepository,
}

impl OpenStoredRepository {
    pub(super) fn open(store: BlockingStore, name: &str) -> Result<Self, CliError> {
        let repository = store.repository(name)?;
        Ok(OpenStoredRepository { store, repository })
    }

    /// Returns the generation `number`, or the newest generation.
    pub(super) fn generation(&self, number: Option<u64>) -> Result<Arc<Generation>, CliError> {
        let found = match number {
            Some(number) => self.store.wait(self.repository.at(number)),
            None => self.store.wait(self.repository.latest()),
        };
        found.map_err(|error| match error.kind() {
            ErrorKind::NotFound if number.is_none() && self.has_generations() => {
                let name = self.repository.name();
                CliError::fatal(format!("repository '{name}' was removed")).with_hint(
                    "list its generations with 'pronto store list STORE NAME'; export and copy take \
                     --generation",
                )
            }
            _ => error.into(),
        })
    }

    /// Returns whether the store has generations of the repository, which may have been removed.
    fn has_generations(&self) -> bool {
        let listed = self.store.generations(&self.repository);
        listed.is_ok_and(|listed| !listed.is_empty())
    }
}

impl RepositoryArguments {
    pub(super) fn open(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<OpenStoredRepository, CliError> {
        OpenStoredRepository::open(common.open(&self.store, context)?, &self.name)
    }
}

/// Returns the directory for temporary files: `chosen`, or the default of the machine.
pub(super) fn scratch(chosen: Option<&Path>, context: &mut Context) -> Result<PathBuf, CliError> {
    let environment = context.environment()?;
    let chosen = chosen.or(environment.path("TMPDIR"));
    Ok(environment.absolute(chosen.unwrap_or(Path::new("/tmp"))))
}
