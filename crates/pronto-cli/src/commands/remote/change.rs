//! The subcommands of `remote` that change the settings of a remote, and `get-url`.

use std::io::Write;

use bstr::{BStr, BString, ByteSlice};
use pronto::configured_remotes::{self, Kind, UrlChange};
use pronto::push::PushRemote;
use pronto::{ErrorKind, Watch};

use super::{Args, EXISTS, configured, unsupported, warn_of_default};
use crate::{CliError, Context, ExitCode};

pub(super) fn get_url(
    args: &Args,
    name: &BStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let remote = configured(&repository, name, "")?;
    let urls = match args.push {
        true => PushRemote::of(&repository, remote)?.urls,
        false => remote.urls,
    };
    let shown = if args.all { urls.len() } else { 1 };
    for url in urls.iter().take(shown) {
        writeln!(context.out, "{url}")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn set_url(
    args: &Args,
    name: &BStr,
    url: &BString,
    old: Option<&BString>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    if args.add && args.delete {
        return Err(CliError::fatal("--add --delete doesn't make sense"));
    }
    let change = match (args.add, args.delete, old) {
        (true, _, None) => UrlChange::Add(url.clone()),
        (_, true, None) => UrlChange::Delete(url.clone()),
        (false, false, None) => UrlChange::Set(url.clone()),
        (false, false, Some(old)) => UrlChange::Replace {
            new: url.clone(),
            old: old.clone(),
        },
        _ => return Err(unsupported()),
    };
    let kind = match args.push {
        true => Kind::Push,
        false => Kind::Fetch,
    };
    let repository = context.repository()?;
    let remote = configured(&repository, name, "")?;
    configured_remotes::change_url(&repository, &remote, kind, &change)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn set_branches(
    args: &Args,
    name: &BStr,
    branches: &[BString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let remote = configured(&repository, name, "")?;
    Ok(
        match configured_remotes::track_branches(&repository, &remote, branches, args.add)? {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        },
    )
}

pub(super) fn rename(
    args: &Args,
    old: &BStr,
    new: &BStr,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let remote = configured(&repository, old, ":")?;
    let migrates = old == new && remote.file.is_some();
    if !migrates
        && configured_remotes::find(&repository, new)
            .map_err(CliError::of)?
            .is_some()
    {
        context.report();
        let message = format!("remote {new} already exists.");
        return Err(CliError::error(message).with_code(EXISTS));
    }
    let progress = context.progress(args.progress, false);
    let watch = Watch::from(&context.interrupt).with_progress(&*progress);
    let renamed = configured_remotes::rename(&repository, &remote, new, &watch);
    context.settle();
    let renamed = renamed.map_err(|error| match error.kind() {
        ErrorKind::NameConflict => CliError::error(error.message())
            .with_code(ExitCode::FATAL)
            .with_hint(
                "The remote you are trying to rename has conflicting references in the\n\
                 new target refspec. This is most likely caused by you trying to nest\n\
                 a remote into itself, e.g. by renaming 'parent' into 'parent/child'\n\
                 or by unnesting a remote, e.g. the other way round.\n\n\
                 If that is the case, you can address this by first renaming the\n\
                 remote to a different name.",
            ),
        ErrorKind::Reference | ErrorKind::Corrupt | ErrorKind::Moved | ErrorKind::Locked => {
            CliError::error(error.message()).with_code(ExitCode::FATAL)
        }
        ErrorKind::Config => CliError::error(error.message()),
        _ => error.into(),
    })?;
    context.report();
    for spec in &renamed.unchanged_refspecs {
        context.warn(&format!(
            "Not updating non-default fetch refspec\n\t{spec}\n\
             \tPlease update the configuration manually if necessary."
        ));
    }
    warn_of_default(renamed.push_default.as_ref(), context);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn remove(name: &BStr, context: &mut Context) -> Result<ExitCode, CliError> {
    let repository = context.repository()?;
    let remote = configured(&repository, name, ":")?;
    let removed =
        configured_remotes::remove(&repository, &remote).map_err(|error| match error.kind() {
            ErrorKind::Config | ErrorKind::Reference | ErrorKind::Corrupt => {
                CliError::error(error.message())
            }
            _ => error.into(),
        })?;
    context.report();
    let kept = &removed.kept_branches;
    if !kept.is_empty() {
        context.remark(match kept.len() {
            1 => {
                "Note: A branch outside the refs/remotes/ hierarchy was not removed;\n\
                 to delete it, use:"
            }
            _ => {
                "Note: Some branches outside the refs/remotes/ hierarchy were not removed;\n\
                 to delete them, use:"
            }
        });
    }
    for branch in kept {
        context.remark(&format!("  git branch -d {}", branch.as_bstr()));
    }
    warn_of_default(removed.push_default.as_ref(), context);
    Ok(ExitCode::SUCCESS)
}
