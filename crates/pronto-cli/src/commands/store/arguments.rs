//! The arguments of `store`.

use std::path::PathBuf;
use std::time::Duration;

use bstr::ByteSlice as _;
use pronto::repository::RefStorage;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Options of all commands.
#[derive(clap::Args, Debug)]
pub(super) struct CommonArguments {
    /// The database with the generations of the store: postgres://USER@HOST/DATABASE. Needed for stores
    /// without conditional creation. The password is best kept in ~/.pgpass or PGPASSWORD
    #[arg(long, value_name = "URL", global = true)]
    pub(super) generations: Option<String>,
    /// Show no progress
    #[arg(short, long, global = true)]
    pub(super) quiet: bool,
}

#[derive(clap::Subcommand, Debug)]
pub(super) enum StoreCommand {
    /// Import a Git repository, or every repository below a directory, into the store
    Import(ImportArguments),
    /// Export a generation as a bare Git repository
    Export(Export),
    /// Copy a generation into a new repository of the same or another store
    Copy(CopyArguments),
    /// Read all objects, and list missing and damaged ones
    Verify(Verify),
    /// Repack repositories if needed, and delete expired generations and objects
    Upkeep(UpkeepArguments),
    /// List the repositories of the store, or the generations of one
    List(ListArguments),
    /// Show or change the configuration of a repository
    Config(ConfigArguments),
    /// Show or change the default branch of a repository
    Head(HeadArguments),
}

/// A repository in a store, as the user names it.
#[derive(clap::Args, Debug)]
pub(super) struct RepositoryArguments {
    /// The store
    pub(super) store: String,
    /// The name of the repository
    pub(super) name: String,
}

/// Arguments of `store import`.
#[derive(clap::Args, Debug)]
pub(super) struct ImportArguments {
    /// Update repositories that already exist in the store
    #[arg(long)]
    pub(super) update: bool,
    /// The directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) scratch: Option<PathBuf>,
    /// The Git repository, or without a name a directory of repositories
    #[arg(value_name = "REPOSITORY|DIRECTORY")]
    pub(super) source: PathBuf,
    /// The store
    pub(super) store: String,
    /// The name of the new repository
    pub(super) name: Option<String>,
}

/// Arguments of `store export`.
#[derive(clap::Args, Debug)]
pub(super) struct Export {
    /// Use this generation instead of the newest one
    #[arg(long, value_name = "NUMBER")]
    pub(super) generation: Option<u64>,
    /// Keep refs in this format: 'files' or 'reftable'
    #[arg(long, value_name = "FORMAT", value_parser = ref_format)]
    pub(super) ref_format: Option<RefStorage>,
    #[command(flatten)]
    pub(super) from: RepositoryArguments,
    /// The directory of the new repository
    pub(super) directory: PathBuf,
}

/// Arguments of `store copy`.
#[derive(clap::Args, Debug)]
pub(super) struct CopyArguments {
    /// Use this generation instead of the newest one
    #[arg(long, value_name = "NUMBER")]
    pub(super) generation: Option<u64>,
    /// The directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) scratch: Option<PathBuf>,
    /// The database with the generations of the second store
    #[arg(long, value_name = "URL")]
    pub(super) target_generations: Option<String>,
    #[command(flatten)]
    pub(super) from: RepositoryArguments,
    /// The second store
    pub(super) target: String,
    /// The name of the new repository
    pub(super) new_name: String,
}

/// Arguments of `store verify`.
#[derive(clap::Args, Debug)]
pub(super) struct Verify {
    /// Compare names and sizes only, and read no object
    #[arg(long)]
    pub(super) sizes_only: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The store
    pub(super) store: String,
    /// The name of the repository, by default all
    pub(super) name: Option<String>,
}

/// Arguments of `store list`.
#[derive(clap::Args, Debug)]
pub(super) struct ListArguments {
    /// Print the list as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// The store
    pub(super) store: String,
    /// The repository whose generations are listed
    pub(super) name: Option<String>,
}

/// Arguments of `store upkeep`.
#[derive(clap::Args, Debug)]
pub(super) struct UpkeepArguments {
    /// Run until the process is stopped, and check each repository at this interval in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) every: Option<u64>,
    /// Delete unreachable Git objects this many days after they were noticed; 'never' keeps them
    #[arg(long, value_name = "DAYS", default_value = "14", value_parser = prune_after)]
    pub(super) prune_after: PruneAfter,
    /// Keep downloaded files in this directory, and use them again
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) cache: Option<PathBuf>,
    /// The directory for temporary files
    #[arg(long, value_name = "DIRECTORY")]
    pub(super) scratch: Option<PathBuf>,
    /// The store
    pub(super) store: String,
    /// The name of the repository, by default all
    pub(super) name: Option<String>,
}

/// Arguments of `store config`.
#[derive(clap::Args, Debug)]
pub(super) struct ConfigArguments {
    /// Add a value to those that the key has
    #[arg(long)]
    pub(super) add: bool,
    /// Remove all values of the key
    #[arg(long)]
    pub(super) unset: bool,
    #[command(flatten)]
    pub(super) repository: RepositoryArguments,
    /// Show the values of this key, or change them
    pub(super) key: Option<String>,
    /// The new value
    pub(super) value: Option<String>,
}

/// Arguments of `store head`.
#[derive(clap::Args, Debug)]
pub(super) struct HeadArguments {
    #[command(flatten)]
    pub(super) repository: RepositoryArguments,
    /// The new default branch
    pub(super) branch: Option<String>,
}

/// The time after which unreachable objects are deleted; `None` for never.
#[derive(Clone, Copy, Debug)]
pub(super) struct PruneAfter(pub(super) Option<Duration>);

/// Parses a number of days.
fn prune_after(text: &str) -> Result<PruneAfter, String> {
    if text == "never" {
        return Ok(PruneAfter(None));
    }
    let days: u16 = text
        .parse()
        .ok()
        .filter(|days| *days > 0)
        .ok_or_else(|| "use a number of days, or 'never'".to_owned())?;
    Ok(PruneAfter(Some(DAY * u32::from(days))))
}

/// Parses the name of a ref storage format.
fn ref_format(name: &str) -> Result<RefStorage, String> {
    let found = RefStorage::named(name.as_bytes().as_bstr());
    found.ok_or_else(|| format!("unknown ref storage format '{name}'"))
}
