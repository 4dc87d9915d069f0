//! `serve user`, `serve token` and `serve repository`: manage users, tokens and repositories.

use std::ffi::OsString;
use std::io::Write as _;

use pronto_server::names::RepositoryName;
use pronto_server::repositories::Repositories;
use pronto_server::users::{TokenMode, Users};

use super::Args;
use super::git::{change, failure, managed};
use super::keys;
use crate::{CliError, Context, ExitCode};

pub(super) fn run(
    args: &Args,
    words: &[OsString],
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let words: Vec<_> = words.iter().map(|word| word.to_str()).collect();
    match words.as_slice() {
        [Some("user"), Some("list")] => list_users(args, context),
        [Some("user"), Some("add"), Some(name)] => {
            change(args, context, |users| users.add(name))?;
            Ok(ExitCode::SUCCESS)
        }
        [Some("user"), Some("remove"), Some(name)] => {
            change(args, context, |users| users.remove(name))?;
            Ok(ExitCode::SUCCESS)
        }
        [Some("user"), Some("key"), words @ ..] => keys::run(args, words, context),
        [Some("token"), Some(name)] => {
            let mode = match args.replace {
                true => TokenMode::Replace,
                false => TokenMode::Add,
            };
            let token = change(args, context, |users| users.add_token(name, mode))?;
            writeln!(context.out, "{token}")?;
            Ok(ExitCode::SUCCESS)
        }
        [Some("repository"), Some("list")] => {
            for name in repositories(args, context)?.list().map_err(failure)? {
                writeln!(context.out, "{name}")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        [Some("repository"), Some("create"), Some(name)] => {
            let name = RepositoryName::parse(name).map_err(failure)?;
            repositories(args, context)?
                .create(&name)
                .map_err(failure)?;
            Ok(ExitCode::SUCCESS)
        }
        [Some("repository"), Some("remove"), Some(name)] => {
            let name = RepositoryName::parse(name).map_err(failure)?;
            repositories(args, context)?
                .remove(&name)
                .map_err(failure)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(CliError::usage(
            "serve takes one directory, or 'user add|remove NAME', 'user list', 'user key ...', \
             'token NAME', 'repository create|remove NAME' or 'repository list'",
        )),
    }
}

fn list_users(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let config = managed(args, context)?;
    for user in Users::read(&config.users).map_err(failure)?.users {
        let (tokens, keys) = (user.tokens.len(), user.keys.len());
        writeln!(context.out, "{}\t{tokens} tokens\t{keys} keys", user.name)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn repositories(args: &Args, context: &mut Context) -> Result<Repositories, CliError> {
    let config = managed(args, context)?;
    let environment = context.environment()?;
    Repositories::managed(&config, &environment).map_err(failure)
}
