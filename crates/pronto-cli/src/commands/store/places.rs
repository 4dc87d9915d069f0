//! The stores and repositories that the arguments of `store` name.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pronto::io::progress::Progress;
use pronto_store::{DatabaseAddress, Generation, Store, Stored};

use super::Args;
use crate::{CliError, Context};

/// The addresses of a store.
#[derive(Clone, Copy)]
pub(super) struct Stores<'a> {
    pub(super) url: &'a str,
    /// The database with the generations.
    pub(super) generations: Option<&'a str>,
}

impl<'a> Stores<'a> {
    pub(super) fn of(args: &'a Args, url: &'a str) -> Self {
        Stores {
            url,
            generations: args.generations.as_deref(),
        }
    }

    pub(super) fn open(self, context: &mut Context) -> Result<Store, CliError> {
        let environment = context.environment()?;
        let store = Store::open(self.url, &environment)?;
        match self.generations {
            None => Ok(store),
            Some(address) => {
                let address = DatabaseAddress::parse(address, &environment)?;
                store.with_generations(address).map_err(CliError::from)
            }
        }
    }
}

/// A repository in a store.
pub(super) struct Place {
    pub(super) store: Store,
    pub(super) repository: Stored,
}

impl Place {
    pub(super) fn open(
        stores: Stores<'_>,
        name: &str,
        context: &mut Context,
    ) -> Result<Self, CliError> {
        let store = stores.open(context)?;
        let repository = store.repository(name)?;
        Ok(Place { store, repository })
    }

    /// Returns the generation that the options name.
    pub(super) fn generation(&self, args: &Args) -> Result<Arc<Generation>, CliError> {
        let found = match args.generation {
            Some(number) => self.store.wait(self.repository.at(number)),
            None => self.store.wait(self.repository.latest()),
        };
        found.map_err(CliError::from)
    }
}

pub(super) fn progress(args: &Args, context: &mut Context) -> Arc<dyn Progress> {
    let is_shown = !args.quiet && std::io::stderr().is_terminal();
    context.prompt_progress(is_shown)
}

/// Returns the directory for temporary files.
pub(super) fn scratch(args: &Args, context: &mut Context) -> Result<PathBuf, CliError> {
    let environment = context.environment()?;
    let chosen = args.scratch.as_deref().or(environment.path("TMPDIR"));
    Ok(environment.absolute(chosen.unwrap_or(Path::new("/tmp"))))
}
