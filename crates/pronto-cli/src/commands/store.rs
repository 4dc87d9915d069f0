//! `store`: repositories in an object store. The work is in the program `pronto-server`.

#[cfg(feature = "serve")]
mod import;
#[cfg(feature = "serve")]
mod places;
#[cfg(feature = "serve")]
mod server;
#[cfg(feature = "serve")]
mod settings;
#[cfg(feature = "serve")]
mod upkeep;

use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice as _;
use pronto::repository::RefStorage;

use crate::{CliError, Context, ExitCode};

#[cfg(feature = "serve")]
pub(super) use server::run as run_here;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Arguments of `store`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "STORE: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or `file:///DIRECTORY`. \
    Credentials are taken from the variables of the environment that the programs of these services use."
)]
#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
pub(crate) struct Args {
    /// The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores
    /// without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL")]
    generations: Option<String>,
    /// The database with the generations of the second store (copy)
    #[arg(long, value_name = "URL")]
    target_generations: Option<String>,
    /// Take this generation instead of the newest one (export, copy)
    #[arg(long, value_name = "NUMBER")]
    generation: Option<u64>,
    /// Compare names and sizes only, and read no object (verify)
    #[arg(long)]
    sizes_only: bool,
    /// Bring repositories that are there already up to date (import)
    #[arg(long)]
    update: bool,
    /// The directory for temporary files (import, copy, upkeep)
    #[arg(long, value_name = "DIRECTORY")]
    scratch: Option<PathBuf>,
    /// Keep downloaded files in this directory, and use them again (upkeep)
    #[arg(long, value_name = "DIRECTORY")]
    cache: Option<PathBuf>,
    /// Run until the process is stopped, and look at each repository so often (upkeep)
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: Option<u64>,
    /// Delete unreachable Git objects this many days after they were noticed; 'never' keeps them (upkeep)
    #[arg(long, value_name = "DAYS", default_value = "14", value_parser = prune_after)]
    prune_after: PruneAfter,
    /// Keep refs in this format: 'files' or 'reftable' (export)
    #[arg(long, value_name = "FORMAT", value_parser = ref_format)]
    ref_format: Option<RefStorage>,
    /// Add a value to those that the key has (config)
    #[arg(long)]
    add: bool,
    /// Remove all values of the key (config)
    #[arg(long)]
    unset: bool,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// 'import REPOSITORY STORE NAME' makes a repository of a Git repository, 'import DIRECTORY STORE' one of each
    /// below a directory; 'export STORE NAME DIRECTORY' the other way round; 'copy STORE NAME STORE NAME' copies one; 'verify STORE
    /// [NAME]' looks for damage; 'upkeep STORE [NAME]' packs again what is due and deletes what has
    /// expired; 'list STORE [NAME]' shows repositories, or generations; 'config STORE NAME [KEY [VALUE]]'
    /// shows or changes the configuration, 'head STORE NAME [BRANCH]' the default branch
    #[arg(value_name = "COMMAND", required = true)]
    words: Vec<PathBuf>,
}

/// The time after which unreachable objects are deleted; `None` for never.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "serve"),
    allow(dead_code, reason = "pronto-server reads them")
)]
struct PruneAfter(Option<Duration>);

/// Continues in the program `pronto-server`.
pub(crate) fn run(_: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    Err(context.become_server("store"))
}

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

/// Reads the name of a storage of refs.
fn ref_format(name: &str) -> Result<RefStorage, String> {
    let found = RefStorage::named(name.as_bytes().as_bstr());
    found.ok_or_else(|| format!("unknown ref storage format '{name}'"))
}
