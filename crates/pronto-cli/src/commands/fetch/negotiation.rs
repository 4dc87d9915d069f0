//! `--negotiation-tip` and `--negotiate-only`.

use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, ByteSlice};
use pronto::fetch::Options;
use pronto::remote::{Remote, common_commits, connection};
use pronto::revision::RefSelection;
use pronto::{ErrorKind, ObjectId, Repository, Watch};

use super::Args;
use crate::{CliError, Context, ExitCode};

/// The exit code if the other side cannot negotiate without a pack.
const UNSUPPORTED: ExitCode = ExitCode::new(255);

/// Returns the objects whose history is offered; `None` if the options do not choose them.
pub(super) fn tips(
    args: &Args,
    repository: &Repository,
    context: &mut Context,
) -> Result<Option<Vec<ObjectId>>, CliError> {
    if args.negotiation_tip.is_empty() {
        return Ok(None);
    }
    let mut tips = Vec::new();
    for given in &args.negotiation_tip {
        let given = BStr::new(given.as_bytes());
        if given.find_byteset(b"*?[").is_none() {
            // A missing ref is ignored.
            let Ok(id) = repository.resolve(given) else {
                continue;
            };
            if !repository.objects()?.contains(&id)? {
                let message = format!("the object {given} does not exist");
                return Err(CliError::fatal(message));
            }
            tips.push(id);
            continue;
        }
        let before = tips.len();
        let selection = RefSelection::glob(given);
        repository.refs().for_each("refs/", |reference| {
            if selection.shown(reference.name, &[]).is_some() {
                tips.push(reference.id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if tips.len() == before {
            context.warn(&format!(
                "ignoring --negotiation-restrict={given} because it does not match any refs"
            ));
        }
    }
    Ok(Some(tips))
}

/// Prints the commits that both sides have.
pub(super) fn print_common(
    remotes: &[Remote],
    options: &Options,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let [remote] = remotes else {
        let message = "must supply remote when using --negotiate-only";
        return Err(CliError::fatal(message));
    };
    let Some(tips) = &options.negotiation_tips else {
        let message = "--negotiate-only needs one or more --negotiation-restrict=*";
        return Err(CliError::fatal(message));
    };
    let repository = context.repository()?;
    let (config, environment) = (repository.config(), repository.environment());
    let settings = options.settings.for_remote(remote, config)?;
    let progress = context.progress(None, true);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let url = remote.url()?;
    let mut client = connection::connect(url, &settings, config, environment, &watch)?;
    let is_bundle = client.bundle().is_some();
    let found = common_commits(&repository, &mut client, tips, &options.server_options);
    // The answer is complete.
    let _ = client.close();
    match found {
        Ok(found) => {
            for id in found {
                writeln!(context.out, "{id}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) if *error.kind() == ErrorKind::Unsupported => {
            context.warn(error.message());
            Ok(match is_bundle {
                true => ExitCode::FAILURE,
                false => UNSUPPORTED,
            })
        }
        Err(error) => Err(error.into()),
    }
}
