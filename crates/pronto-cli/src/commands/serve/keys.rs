//! `serve user key`: manage the public keys of users.

use std::io::{Read as _, Write as _};
use std::path::Path;

use pronto_server::keys::UserKey;
use pronto_server::users::{User, Users};

use super::Args;
use super::git::{change, failure, managed};
use super::subcommands::KeyCommand;
use crate::{CliError, Context, ExitCode};

/// The prefix of a netsync public key, which may be given instead of a file.
const NETSYNC: &str = "ed25519:";

/// The largest size of a public key file.
const LARGEST_BYTES: u64 = 64 * 1024;

impl KeyCommand {
    pub(super) fn run(&self, args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
        match self {
            KeyCommand::Add { name, key } => add(args, name, key, context),
            KeyCommand::Remove { name, fingerprint } => {
                change(args, context, |users| users.remove_key(name, fingerprint))?;
                Ok(ExitCode::SUCCESS)
            }
            KeyCommand::List { name } => list(args, name.as_deref(), context),
            KeyCommand::Authorized { fingerprint } => {
                authorized(args, fingerprint.as_deref(), context)
            }
        }
    }
}

/// Adds the key in a file to a user, and prints its fingerprint.
fn add(args: &Args, name: &str, file: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let mut text = Vec::new();
    if file.starts_with(NETSYNC) {
        text.extend_from_slice(file.as_bytes());
    } else if file == "-" {
        let input = std::io::stdin().lock();
        input.take(LARGEST_BYTES).read_to_end(&mut text)?;
    } else {
        let path = context.environment()?.absolute(Path::new(file));
        let links = pronto_io::untrusted::SymlinkPolicy::Follow;
        text = pronto_io::untrusted::read(&path, links, LARGEST_BYTES)
            .map_err(|error| CliError::of_system(&format!("cannot read '{file}'"), &error))?;
    }
    let text = String::from_utf8_lossy(&text);
    // `netsync key` prints the fingerprint in a second line.
    let line = match text.starts_with(NETSYNC) {
        true => text.lines().next().unwrap_or_default(),
        false => &text,
    };
    let key = UserKey::parse(line).map_err(failure)?;
    change(args, context, |users| users.add_key(name, &key))?;
    writeln!(context.out, "{}", key.fingerprint())?;
    Ok(ExitCode::SUCCESS)
}

/// Lists the keys of all users, or of one user.
fn list(args: &Args, name: Option<&str>, context: &mut Context) -> Result<ExitCode, CliError> {
    let users = users(args, context)?;
    if let Some(name) = name
        && users.iter().all(|user| user.name != name)
    {
        return Err(CliError::fatal(format!("no user '{name}'")));
    }
    for (user, key) in keys(&users) {
        if name.is_none_or(|name| name == user) {
            let (kind, print) = (key.kind(), key.fingerprint());
            writeln!(context.out, "{user}\t{print}\t{kind}\t{}", key.comment())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints lines for `AuthorizedKeysCommand` of sshd: each key may only run `pronto shell`.
fn authorized(
    args: &Args,
    fingerprint: Option<&str>,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let users = users(args, context)?;
    let program = crate::programs::own()?;
    let config = args.config.as_deref().unwrap_or(Path::new(""));
    let config = context.environment()?.absolute(config);
    let (program, config) = (quoted(&program)?, quoted(&config)?);
    for (user, key) in keys(&users) {
        if fingerprint.is_none_or(|wanted| wanted == key.fingerprint()) {
            let line = key.line();
            writeln!(
                context.out,
                "command=\"{program} shell --config {config} --user {user}\",restrict {line}"
            )?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn users(args: &Args, context: &mut Context) -> Result<Vec<User>, CliError> {
    let config = managed(args, context)?;
    Ok(Users::read(&config.users).map_err(failure)?.users)
}

/// Returns the keys with the names of their users. Keys in the user file are well formed.
fn keys(users: &[User]) -> impl Iterator<Item = (&str, UserKey)> {
    users.iter().flat_map(|user| {
        let keys = user.keys.iter();
        keys.filter_map(|key| Some((user.name.as_str(), UserKey::parse(&key.public).ok()?)))
    })
}

/// Quotes a path as a word of the shell, inside the double quotes of an option in
/// `authorized_keys`.
fn quoted(path: &Path) -> Result<String, CliError> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(char::is_control));
    let text = text.ok_or_else(|| {
        CliError::fatal(format!(
            "path '{}' is not UTF-8 or contains a control character: authorized_keys cannot hold \
             it",
            path.display()
        ))
    })?;
    let word = format!("'{}'", text.replace('\'', "'\\''"));
    Ok(word.replace('"', "\\\""))
}
