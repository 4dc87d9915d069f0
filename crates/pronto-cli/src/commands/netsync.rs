//! `netsync`: manage the key of the user and the trusted peers.

use pronto_netsync::message::Globs;
use pronto_peer::{self as netsync, KeyPair, KeyPaths, KnownPeer, KnownPeers, PublicKey, Roles};
use std::io::Write as _;

use crate::json::Json;
use crate::{CliError, Context, ExitCode};

/// Arguments of `netsync`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: NetsyncCommand,
}

#[derive(clap::Subcommand, Debug)]
enum NetsyncCommand {
    /// Create the key of the user, and show its public half
    Keygen,
    /// Show the public key of the user
    Key,
    /// List the trusted peers
    Peers {
        /// Print the list as JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a peer
    Trust(TrustArguments),
    /// Revoke the trust in a peer
    Revoke {
        /// The name of the peer, or its key
        #[arg(value_name = "NAME|KEY")]
        peer: String,
    },
    /// Forget a peer, so that another repository can use its name
    Forget {
        /// The name of the peer
        name: String,
    },
}

#[derive(clap::Args, Debug)]
struct TrustArguments {
    /// The roles of the peer: 'read' receives from here, 'write' sends
    #[arg(long, value_name = "ROLES", default_value = "read,write")]
    roles: String,
    /// The address of the peer
    #[arg(long, value_name = "HOST[:PORT]")]
    at: Option<String>,
    /// Let the peer see and send only these branches; refs if the glob begins with 'refs/'
    #[arg(long, value_name = "GLOB")]
    only: Vec<String>,
    /// Exclude these branches or refs
    #[arg(long, value_name = "GLOB")]
    not: Vec<String>,
    /// The local name of the peer
    name: String,
    /// The public key of the peer, which 'pronto netsync key' shows there
    key: String,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    match &args.command {
        NetsyncCommand::Keygen => keygen(context),
        NetsyncCommand::Key => show_key(context),
        NetsyncCommand::Peers { json: false } => show_peers(context),
        NetsyncCommand::Peers { json: true } => print_peers(context),
        NetsyncCommand::Trust(trust) => trust.run(context),
        NetsyncCommand::Revoke { peer } => revoke(peer, context),
        NetsyncCommand::Forget { name } => {
            netsync::forget_peer(&*context.repository()?, name)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Returns the paths of the key and of the list of trusted peers.
pub(super) fn paths(context: &mut Context) -> Result<KeyPaths, CliError> {
    let environment = context.environment()?;
    Ok(match context.repository_if_any()? {
        Some(repository) => KeyPaths::configured(repository.config(), &environment)?,
        None => {
            let config = pronto::config::without_repository(&environment)?;
            KeyPaths::configured(&config, &environment)?
        }
    })
}

fn keygen(context: &mut Context) -> Result<ExitCode, CliError> {
    let path = paths(context)?.key;
    if path.exists() {
        let message = format!("key file '{}' already exists", path.display());
        let hint = "peers may trust this key; remove the file only if no peer needs to trust it";
        return Err(CliError::fatal(message).with_hint(hint));
    }
    let key = KeyPair::generate()?;
    key.write(&path)?;
    print_key(&key.public(), context)
}

fn show_key(context: &mut Context) -> Result<ExitCode, CliError> {
    let path = paths(context)?.key;
    print_key(&KeyPair::read(&path)?.public(), context)
}

fn print_key(key: &PublicKey, context: &mut Context) -> Result<ExitCode, CliError> {
    writeln!(context.out, "{key}\nfingerprint {}", key.fingerprint())?;
    Ok(ExitCode::SUCCESS)
}

fn show_peers(context: &mut Context) -> Result<ExitCode, CliError> {
    let path = paths(context)?.peers;
    for peer in KnownPeers::read(&path)?.iter() {
        let out = &mut context.out;
        write!(
            out,
            "{}\t{}\t{}",
            peer.name,
            peer.roles.as_str(),
            peer.key.fingerprint()
        )?;
        if let Some(address) = &peer.address {
            write!(out, "\tat {address}")?;
        }
        for (word, globs) in [("only", &peer.globs.include), ("not", &peer.globs.exclude)] {
            for glob in globs {
                write!(out, "\t{word} {}", String::from_utf8_lossy(glob))?;
            }
        }
        writeln!(out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the trusted peers as a JSON document.
fn print_peers(context: &mut Context) -> Result<ExitCode, CliError> {
    let path = paths(context)?.peers;
    let known = KnownPeers::read(&path)?;
    let peers = known.iter().map(|peer| {
        let roles = [
            ("read", peer.roles.may_read),
            ("write", peer.roles.may_write),
        ];
        let roles = roles.into_iter().filter(|(_, may)| *may);
        let globs = |globs: &[Vec<u8>]| globs.iter().map(|glob| Json::of_bytes(glob)).collect();
        Json::Object(vec![
            ("name", peer.name.as_str().into()),
            ("key", peer.key.to_string().into()),
            ("fingerprint", peer.key.fingerprint().into()),
            ("revoked", peer.is_revoked().into()),
            ("roles", roles.map(|(role, _)| Json::from(role)).collect()),
            ("address", peer.address.as_deref().into()),
            ("only", globs(&peer.globs.include)),
            ("not", globs(&peer.globs.exclude)),
        ])
    });
    let peers = peers.collect();
    context.print_document(vec![("peers", peers)])?;
    Ok(ExitCode::SUCCESS)
}

impl TrustArguments {
    fn run(&self, context: &mut Context) -> Result<ExitCode, CliError> {
        let (name, key) = (self.name.as_str(), self.key.as_str());
        let path = paths(context)?.peers;
        if !netsync::is_peer_name(name) {
            let message = format!("invalid peer name '{name}'");
            let hint = "use letters, digits, '.', '_' and '-'; the first character must be a \
                        letter or a digit";
            return Err(CliError::fatal(message).with_hint(hint));
        }
        let key = PublicKey::parse(key).ok_or_else(|| {
            CliError::fatal(format!("invalid public key '{key}'")).with_hint(
                "run 'pronto netsync key' on the peer to get its key: 'ed25519:' and 64 \
                 hexadecimal digits",
            )
        })?;
        let roles = Roles::parse(&self.roles).filter(|roles| !roles.is_revoked());
        let roles = roles.ok_or_else(|| {
            CliError::fatal(format!("invalid value '{}' for '--roles'", self.roles))
                .with_hint("use 'read', 'write' or 'read,write'")
        })?;
        let is_word = |word: &String| !word.is_empty() && !word.contains(char::is_whitespace);
        let words = self.at.iter().chain(&self.only).chain(&self.not);
        if let Some(word) = words.into_iter().find(|word| !is_word(word)) {
            return Err(CliError::fatal(format!(
                "'{word}' is empty or contains white space"
            )));
        }
        let full = |globs: &[String]| {
            let full = globs.iter().map(|glob| match glob.starts_with("refs/") {
                true => glob.clone().into_bytes(),
                false => format!("refs/heads/{glob}").into_bytes(),
            });
            full.collect()
        };
        let peer = KnownPeer {
            name: name.to_owned(),
            key,
            roles,
            address: self.at.clone(),
            globs: Globs {
                include: full(&self.only),
                exclude: full(&self.not),
            },
        };
        KnownPeers::change(&path, |known| known.trust(peer))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn revoke(whom: &str, context: &mut Context) -> Result<ExitCode, CliError> {
    let path = paths(context)?.peers;
    let key = PublicKey::parse(whom);
    let mut count = 0;
    KnownPeers::change(&path, |known| {
        count = known.revoke(|peer| peer.name == whom || Some(peer.key) == key);
        Ok(())
    })?;
    if count == 0 {
        return Err(CliError::fatal(format!(
            "no peer has the name or key '{whom}'"
        )));
    }
    Ok(ExitCode::SUCCESS)
}
