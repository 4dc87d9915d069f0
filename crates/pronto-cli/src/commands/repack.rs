//! `repack`: pack loose objects, and combine packs.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;

use bstr::{BStr, BString};
use pronto::config::value::parse_u64;
use pronto::remote::has_whole_history;
use pronto::repack::{self, Cruft, Options, RepackMode, WriteBitmaps};
use pronto::worktrees::ExpiryAge;
use pronto::{Repository, Watch, pack_objects};

use crate::{CliError, Context, ExitCode};

/// Arguments of `repack`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Pack all reachable objects into one pack
    #[arg(short = 'a')]
    all: bool,
    /// Like `-a`; unreachable objects of removed packs become loose
    #[arg(short = 'A')]
    loosen: bool,
    /// Remove redundant packs and loose objects
    #[arg(short = 'd')]
    delete: bool,
    /// Recompute all deltas
    #[arg(short = 'f')]
    no_reuse_delta: bool,
    /// Deflate all objects again
    #[arg(short = 'F')]
    no_reuse_object: bool,
    /// Do not update the files for servers without Git support
    #[arg(short = 'n')]
    no_server_info: bool,
    /// Show no progress
    #[arg(short = 'q', long)]
    quiet: bool,
    /// Omit objects of alternates
    #[arg(short = 'l', long)]
    local: bool,
    /// Write a bitmap
    #[arg(short = 'b', long)]
    write_bitmap_index: Option<bool>,
    /// The number of objects that each object is compared with
    #[arg(long, value_name = "N")]
    window: Option<String>,
    /// The memory for compared objects
    #[arg(long, value_name = "BYTES")]
    window_memory: Option<String>,
    /// The maximum length of delta chains
    #[arg(long, value_name = "N")]
    depth: Option<String>,
    /// Number of threads that search for deltas
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Also pack objects of packs with a `.keep` file
    #[arg(long)]
    pack_kept_objects: Option<bool>,
    /// Keep this pack as it is
    #[arg(long, value_name = "NAME")]
    keep_pack: Vec<OsString>,
    /// Combine packs until each has this many times the objects of the next smaller one
    #[arg(short = 'g', long, value_name = "FACTOR")]
    geometric: Option<String>,
    /// Like `-a`; unreachable objects go into a pack of their own
    #[arg(long)]
    cruft: bool,
    /// With `--cruft`: remove objects older than this
    #[arg(long, value_name = "TIME")]
    cruft_expiration: Option<OsString>,
    /// With `--cruft`: do not combine such packs from this size on
    #[arg(long, value_name = "BYTES")]
    combine_cruft_below_size: Option<String>,
    /// With `--cruft`: the maximum size of such packs
    #[arg(long, value_name = "BYTES")]
    max_cruft_size: Option<String>,
    /// With `--cruft`: put removed objects into a pack with this path prefix
    #[arg(long, value_name = "PATH")]
    expire_to: Option<PathBuf>,
    /// With `-A`: drop objects older than this
    #[arg(long, value_name = "TIME")]
    unpack_unreachable: Option<OsString>,
    /// Write one index for all packs
    #[arg(short = 'm', long)]
    write_midx: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let mut environment = context.environment()?;
    environment.set("GIT_NO_REPLACE_OBJECTS", "1");
    let elsewhere = |_| CliError::unsupported("'repack' in a repository that cannot be opened");
    let start = environment.current_dir().to_owned();
    let found = Repository::discover(&start, &environment).map_err(elsewhere)?;
    let mut repository = context.receive_notices(found);
    context.check_opened(&mut repository)?;
    let options = options(args, &repository)?;
    context.repeat_warnings(repository.config(), 1, true);
    let shown = context.shows_progress(None, args.quiet);
    let progress = context.prompt_progress(shown);
    let made = repack::repack(
        &repository,
        &options,
        &Watch::from(&context.interrupt).with_progress(&*progress),
    );
    context.report_warnings();
    match made.map_err(refused)? {
        None if !args.quiet => writeln!(context.out, "Nothing new to pack.")?,
        _ => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns git's message if a program that git would start has failed.
fn refused(error: pronto::Error) -> CliError {
    match error.kind() == pronto::ErrorKind::Refused {
        true => CliError::error(error.to_string()),
        false => error.into(),
    }
}

/// Converts the arguments into options of the library, if pronto supports them.
fn options(args: &Args, repository: &Repository) -> Result<Options, CliError> {
    let config = repository.config();
    let factor = args.geometric.as_deref().map(str::parse::<u32>);
    let factor = factor.transpose().map_err(|_| unsupported())?;
    let factor = factor.filter(|factor| *factor > 0);
    // For `--geometric`, Git also considers packs of alternates.
    let is_shared = factor.is_some() && !repository.objects()?.alternates().is_empty();
    if is_shared || is_lacking(args, repository)? {
        return Err(unsupported());
    }
    let loosens = args.loosen || args.unpack_unreachable.is_some();
    if args.cruft && loosens {
        let message = "options '-A' and '--cruft' cannot be used together";
        return Err(CliError::fatal(message));
    }
    let is_all = args.all || args.loosen || args.cruft;
    let configured = match config.bool("repack.writebitmaps")? {
        Some(set) => Some(set),
        None => config.bool("pack.writebitmaps")?,
    };
    let bitmaps = match args.write_bitmap_index.or(configured) {
        Some(true) => WriteBitmaps::Yes,
        Some(false) => WriteBitmaps::No,
        None if args.write_midx || is_all && repository.is_bare() => WriteBitmaps::IfPossible,
        None => WriteBitmaps::No,
    };
    if bitmaps == WriteBitmaps::Yes && !is_all && !args.write_midx {
        return Err(CliError::fatal(
            "Incremental repacks are incompatible with bitmap indexes.  Use\n\
             --no-write-bitmap-index or disable the pack.writeBitmaps configuration.",
        ));
    }
    if factor.is_some() && is_all {
        let message = "options '--geometric' and '-A/-a' cannot be used together";
        return Err(CliError::fatal(message));
    }
    let takes_kept = match args.pack_kept_objects {
        Some(takes) => Some(takes),
        None => config.bool("repack.packkeptobjects")?,
    };
    let names = args.keep_pack.iter();
    let mut options = Options::default();
    options.what = match factor {
        Some(factor) => RepackMode::Geometric(factor),
        None if args.cruft => RepackMode::Cruft(cruft(args)?),
        None if is_all => RepackMode::All { loosen: loosens },
        None => RepackMode::Loose,
    };
    options.delete = args.delete;
    options.local = args.local;
    options.pack_kept_objects =
        takes_kept.unwrap_or(bitmaps == WriteBitmaps::Yes && !args.write_midx);
    options.keep_packs = names
        .map(|name| BString::from(name.as_encoded_bytes()))
        .collect();
    options.bitmaps = bitmaps;
    options.multi_pack_index = args.write_midx;
    options.server_info =
        !args.no_server_info && config.bool_or("repack.updateserverinfo", true)?;
    let unpack = args.unpack_unreachable.as_ref();
    options.unpack_unreachable = unpack.map(|text| ExpiryAge::Before(approximate(text)));
    options.patience = pronto::prune::PATIENCE;
    options.packing = packing(args, repository)?;
    Ok(options)
}

/// Returns whether only git supports the request.
fn is_lacking(args: &Args, repository: &Repository) -> Result<bool, CliError> {
    let config = repository.config();
    let is_restricted = config.u64("pack.packsizelimit")?.unwrap_or(0) > 0
        || config.bool_or("repack.usedeltaislands", false)?
        || config.bool_or("extensions.preciousobjects", false)?
        || !has_whole_history(repository)?
        || !repository.objects()?.promisor_packs()?.is_empty();
    let limit = number(&args.max_cruft_size)?.unwrap_or(0);
    // Git has separate delta settings for cruft packs.
    let is_tuned = args.window.is_some()
        || args.depth.is_some()
        || args.threads.is_some()
        || ["window", "windowmemory", "depth", "threads"]
            .iter()
            .any(|name| config.contains(format!("repack.cruft{name}")));
    let unpacks_alone = args.unpack_unreachable.is_some() && !args.all && !args.loosen;
    Ok(is_restricted || unpacks_alone || args.cruft && (limit > 0 || is_tuned))
}

/// Parses an approximate date relative to now.
fn approximate(text: &OsStr) -> i64 {
    pronto::revision::approximate_date(BStr::new(text.as_encoded_bytes()))
}

/// Returns the treatment of unreachable objects (`--cruft` and related options).
fn cruft(args: &Args) -> Result<Cruft, CliError> {
    let expiration = args.cruft_expiration.as_deref();
    let expiration = expiration.map(|text| ExpiryAge::Before(approximate(text)));
    let below = number(&args.combine_cruft_below_size)?;
    let mut options = Cruft::default();
    // No object is older than time zero, so nothing expires.
    options.expiration = expiration.filter(|expiry| *expiry != ExpiryAge::Before(0));
    options.combine_below = below.filter(|below| *below > 0).map(|below| below as u64);
    options.expire_to = args.expire_to.clone();
    Ok(options)
}

/// Parses a number. git reports an invalid one.
fn number(text: &Option<String>) -> Result<Option<usize>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let number = parse_u64(BStr::new(text)).ok();
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.map(Some).ok_or_else(unsupported)
}

fn packing(args: &Args, repository: &Repository) -> Result<pronto_odb::packing::Options, CliError> {
    let mut options = pack_objects::packing_options(repository)?;
    let config = repository.config();
    options.offset_deltas = config.bool_or("repack.usedeltabaseoffset", true)?;
    options.reuse_objects = !args.no_reuse_object;
    options.reuse_deltas = !args.no_reuse_delta && options.reuse_objects;
    let search = &mut options.search;
    search.window = number(&args.window)?.unwrap_or(search.window);
    if let Some(depth) = number(&args.depth)? {
        search.depth = u32::try_from(depth).unwrap_or(u32::MAX).min(4095);
    }
    if let Some(threads) = number(&args.threads)?.filter(|threads| *threads > 0) {
        search.threads = threads;
    }
    if let Some(bytes) = number(&args.window_memory)? {
        search.window_memory_bytes = bytes;
    }
    Ok(options)
}

fn unsupported() -> CliError {
    CliError::unsupported("this combination of arguments of 'repack'")
}
