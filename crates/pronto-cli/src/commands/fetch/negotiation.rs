//! The negotiation options `--negotiation-restrict`, `--negotiation-include` and
//! `--negotiate-only`.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use pronto::fetch::Options;
use pronto::remote::{OfferOptions, Remote, common_commits, connection};
use pronto::{ErrorKind, Watch};

use super::Args;
use crate::{CliError, Context, ExitCode};

/// The exit code if the server does not support `--negotiate-only`.
const UNSUPPORTED: ExitCode = ExitCode::new(255);

/// Returns the commits that the options select as haves.
pub(super) fn offer(args: &Args) -> OfferOptions {
    let text = |text: &OsString| text.as_bytes().into();
    let restrict = args
        .negotiation_restrict
        .iter()
        .chain(&args.negotiation_tip);
    OfferOptions {
        restrict: restrict.map(text).collect(),
        include: args.negotiation_include.iter().map(text).collect(),
    }
}

/// Prints the commits that both repositories have (`--negotiate-only`).
pub(super) fn print_common(
    remotes: &[Remote],
    options: &Options,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let [remote] = remotes else {
        let message = "must supply remote when using --negotiate-only";
        return Err(CliError::fatal(message));
    };
    let repository = context.repository()?;
    let offer = options.offer.choose(&repository, remote);
    let offer = offer.map_err(CliError::of)?;
    context.report();
    if offer.tips.is_none() {
        let message = "--negotiate-only needs one or more --negotiation-restrict=*";
        return Err(CliError::fatal(message));
    }
    let (config, environment) = (repository.config(), repository.environment());
    let settings = options.settings.for_remote(remote, config)?;
    let progress = context.progress(None, true);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let url = remote.url()?;
    let mut client = connection::connect(url, &settings, config, environment, &watch)?;
    let is_bundle = client.bundle().is_some();
    let found = common_commits(&repository, &mut client, &offer, &options.server_options);
    // The negotiation is complete, so an error on closing the connection does not matter.
    let _ = client.close();
    match found {
        Ok(found) => {
            for id in found {
                writeln!(context.out, "{id}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            context.warn(error.message());
            Ok(match is_bundle {
                true => ExitCode::FAILURE,
                false => UNSUPPORTED,
            })
        }
        Err(error) => Err(error.into()),
    }
}
