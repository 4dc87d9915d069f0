//! `store export` and `store copy`: copy a generation into a Git repository or into another store.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use pronto::refs::MigrateOptions;
use pronto::repository::RefStorage;
use pronto::{Environment, Repository, Watch};
use pronto_store::{CopySource, EXPORT_OK, EXPORT_OK_FILE};

use super::arguments::{CommonArguments, CopyArguments, Export};
use super::server::{DatabaseOption, OpenStoredRepository, open, scratch};
use crate::commands::shared::counted;
use crate::{CliError, Context, ExitCode};

impl Export {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let place = self.from.open(common, context)?;
        let directory = context.environment()?.absolute(&self.directory);
        let generation = place.generation(self.generation)?;
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let view = place
            .repository
            .write_view(&generation, &directory, None, &watch);
        place.store.wait(view)?;
        context.settle();
        // Every release of git reads the files format. Reftables need git 2.45.
        let storage = self.ref_format.unwrap_or(RefStorage::Files);
        if storage != RefStorage::Reftable {
            let exported = Repository::open(&directory, &Environment::empty(&directory))?;
            exported.migrate_refs(&MigrateOptions::new(storage))?;
        }
        mark_visible(&directory)?;
        writeln!(context.out, "generation {}", generation.number())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Creates `git-daemon-export-ok` if the stored repository had that file, because some servers
/// require it.
fn mark_visible(directory: &Path) -> Result<(), CliError> {
    let exported = Repository::open(directory, &Environment::empty(directory))?;
    if exported.config().bool_or(EXPORT_OK, false)? {
        let file = directory.join(EXPORT_OK_FILE);
        let created = File::create_new(&file);
        created.map_err(|error| {
            let reason = pronto_io::error::reason(&error);
            CliError::fatal(format!("cannot create '{}': {reason}", file.display()))
        })?;
    }
    Ok(())
}

impl CopyArguments {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let from = self.from.open(common, context)?;
        let generations = DatabaseOption {
            option: "--target-generations",
            address: self.target_generations.as_deref(),
        };
        let target = open(&self.target, generations, context)?;
        let to = OpenStoredRepository::open(target, &self.new_name)?;
        let generation = from.generation(self.generation)?;
        let scratch = scratch(self.scratch.as_deref(), context)?;
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let source = CopySource {
            store: &from.store,
            repository: &from.repository,
        };
        let written = to
            .store
            .copy(&generation, source, &to.repository, &scratch, &watch)?;
        context.settle();
        let number = generation.number();
        let (refs, objects) = (
            counted(written.refs, "ref"),
            counted(written.objects, "object"),
        );
        writeln!(context.out, "generation {number}: {refs} and {objects}")?;
        Ok(ExitCode::SUCCESS)
    }
}
