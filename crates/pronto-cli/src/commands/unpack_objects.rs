//! `unpack-objects`: loose objects of a pack that comes on the standard input.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::fsck::{Inspector, Levels, Scope};
use pronto::packs;
use pronto_odb::{Quarantine, Store};
use pronto_pack::indexer::{self, Options, Outcome, UNPACKING, scan_stream};

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
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "ID=SEVERITY,…")]
    strict: Option<OsString>,
    /// Refuse packs of more bytes than this
    #[arg(long, value_name = "BYTES")]
    max_input_size: Option<String>,
    /// The start of the pack, which somebody has read already
    #[arg(long = "pack_header", value_name = "VERSION,COUNT")]
    pack_header: Option<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.recover {
        return Err(CliError::unsupported("option '-r' of 'unpack-objects'"));
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
    let progress = context.prompt_progress(!quiet);
    let mut levels = Levels::strict();
    if let Some(list) = &args.strict {
        levels.set_all(list.as_bytes().as_bstr())?;
    }
    let store = repository.objects()?;
    let shallow = pronto::remote::shallow::read(&repository)?;
    let scope = Scope {
        objects: true,
        links: true,
        shallow: Some(&shallow),
        store: Some(store),
        ..Scope::default()
    };
    let inspector = Inspector::new(options.kind, &levels, scope);
    let mut watched = indexer::Context {
        progress: &*progress,
        interrupt: Some(&context.interrupt),
        ..indexer::Context::default()
    };
    let outcome = match (args.dry_run, &args.strict) {
        (true, _) => scan_stream(&mut input, &options, &watched)
            .map_err(|error| error.map_kind(pronto_odb::ErrorKind::from)),
        (false, None) => store.unpack(&mut input, &options, &watched),
        (false, Some(_)) => {
            watched.inspect = Some(&inspector);
            unpack_checked(store, &mut input, &options, &watched)
        }
    };
    bad_pack::tell(&inspector, context);
    let Outcome { leftover, .. } =
        outcome.map_err(|error| bad_pack::report_unpacking(&error, context))?;
    context.out.write_all(&leftover)?;
    Ok(ExitCode::SUCCESS)
}

/// Unpacks where nobody sees the objects before all are checked.
fn unpack_checked(
    store: &Store,
    input: &mut Input,
    options: &Options,
    watched: &indexer::Context<'_>,
) -> Result<Outcome, pronto_odb::Error> {
    let quarantine = Quarantine::begin(store)?;
    let outcome = quarantine.store().unpack(input, options, watched)?;
    quarantine.publish()?;
    Ok(outcome)
}
