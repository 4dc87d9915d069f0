//! `store export` and `store copy`: a generation into a Git repository, or into another store.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bstr::ByteSlice as _;
use pronto::refs::MigrateOptions;
use pronto::repository::RefStorage;
use pronto::{Environment, Repository, Watch};
use pronto_store::{EXPORT_OK, EXPORT_OK_FILE, Source};

use super::{Common, Named, Place, open, scratch};
use crate::{CliError, Context, ExitCode};

/// Arguments of `store export`.
#[derive(clap::Args, Debug)]
pub(super) struct Export {
    /// Take this generation in place of the newest one
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    /// Keep refs in this format: 'files' or 'reftable'
    #[arg(long, value_name = "FORMAT", value_parser = ref_format)]
    ref_format: Option<RefStorage>,
    #[command(flatten)]
    from: Named,
    /// The directory of the new repository
    directory: PathBuf,
}

/// Arguments of `store copy`.
#[derive(clap::Args, Debug)]
pub(super) struct Copy {
    /// Take this generation in place of the newest one
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    /// The directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    scratch: Option<PathBuf>,
    /// The database with the generations of the second store
    #[arg(long, value_name = "URL")]
    target_generations: Option<String>,
    #[command(flatten)]
    from: Named,
    /// The second store
    target: String,
    /// The name of the new repository
    new_name: String,
}

/// Reads the name of a storage of refs.
fn ref_format(name: &str) -> Result<RefStorage, String> {
    let found = RefStorage::named(name.as_bytes().as_bstr());
    found.ok_or_else(|| format!("unknown ref storage format '{name}'"))
}

impl Export {
    pub(super) fn run(&self, common: &Common, context: &mut Context) -> Result<ExitCode, CliError> {
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
        // Every git reads files; reftables are of git 2.45.
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

/// Marks the repository for servers that need a mark, if it had one in the store.
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

impl Copy {
    pub(super) fn run(&self, common: &Common, context: &mut Context) -> Result<ExitCode, CliError> {
        let from = self.from.open(common, context)?;
        let target = open(&self.target, self.target_generations.as_deref(), context)?;
        let to = Place::open(target, &self.new_name)?;
        let generation = from.generation(self.generation)?;
        let scratch = scratch(self.scratch.as_deref(), context)?;
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let source = Source {
            store: &from.store,
            repository: &from.repository,
        };
        let written = to
            .store
            .copy(&generation, source, &to.repository, &scratch, &watch)?;
        context.settle();
        let (number, refs, objects) = (generation.number(), written.refs, written.objects);
        writeln!(
            context.out,
            "generation {number}: {refs} refs and {objects} objects"
        )?;
        Ok(ExitCode::SUCCESS)
    }
}
