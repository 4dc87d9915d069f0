//! `unpack-objects`: unpack a pack on standard input into loose objects.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::fsck::{FsckInspector, InspectionScope, Levels};
use pronto::packs;
use pronto_io::watch::Watch;
use pronto_odb::{Quarantine, Salvaged, Store};
use pronto_pack::indexer::{self, Options, Outcome, UNPACKING, scan_stream};
use pronto_pack::salvage;

use super::index_pack::{PackInput, leading_number};
use crate::commands::shared::bad_pack;
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
    /// Recover as much as possible from a damaged pack
    #[arg(short = 'r')]
    recover: bool,
    /// Write nothing that is malformed, or links to missing objects
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "ID=SEVERITY,…")]
    strict: Option<OsString>,
    /// Refuse packs larger than this
    #[arg(long, value_name = "BYTES")]
    max_input_size: Option<String>,
    /// The pack header, if the caller has already read it
    #[arg(long = "pack_header", value_name = "VERSION,COUNT")]
    pack_header: Option<String>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.recover && args.strict.is_some() {
        let what = "'unpack-objects -r --strict'";
        return Err(CliError::unsupported(what));
    }
    let repository = context.repository()?;
    if repository.has_promisor()? {
        // A delta base may have to be fetched.
        return Err(CliError::unsupported("'unpack-objects' in a partial clone"));
    }
    let mut options = packs::indexer_options(repository.config(), repository.object_hash())?;
    options.title = UNPACKING;
    if let Some(text) = &args.max_input_size {
        let limit = leading_number(text);
        options.max_input_size_bytes = (limit > 0).then_some(limit);
    }
    let mut input = PackInput::new(args.pack_header.as_deref())?;
    let quiet = args.quiet || !std::io::stderr().is_terminal();
    let progress = context.prompt_progress(!quiet);
    if args.recover {
        let mut salvaging = salvage::Options::new(options.kind);
        salvaging.limit_bytes = options.max_input_size_bytes;
        salvaging.large_bytes = options.big_file_threshold_bytes;
        salvaging.dry_run = args.dry_run;
        let watch = Watch::from(&context.interrupt).with_progress(&*progress);
        let store = repository.objects()?;
        let salvaged = store.salvage(&mut input, &salvaging, &watch);
        return print(salvaged, context);
    }
    let mut levels = Levels::strict();
    if let Some(list) = &args.strict {
        levels.set_all(list.as_bytes().as_bstr())?;
    }
    let store = repository.objects()?;
    let shallow = pronto::remote::shallow::read(&repository)?;
    let scope = InspectionScope {
        objects: true,
        links: true,
        shallow: Some(&shallow),
        store: Some(store),
        ..InspectionScope::default()
    };
    let inspector = FsckInspector::new(options.kind, &levels, scope);
    let mut watched = indexer::IndexContext {
        progress: &*progress,
        interrupt: Some(&context.interrupt),
        ..indexer::IndexContext::default()
    };
    let outcome = match (args.dry_run, &args.strict) {
        (true, _) => scan_stream(&mut input, &options, &watched),
        (false, None) => store.unpack(&mut input, &options, &watched),
        (false, Some(_)) => {
            watched.inspect = Some(&inspector);
            unpack_checked(store, &mut input, &options, &watched)
        }
    };
    bad_pack::print(&inspector, context);
    let Outcome { leftover, .. } =
        outcome.map_err(|error| bad_pack::report_unpacking(&error, context))?;
    context.out.write_all(&leftover)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the objects that could not be recovered from a damaged pack (`-r`).
fn print(salvaged: Salvaged, context: &mut Context) -> Result<ExitCode, CliError> {
    for damage in &salvaged.damage {
        context.report_error(&damage.to_string());
    }
    let leftover = salvaged.ended.map_err(|error| match error.kind() {
        pronto_odb::ErrorKind::Interrupted => pronto_io::interrupt::Interrupted.into(),
        pronto_odb::ErrorKind::Io => CliError::fatal(error.to_string()),
        _ => CliError::fatal(error.message()),
    })?;
    context.out.write_all(&leftover)?;
    Ok(match salvaged.damage.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Unpacks into a quarantine directory, and moves the objects into the store after all checks
/// (`--strict`).
fn unpack_checked(
    store: &Store,
    input: &mut PackInput,
    options: &Options,
    watched: &indexer::IndexContext<'_>,
) -> Result<Outcome, pronto_pack::Error> {
    let to_pack = |error: pronto_odb::Error| error.map_kind(pronto_pack::ErrorKind::from);
    let quarantine = Quarantine::begin(store).map_err(to_pack)?;
    let outcome = quarantine.store().unpack(input, options, watched)?;
    quarantine.publish().map_err(to_pack)?;
    Ok(outcome)
}
