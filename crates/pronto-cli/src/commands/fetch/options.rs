//! Converts the arguments of `fetch` into the options of the library.

use std::io::{self, IsTerminal as _};
use std::os::unix::ffi::OsStrExt;

use pronto::Repository;
use pronto::fetch::Options;
use pronto::remote::connection::Settings;
use pronto::remote::{AddressFamily, Refspec, Tags, filter_spec};

use super::{Args, action, deepen};
use crate::{CliError, Context};

pub(super) fn options(
    args: &Args,
    context: &Context,
    repository: &Repository,
) -> Result<Options, CliError> {
    let mut options = Options::default();
    if !args.refmap.is_empty() {
        if args.refspecs.is_empty() {
            let message = "--refmap option is only meaningful with command-line refspec(s)";
            return Err(CliError::fatal(message));
        }
        let given = args.refmap.iter().filter(|spec| !spec.is_empty());
        let specs: Result<Vec<_>, _> = given
            .map(|spec| Refspec::parse(spec.as_bytes().into()))
            .collect();
        options.refmap = Some(specs?);
    }
    options.tags = match (args.tags, args.no_tags_short) {
        (_, true) | (Some(false), _) => Some(Tags::None),
        (Some(true), _) => Some(Tags::All),
        _ => None,
    };
    options.show_forced_updates = args.show_forced_updates;
    options.prune = args.prune;
    options.prune_tags = args.prune_tags;
    options.force = args.force;
    options.append = args.append;
    options.dry_run = args.dry_run;
    options.atomic = args.atomic;
    options.update_head = args.update_head_ok;
    options.write_fetch_head = !args.no_write_fetch_head && !args.dry_run;
    options.deepen = deepen::deepen(args)?;
    options.unshallow = args.unshallow;
    options.update_shallow = args.update_shallow;
    let filter = args
        .filter
        .as_ref()
        .map(|filter| filter_spec(filter.as_bytes().into()));
    options.filter = filter.transpose()?;
    options.no_filter =
        args.filter.is_none() && context.arguments.iter().any(|given| given == "--no-filter");
    options.refetch = args.refetch;
    options.prefetch = args.prefetch;
    let mut settings = Settings::default();
    settings.upload_pack = args
        .upload_pack
        .as_ref()
        .map(|program| program.as_bytes().into());
    settings.family = match (args.ipv4, args.ipv6) {
        (true, _) => AddressFamily::V4,
        (_, true) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    options.settings = settings;
    let values = args.server_option.iter();
    options.server_options = values.map(|value| value.as_bytes().into()).collect();
    options.show_progress = context.shows_progress(args.progress, args.quiet);
    // The objects of a document are counted by the meter.
    options.show_unpacking = args.json || options.show_progress && io::stderr().is_terminal();
    options.keep = args.keep;
    options.report_unchanged = args.verbose > 0 && !args.quiet;
    if args.quiet {
        options.report_unchanged = false;
    }
    options.action = match repository.environment().bytes("GIT_REFLOG_ACTION") {
        Some(action) => action.into(),
        None => action::of(context).into(),
    };
    Ok(options)
}
