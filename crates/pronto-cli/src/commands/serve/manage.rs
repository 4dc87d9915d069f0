//! `serve user`, `serve token` and `serve repository`: manage users, tokens and repositories.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use pronto_server::names::RepositoryName;
use pronto_server::repositories::Repositories;
use pronto_server::users::{TokenMode, User, Users};

use super::Args;
use super::git::{change, failure, managed};
use super::subcommands::{Manage, RepositoryCommand, UserCommand};
use crate::commands::shared::{counted, utc};
use crate::json::Json;
use crate::{CliError, Context, ExitCode};

impl Manage {
    pub(super) fn run(&self, args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
        match self {
            Manage::User { command } => command.run(args, context),
            Manage::Token { replace, name } => {
                let mode = match replace {
                    true => TokenMode::Replace,
                    false => TokenMode::Add,
                };
                let token = change(args, context, |users| users.add_token(name, mode))?;
                writeln!(context.out, "{token}")?;
                Ok(ExitCode::SUCCESS)
            }
            Manage::Repository { command } => command.run(args, context),
        }
    }
}

impl UserCommand {
    fn run(&self, args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
        match self {
            UserCommand::Add { name } => change(args, context, |users| users.add(name))?,
            UserCommand::Remove { name } => change(args, context, |users| users.remove(name))?,
            UserCommand::List { json } => return list_users(args, *json, context),
            UserCommand::Key { command } => return command.run(args, context),
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RepositoryCommand {
    fn run(&self, args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
        let config = managed(args, context)?;
        let environment = context.environment()?;
        let repositories = Repositories::managed(&config, &environment).map_err(failure)?;
        match self {
            RepositoryCommand::Create { name } => {
                let name = RepositoryName::parse(name).map_err(failure)?;
                repositories.create(&name).map_err(failure)?;
                if config.store.is_none() {
                    warn_of_owner(&config.root, &name, context);
                }
            }
            RepositoryCommand::Remove { name } => {
                let name = RepositoryName::parse(name).map_err(failure)?;
                repositories.remove(&name).map_err(failure)?;
            }
            RepositoryCommand::List { json: true } => {
                let entry = |name: String| Json::Object(vec![("name", name.into())]);
                let listed = repositories.list().map_err(failure)?;
                let listed = listed.into_iter().map(entry).collect();
                context.print_document(vec![("repositories", listed)])?;
            }
            RepositoryCommand::List { json: false } => {
                for name in repositories.list().map_err(failure)? {
                    writeln!(context.out, "{name}")?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list_users(args: &Args, json: bool, context: &mut Context) -> Result<ExitCode, CliError> {
    let config = managed(args, context)?;
    let users = Users::read(&config.users).map_err(failure)?.users;
    if json {
        let entry = |user: &User| {
            let added = Some(user.added).filter(|&seconds| seconds > 0).map(utc);
            Json::Object(vec![
                ("name", user.name.as_str().into()),
                ("added", added.into()),
                ("tokens", user.tokens.len().into()),
                ("keys", user.keys.len().into()),
            ])
        };
        let users = users.iter().map(entry).collect();
        context.print_document(vec![("users", users)])?;
        return Ok(ExitCode::SUCCESS);
    }
    for user in users {
        let tokens = counted(user.tokens.len(), "token");
        let keys = counted(user.keys.len(), "key");
        writeln!(context.out, "{}\t{tokens}\t{keys}", user.name)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Warns if another user than the owner of `root` has created the repository `name` there. A server that
/// runs as the owner does not open the repositories of others (`safe.directory`).
fn warn_of_owner(root: &Path, name: &RepositoryName, context: &mut Context) {
    let user = rustix::process::geteuid().as_raw();
    let Ok(owner) = std::fs::metadata(root).map(|found| found.uid()) else {
        return;
    };
    if owner != user {
        let path = root.join(format!("{name}.git"));
        context.warn(&format!(
            "repository '{name}' belongs to user {user}, and '{}' to user {owner}; if the server runs as user \
             {owner}, run 'chown -R --reference={} {}'",
            root.display(),
            root.display(),
            path.display()
        ));
    }
}
