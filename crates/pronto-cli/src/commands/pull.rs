//! `pull --netsync`: receive from a peer like `sync --pull`, and merge the peer's branch into the
//! current branch. git runs the merge, and every `pull` without `--netsync`.

use std::ffi::OsString;
use std::io::Write as _;

use bstr::ByteSlice as _;

use super::sync;
use crate::{CliError, Context, ExitCode, fallback};

/// The text at the end of the command's help, about the roles of pronto and git.
const WHEN: &str = "The branch of the peer becomes refs/remotes/NAME/BRANCH. Then it is merged, or the current branch is \
rebased onto it, as by 'git pull': with its configuration (pull.ff, pull.rebase), messages and hooks. \
Without --netsync the whole call goes to git: 'git pull -h' shows its options.";

/// Arguments of `pull`.
#[derive(clap::Args, Debug)]
#[command(after_help = WHEN)]
pub(crate) struct Args {
    /// The peer in the form of 'sync', and its branch (default: the name of the current branch)
    #[arg(value_name = "PEER [BRANCH]")]
    plain: Vec<OsString>,
    /// Receive from a peer in one conversation, without a configured remote
    #[arg(long)]
    netsync: bool,
    /// Fast-forward if possible (the default)
    #[arg(long)]
    ff: Option<bool>,
    /// Fail unless a fast-forward is possible
    #[arg(long)]
    ff_only: bool,
    /// Rebase the current branch onto that of the peer; --no-rebase merges, whatever is configured
    #[arg(long, short, value_name = "HOW", num_args = 0..=1, default_missing_value = "true")]
    rebase: Option<OsString>,
    /// Accept histories that have nothing in common
    #[arg(long)]
    allow_unrelated: bool,
    /// The local name of the peer
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The name of this repository at the peer; a server of netsync:// uses the name of its key
    #[arg(long = "as", value_name = "NAME")]
    own_name: Option<String>,
    /// The program on the other side of ssh
    #[arg(long, value_name = "PROGRAM", default_value = "pronto")]
    remote_program: OsString,
    /// Show progress even if standard error is not a terminal
    #[arg(long)]
    progress: Option<bool>,
    /// Print only errors
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if !args.netsync {
        return Err(CliError::unsupported("'pull' without --netsync"));
    }
    context.obey_as("sync")?;
    let (peer, named) = match args.plain.as_slice() {
        [peer] => (peer, None),
        [peer, branch] => (peer, Some(branch)),
        [] => return Err(CliError::misuse("missing peer to pull from")),
        _ => return Err(CliError::misuse("pull --netsync takes one branch only")),
    };
    let repository = context.repository()?;
    // Find out before anything changes whether git is available.
    let git = fallback::git(&context.globals)?;
    let branch = match named {
        Some(branch) => branch.as_encoded_bytes().to_vec(),
        None => match repository.head()?.branch() {
            Some(branch) => branch.to_vec(),
            None => {
                let hint = format!(
                    "name the branch to pull: pronto pull --netsync {} BRANCH",
                    peer.display()
                );
                return Err(CliError::fatal(
                    "HEAD is detached, so there is no default branch to pull",
                )
                .with_hint(hint));
            }
        },
    };
    let name = sync::take(&args.taking(peer), context)?;
    let tracking = [b"refs/remotes/", name.as_bytes(), b"/", &branch].concat();
    // The remote-tracking branch exists if the peer has the branch.
    if context.repository()?.refs().id_of(&tracking)?.is_none() {
        let message = format!("peer '{name}' has no branch '{}'", branch.as_bstr());
        return Err(CliError::fatal(message));
    }
    context.out.flush()?;
    args.merge(&git, &tracking, context)
}

impl Args {
    /// Returns the equivalent arguments of `sync`.
    fn taking(&self, peer: &OsString) -> sync::Args {
        sync::Args {
            peer: peer.clone(),
            dry_run: false,
            pull: true,
            push: false,
            include: Vec::new(),
            exclude: Vec::new(),
            ff: false,
            allow_unrelated: self.allow_unrelated,
            name: self.name.clone(),
            own_name: self.own_name.clone(),
            remote_program: self.remote_program.clone(),
            json: false,
            progress: self.progress,
            quiet: self.quiet,
        }
    }

    /// Runs `git pull` from this repository itself, which has received the peer's branch.
    fn merge(
        &self,
        git: &fallback::FallbackGit,
        tracking: &[u8],
        context: &Context,
    ) -> Result<ExitCode, CliError> {
        let mut command = git.command();
        command.arg("pull");
        // `--no-rebase` cancels `--rebase`, and also overrides the configuration.
        let merges = context.arguments.iter().any(|word| word == "--no-rebase");
        let words = [
            (self.quiet, "--quiet"),
            (self.ff == Some(true), "--ff"),
            (self.ff == Some(false), "--no-ff"),
            (self.ff_only, "--ff-only"),
            (merges && self.rebase.is_none(), "--no-rebase"),
            (self.allow_unrelated, "--allow-unrelated-histories"),
        ];
        command.args(
            words
                .iter()
                .filter(|(given, _)| *given)
                .map(|(_, word)| word),
        );
        if let Some(how) = &self.rebase {
            let mut word = OsString::from("--rebase=");
            word.push(how);
            command.arg(word);
        }
        command.arg(".").arg(tracking.to_os_str_lossy());
        let status = command.status().map_err(|error| git.cannot_run(&error))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::new(code.unwrap_or(128)))
    }
}
