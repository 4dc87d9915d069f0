//! `store upkeep`: repacking, and deletion of what has expired.

use std::cell::RefCell;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pronto::Watch;
use pronto_store::{Pass, UpkeepOptions, UpkeepRole};

use super::{Common, scratch};
use crate::{CliError, Context, ExitCode};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Arguments of `store upkeep`.
#[derive(clap::Args, Debug)]
pub(super) struct Upkeep {
    /// Run until the process is stopped, and look at each repository so often
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: Option<u64>,
    /// Delete unreachable Git objects this many days after they were noticed; 'never' keeps them
    #[arg(long, value_name = "DAYS", default_value = "14", value_parser = prune_after)]
    prune_after: PruneAfter,
    /// Keep downloaded files in this directory, and use them again
    #[arg(long, value_name = "DIRECTORY")]
    cache: Option<PathBuf>,
    /// The directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    scratch: Option<PathBuf>,
    /// The store
    store: String,
    /// The name of the repository; all without
    name: Option<String>,
}

/// The time after which unreachable objects are deleted; `None` for never.
#[derive(Clone, Copy, Debug)]
struct PruneAfter(Option<Duration>);

/// Reads a number of days.
fn prune_after(text: &str) -> Result<PruneAfter, String> {
    if text == "never" {
        return Ok(PruneAfter(None));
    }
    let days: u16 = text
        .parse()
        .ok()
        .filter(|days| *days > 0)
        .ok_or_else(|| "it must be a number of days, or 'never'".to_owned())?;
    Ok(PruneAfter(Some(DAY * u32::from(days))))
}

impl Upkeep {
    /// Does upkeep of a repository, or of all: once, or until the process is stopped.
    pub(super) fn run(&self, common: &Common, context: &mut Context) -> Result<ExitCode, CliError> {
        let store = common.open(&self.store, context)?;
        let mut options = UpkeepOptions::new(scratch(self.scratch.as_deref(), context)?);
        options.prune_after = self.prune_after.0;
        let environment = context.environment()?;
        options.cache = self.cache.as_deref().map(|path| environment.absolute(path));
        if let Some(seconds) = self.every {
            if self.name.is_some() {
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
