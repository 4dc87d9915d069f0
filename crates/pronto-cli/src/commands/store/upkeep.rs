//! `store upkeep`: repack stored repositories, and delete expired files.

use std::cell::RefCell;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use pronto::Watch;
use pronto_store::{Pass, UpkeepOptions, UpkeepRole};

use super::arguments::{CommonArguments, UpkeepArguments};
use super::server::scratch;
use crate::{CliError, Context, ExitCode};

impl UpkeepArguments {
    /// Runs upkeep for one repository or for all repositories: once, or until the process is
    /// stopped.
    pub(super) fn run(
        &self,
        common: &CommonArguments,
        context: &mut Context,
    ) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let mut options = UpkeepOptions::new(scratch(self.scratch.as_deref(), context)?);
        options.prune_after = self.prune_after.0;
        let environment = context.environment()?;
        options.cache = self.cache.as_deref().map(|path| environment.absolute(path));
        if let Some(seconds) = self.every {
            if self.name.is_some() {
                return Err(CliError::usage(
                    "'--every' cannot be used with the name of a repository",
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
                // Upkeep continues if its output cannot be written.
                let _ = writeln!(out, "{line}").and_then(|()| out.flush());
            });
            return Ok(ExitCode::SUCCESS);
        }
        let names = match &self.name {
            Some(name) => vec![name.clone()],
            None => store.repositories()?,
        };
        let progress = common.progress(context);
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
}
