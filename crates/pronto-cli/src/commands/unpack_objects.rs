//! `unpack-objects`: loose objects of a pack that comes on the standard input.

use std::io::{IsTerminal, Write};

use pronto::packs;
use pronto_pack::indexer::{self, Outcome, UNPACKING, scan_stream};

use super::index_pack::{Input, leading_number};
use crate::bad_pack;
use crate::{CliError, Context, ExitCode};

/// Arguments of `unpack-objects`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write nothing
    #[arg(short = 'n')]
    dry_run: bool,
    /// Show no progress
    #[arg(short = 'q')]
    quiet: bool,
    /// Make what can be made of a broken pack
    #[arg(short = 'r')]
    recover: bool,
    /// Write nothing that is broken, or links to what is not there
    #[arg(long)]
    strict: bool,
    /// Refuse packs of more bytes than this
    #[arg(long, value_name = "BYTES")]
    max_input_size: Option<String>,
    /// The start of the pack, which somebody has read already
    #[arg(long = "pack_header", value_name = "VERSION,COUNT")]
    pack_header: Option<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    for (given, option) in [(args.recover, "-r"), (args.strict, "--strict")] {
        if given {
            let what = format!("option '{option}' of 'unpack-objects'");
            return Err(CliError::unsupported(what));
        }
    }
    let repository = context.repository()?;
    let mut options = packs::indexer_options(repository.config(), repository.object_hash())?;
    options.title = UNPACKING;
    if let Some(text) = &args.max_input_size {
        let limit = leading_number(text);
        options.max_input_size_bytes = (limit > 0).then_some(limit);
    }
    let mut input = Input::new(args.pack_header.as_deref())?;
    let quiet = args.quiet || !std::io::stderr().is_terminal();
    let progress = context.progress(Some(!quiet), true);
    let watched = indexer::Context {
        progress: &*progress,
        interrupt: Some(&context.interrupt),
        ..indexer::Context::default()
    };
    let outcome = match args.dry_run {
        true => scan_stream(&mut input, &options, &watched)
            .map_err(|error| error.map_kind(pronto_odb::ErrorKind::from)),
        false => repository.objects()?.unpack(&mut input, &options, &watched),
    };
    let Outcome { leftover, .. } =
        outcome.map_err(|error| bad_pack::report_unpacking(&error, context))?;
    context.out.write_all(&leftover)?;
    Ok(ExitCode::SUCCESS)
}
