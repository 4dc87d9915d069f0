//! `store upkeep`: repacking, and deletion of what has expired.

use std::cell::RefCell;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pronto::Watch;
use pronto_store::{Pass, UpkeepOptions, UpkeepRole};

use super::Args;
use super::places::{Stores, progress, scratch};
use crate::{CliError, Context, ExitCode};

/// Does upkeep of `name`, or of all repositories: once, or until the process is stopped.
pub(super) fn run(
    args: &Args,
    url: &str,
    name: Option<&str>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let store = Stores::of(args, url).open(context)?;
    let mut options = UpkeepOptions::new(scratch(args, context)?);
    options.prune_after = args.prune_after.0;
    let environment = context.environment()?;
    options.cache = args.cache.as_deref().map(|path| environment.absolute(path));
    if let Some(seconds) = args.every {
        if name.is_some() {
            return Err(CliError::usage(
                "'--every' is for all repositories of a store",
            ));
        }
        let role = UpkeepRole::new(Arc::new(store), options, Duration::from_secs(seconds));
        let interrupt = context.interrupt.clone();
        let out = RefCell::new(&mut context.out);
        role.run(&interrupt, &|pass: &Pass<'_>| {
            let line = match &pass.result {
                Ok(done) => format!("{}: {}", pass.repository, done),
                Err(error) => format!("{}: {error}", pass.repository),
            };
            let mut out = out.borrow_mut();
            // Upkeep does not end if nobody reads.
            let _ = writeln!(out, "{line}").and_then(|()| out.flush());
        });
        return Ok(ExitCode::SUCCESS);
    }
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => store.repositories()?,
    };
    let progress = progress(args, context);
    let interrupt = context.interrupt.clone();
    let watch = Watch::from(&interrupt).with_progress(&*progress);
    for name in names {
        let repository = Arc::new(store.repository(&name)?);
        let done = store.keep_up(&repository, &options, &watch)?;
        context.settle();
        writeln!(context.out, "{name}: {}", done)?;
    }
    Ok(ExitCode::SUCCESS)
}
