//! `verify-pack`: verify packs and their indexes.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pronto::Repository;
use pronto_hash::Kind;
use pronto_pack::indexer::INDEXING;

use super::index_pack::{
    IndexWatch, Verification, VerifyListing, object_format, options_of, with_other_end,
};
use crate::{CliError, Context, ExitCode};

/// Arguments of `verify-pack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// List the objects of the packs
    #[arg(long, short)]
    verbose: bool,
    /// Print only statistics of the packs
    #[arg(long, short)]
    stat_only: bool,
    /// The hash function: sha1 or sha256
    #[arg(long, value_name = "FORMAT")]
    object_format: Option<OsString>,
    /// The packs, by the names of their indexes
    #[arg(value_name = "PACK")]
    packs: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.packs.is_empty() {
        return Err(CliError::misuse("verify-pack takes at least one pack"));
    }
    // As in Git, a repository is discovered only when a pack is verified.
    let environment = context.environment()?;
    let config = pronto::config::without_repository(&environment)?;
    context.check_config(&config, &environment)?;
    if let Err(error) = context.repository_if_any()
        && error.kind() == crate::error::Kind::Unsupported
    {
        return Err(error);
    }
    let listing = match (args.stat_only, args.verbose) {
        (true, _) => VerifyListing::Counts,
        (_, true) => VerifyListing::Entries,
        _ => VerifyListing::Nothing,
    };
    let mut code = ExitCode::SUCCESS;
    for given in &args.packs {
        let pack = pack_of(given);
        let result = check(args, &pack, listing, context);
        let verdict = match &result {
            Ok(()) => "ok",
            Err(error) => {
                context.remark(error.render().trim_end());
                code = ExitCode::FAILURE;
                "bad"
            }
        };
        let prints = match result {
            Ok(()) => args.verbose && !args.stat_only,
            Err(_) => args.verbose || args.stat_only,
        };
        if prints {
            say(&pack, verdict, context)?;
        }
    }
    Ok(code)
}

/// Verifies one pack.
fn check(
    args: &Args,
    pack: &Path,
    listing: VerifyListing,
    context: &mut Context,
) -> Result<(), CliError> {
    let repository = context.repository_if_any()?;
    let repository = repository.as_deref();
    let kind = match &args.object_format {
        Some(name) => object_format(name)?,
        None => repository.map_or(Kind::Sha1, Repository::object_hash),
    };
    // The opened repository lacks malformed settings that only `index-pack` reads.
    context.check_values_of("index-pack", &context.configuration()?)?;
    let mut options = options_of(repository, kind, context)?;
    options.title = INDEXING;
    let index = with_other_end(pack, "pack", "idx")?;
    let verification = Verification {
        pack,
        index: &index,
        listing,
        watch: &IndexWatch::default(),
        inspector: None,
    };
    verification.run(&options, context)
}

fn say(pack: &Path, verdict: &str, context: &mut Context) -> Result<(), CliError> {
    context.out.write_all(pack.as_os_str().as_bytes())?;
    writeln!(context.out, ": {verdict}")?;
    Ok(())
}

/// Returns the path of the pack. The argument may be a pack, an index, or a path without suffix.
fn pack_of(given: &OsStr) -> PathBuf {
    let bytes = given.as_bytes();
    let stem = match bytes.strip_suffix(b".idx") {
        Some(stem) => stem,
        None => bytes.strip_suffix(b".pack").unwrap_or(bytes),
    };
    PathBuf::from(OsStr::from_bytes(&[stem, b".pack"].concat()))
}
