//! `store import`: Git repositories into an object store.

use std::io::Write as _;
use std::path::Path;

use pronto::Repository;
use pronto::Watch;
use pronto_server::repositories::Repositories;
use pronto_store::{Store, Written};

use super::Args;
use super::places::{Stores, progress, scratch};
use crate::{CliError, Context, ExitCode};

/// Imports a repository.
pub(super) fn one(
    args: &Args,
    source: &str,
    store: &str,
    name: &str,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let environment = context.environment()?;
    let source = environment.absolute(source);
    let found = pronto::upload_pack::find(&source, &environment)?;
    let store = Stores::of(args, store).open(context)?;
    let written = import(args, found.git_dir(), &store, name, context)?;
    let (refs, objects) = (written.refs, written.objects);
    writeln!(context.out, "{refs} refs and {objects} objects")?;
    Ok(ExitCode::SUCCESS)
}

/// Imports all repositories below a directory that a server would serve, under their names. One that fails does
/// not keep the others from being imported.
pub(super) fn all(
    args: &Args,
    directory: &str,
    store: &str,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let environment = context.environment()?;
    let directory = environment.absolute(directory);
    let names = Repositories::open(&directory, &environment)?.list()?;
    if names.is_empty() {
        let message = format!("there is no repository below '{}'", directory.display());
        return Err(CliError::fatal(message));
    }
    let store = Stores::of(args, store).open(context)?;
    let mut code = ExitCode::SUCCESS;
    for name in &names {
        context.interrupt.check()?;
        let below = directory.join(name);
        let found = pronto::upload_pack::find(&below, &environment);
        let written = found
            .map_err(CliError::from)
            .and_then(|found| import(args, found.git_dir(), &store, name, context));
        match written {
            Ok(Written { refs, objects, .. }) => {
                writeln!(context.out, "{name}: {refs} refs and {objects} objects")?;
            }
            Err(error) => {
                context.remark(&format!("{name}: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Imports the repository at `git_dir`; with `--update`, brings one that is there up to date.
fn import(
    args: &Args,
    git_dir: &Path,
    store: &Store,
    name: &str,
    context: &mut Context,
) -> Result<Written, CliError> {
    let source = Repository::open(git_dir, &context.environment()?)?;
    let target = store.repository(name)?;
    let scratch = scratch(args, context)?;
    let progress = progress(args, context);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    let written = match args.update {
        true => store.import_or_update(&source, &target, &scratch, &watch),
        false => store.import(&source, &target, &scratch, &watch),
    };
    context.settle();
    written.map_err(CliError::from)
}
