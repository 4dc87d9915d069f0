//! `multi-pack-index`: write and verify one index for many packs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use bstr::{BStr, BString};
use pronto::config::value::parse_u64;
use pronto::multi_pack_index::{
    self, BitmapOptions, ExpirePacksOptions, MidxWriteOptions, RepackOptions, VerifyOptions,
};
use pronto::{ErrorKind, Repository, Watch};

use super::commit_graph::lines;
use crate::{CliError, Context, ExitCode};

/// Arguments of `multi-pack-index`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The object directory: the repository's own or one of its alternates
    #[arg(long, value_name = "DIR")]
    object_dir: Option<PathBuf>,
    /// Prefer this pack for objects that several packs contain
    #[arg(long, value_name = "PACK")]
    preferred_pack: Option<OsString>,
    /// Include only packs whose indexes are named on standard input
    #[arg(long)]
    stdin_packs: bool,
    /// Also write a bitmap
    #[arg(long)]
    bitmap: bool,
    /// A file with the targets of refs, for the bitmap
    #[arg(long, value_name = "FILE")]
    refs_snapshot: Option<PathBuf>,
    /// Write a layer for new packs on top of the present ones
    #[arg(long)]
    incremental: bool,
    /// Combine packs that together have at least this size
    #[arg(long, value_name = "SIZE")]
    batch_size: Option<String>,
    /// Show progress
    #[arg(long)]
    progress: Option<bool>,
    /// `write`, `verify`, `expire` or `repack`
    #[arg(value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let unsupported =
        || CliError::unsupported("this combination of arguments of 'multi-pack-index'");
    let command: Vec<_> = args.command.iter().map(|word| word.to_str()).collect();
    // Git accepts only `--object-dir` before the subcommand.
    let before = context.arguments.iter();
    let mut before = before.take_while(|word| !args.command.contains(word));
    if before.any(|word| !is_directory(word)) {
        return Err(unsupported());
    }
    let writes = args.preferred_pack.is_some() || args.stdin_packs || args.bitmap;
    let writes = writes || args.refs_snapshot.is_some() || args.incremental;
    if args.batch_size.is_some() && command.as_slice() != [Some("repack")] {
        return Err(unsupported());
    }
    if command.as_slice() == [Some("verify")] && !writes {
        return verify(args, context);
    }
    // Only git can write bitmaps for layers.
    if args.incremental && (args.bitmap || args.refs_snapshot.is_some()) {
        return Err(unsupported());
    }
    let repository = context.repository()?;
    let progress = context.progress(args.progress, false);
    let interrupt = context.interrupt.clone();
    let mut made_pack = None;
    let result = match command.as_slice() {
        [Some("write")] => multi_pack_index::write(
            &repository,
            &args.options()?,
            &Watch::from(&interrupt).with_progress(&*progress),
        ),
        [Some("expire")] if !writes => {
            let mut options = ExpirePacksOptions::default();
            options.object_dir.clone_from(&args.object_dir);
            multi_pack_index::expire(
                &repository,
                &options,
                &Watch::from(&interrupt).with_progress(&*progress),
            )
        }
        [Some("repack")] if !writes => {
            let mut options = RepackOptions::default();
            options.object_dir.clone_from(&args.object_dir);
            options.batch_bytes = batch_bytes(args, &repository)?;
            let watch = Watch::from(&interrupt).with_progress(&*progress);
            let made = multi_pack_index::repack(&repository, &options, &watch);
            made.map(|counts| made_pack = counts)
        }
        _ => return Err(unsupported()),
    };
    if let Some(counts) = made_pack.filter(|_| context.shows_progress(args.progress, false)) {
        pronto::pack_objects::report_totals(
            &counts,
            &Watch::from(&interrupt).with_progress(&*progress),
        );
    }
    match result {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::Refused => {
            Err(CliError::error(error.to_string()).with_code(ExitCode::new(255)))
        }
        Err(error) => Err(CliError::of(error)),
    }
}

impl Args {
    fn options(&self) -> Result<MidxWriteOptions, CliError> {
        let packs = match self.stdin_packs {
            true => Some(lines()?.into_iter().collect::<BTreeSet<_>>()),
            false => None,
        };
        let preferred = self.preferred_pack.as_ref();
        let mut options = MidxWriteOptions::default();
        options.object_dir = self.object_dir.clone();
        options.preferred_pack = preferred.map(|name| BString::from(name.as_encoded_bytes()));
        options.packs = packs;
        options.incremental = self.incremental;
        options.bitmap = self.bitmap.then(|| {
            let mut bitmap = BitmapOptions::default();
            bitmap.refs_snapshot = self.refs_snapshot.clone();
            bitmap
        });
        Ok(options)
    }
}

/// Returns the batch size of `multi-pack-index repack`. Fails if only git makes packs with these
/// settings.
fn batch_bytes(args: &Args, repository: &Repository) -> Result<u64, CliError> {
    let config = repository.config();
    let is_lacking = config.u64("pack.packsizelimit")?.unwrap_or(0) > 0
        || config.bool_or("repack.usedeltaislands", false)?
        || repository.has_promisor()?;
    let size = args.batch_size.as_deref().unwrap_or("0");
    match parse_u64(BStr::new(size)) {
        Ok(size) if !is_lacking => Ok(size),
        // git reports an invalid size.
        _ => Err(CliError::unsupported(
            "this --batch-size of 'multi-pack-index repack'",
        )),
    }
}

fn is_directory(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"--object-dir=")
}

fn verify(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let progress = context.progress(args.progress, false);
    let interrupt = context.interrupt.clone();
    let mut wrong = Vec::new();
    let mut options = VerifyOptions::default();
    options.object_dir.clone_from(&args.object_dir);
    let sound = multi_pack_index::verify(
        &repository,
        &options,
        &Watch::from(&interrupt).with_progress(&*progress),
        &mut |fault| wrong.push(fault.to_string()),
    );
    context.remark_all(&wrong)?;
    Ok(if sound.map_err(CliError::of)? {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
