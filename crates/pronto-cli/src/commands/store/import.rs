//! `store import`: import Git repositories into an object store.

use std::io::Write as _;
use std::path::Path;

use pronto::Repository;
use pronto::Watch;
use pronto_server::repositories::Repositories;
use pronto_store::{BlockingStore, CopyCounts};

use super::arguments::{CommonArguments, ImportArguments};
use super::server::scratch;
use crate::commands::shared::counted;
use crate::{CliError, Context, ExitCode};

impl ImportArguments {
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        match &self.name {
            Some(name) => self.one(common, &store, name, context),
            None => self.all(common, &store, context),
        }
    }

    /// Imports one repository.
    fn one(
        &self,
        common: &CommonArguments,
        store: &BlockingStore,
        name: &str,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let environment = context.environment()?;
        let source = environment.absolute(&self.source);
        let found = pronto::upload_pack::find(&source, &environment)?;
        let written = self.import(common, found.git_dir(), store, name, context)?;
        let (refs, objects) = (written.refs, written.objects);
        let (refs, objects) = (counted(refs, "ref"), counted(objects, "object"));
        writeln!(context.out, "{refs} and {objects}")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Imports every repository below a directory that a server would serve, under its name. A
    /// failure does not stop the import of the other repositories.
    fn all(
        &self,
        common: &CommonArguments,
        store: &BlockingStore,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let environment = context.environment()?;
        let directory = environment.absolute(&self.source);
        let names = Repositories::open(&directory, &environment)?.list()?;
        if names.is_empty() {
            let message = format!("no repository found under '{}'", directory.display());
            return Err(CliError::fatal(message));
        }
        let mut code = ExitCode::SUCCESS;
        for name in &names {
            context.interrupt.check()?;
            let below = directory.join(name);
            let found = pronto::upload_pack::find(&below, &environment);
            let written = found
                .map_err(CliError::from)
                .and_then(|found| self.import(common, found.git_dir(), store, name, context));
            match written {
                Ok(CopyCounts { refs, objects, .. }) => {
                    let (refs, objects) = (counted(refs, "ref"), counted(objects, "object"));
                    writeln!(context.out, "{name}: {refs} and {objects}")?;
                }
                Err(error) => {
                    context.remark(&format!("{name}: {error}"));
                    code = ExitCode::FAILURE;
                }
            }
        }
        Ok(code)
    }

    /// Imports the repository at `git_dir`. With `--update`, a repository that exists in the store
    /// is brought up to date.
    fn import(
        &self,
        common: &CommonArguments,
        git_dir: &Path,
        store: &BlockingStore,
        name: &str,
        context: &mut Context,
    ) -> Result<CopyCounts, CliError> {
        let source = Repository::open(git_dir, &context.environment()?)?;
        let target = store.repository(name)?;
        let scratch = scratch(self.scratch.as_deref(), context)?;
        let progress = common.progress(context);
        let interrupt = context.interrupt.clone();
        let watch = Watch::from(&interrupt).with_progress(&*progress);
        let written = match self.update {
            true => store.import_or_update(&source, &target, &scratch, &watch),
            false => store.import(&source, &target, &scratch, &watch),
        };
        context.settle();
        written.map_err(CliError::from)
    }
}
