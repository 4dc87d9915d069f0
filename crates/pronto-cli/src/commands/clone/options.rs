//! Converts the arguments of `clone` into the options of the library.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pronto::clone::{Options, ReferenceRepository};
use pronto::remote::connection::Settings;
use pronto::remote::{AddressFamily, Deepen, filter_spec};
use pronto::revision::approximate_date;

use super::super::init;
use super::{Args, bytes, check};
use crate::{CliError, Context};

pub(super) fn options(args: &Args, context: &Context) -> Result<Options, CliError> {
    check(args)?;
    let mut options = Options::default();
    options.bare = args.bare;
    options.mirror = args.mirror;
    options.checkout = !args.no_checkout;
    options.sparse = args.sparse;
    options.branch = args.branch.as_ref().map(|name| bytes(name).into());
    options.revision = args.revision.as_ref().map(|name| bytes(name).into());
    options.origin = args.origin.as_ref().map(|name| bytes(name).into());
    options.deepen = deepen(args)?;
    options.single_branch = args.single_branch;
    options.tags = !args.no_tags;
    let filter = args
        .filter
        .as_ref()
        .map(|filter| filter_spec(filter.as_bytes().into()));
    options.filter = filter.transpose()?;
    let required = args.reference.iter().map(|path| (path, true));
    let optional = args.reference_if_able.iter().map(|path| (path, false));
    let references = required.chain(optional);
    let reference = |(path, is_required)| ReferenceRepository::new(path, is_required);
    options.references = references.map(reference).collect();
    options.shared = args.shared;
    options.local = args.local;
    options.hardlinks = !args.no_hardlinks;
    options.config = args
        .config
        .iter()
        .map(|setting| bytes(setting).into())
        .collect();
    for pathspec in &args.recurse_submodules {
        let setting = [b"submodule.active=".as_slice(), pathspec.as_bytes()].concat();
        options.config.push(setting.into());
    }
    options.template = args.template.as_ref().map(PathBuf::from);
    options.separate_git_dir.clone_from(&args.separate_git_dir);
    options.ref_storage = init::ref_storage(args.ref_format.as_deref())?;
    options.reject_shallow = args.reject_shallow;
    options.bundle_uri = args.bundle_uri.as_ref().map(|uri| bytes(uri).into());
    let mut settings = Settings::default();
    settings.upload_pack = args
        .upload_pack
        .as_ref()
        .map(|program| bytes(program).into());
    settings.family = match (args.ipv4, args.ipv6) {
        (true, _) => AddressFamily::V4,
        (_, true) => AddressFamily::V6,
        _ => AddressFamily::Any,
    };
    options.settings = settings;
    options.server_options = args
        .server_option
        .iter()
        .map(|text| bytes(text).into())
        .collect();
    options.show_progress = context.shows_progress(args.progress, args.quiet);
    Ok(options)
}

fn deepen(args: &Args) -> Result<Deepen, CliError> {
    let mut deepen = Deepen::default();
    if let Some(depth) = &args.depth {
        let parsed = depth.parse::<u32>().ok().filter(|&depth| depth > 0);
        let message = format!("depth {depth} is not a positive number");
        deepen.depth = Some(parsed.ok_or_else(|| CliError::fatal(message))?);
    }
    if let Some(since) = &args.shallow_since {
        deepen.since = Some(approximate_date(since.as_str().into()));
    }
    deepen.not = args
        .shallow_exclude
        .iter()
        .map(|name| bytes(name).into())
        .collect();
    Ok(deepen)
}
