//! Hands calls to git: finds the program, and decides whether it may run. No other module does
//! that.
//!
//! [`exec`] hands a whole call to the installed git, with the same process, arguments, streams,
//! exit code and signals. [`git`] returns the git that does a part of a command. Neither loops,
//! even if this program is installed under the name `git`.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use pronto_io::child;

use crate::error::{CliError, display};
use crate::globals::Globals;
use crate::programs;

/// The environment variable that records earlier hand-overs in this chain of processes:
/// `pid;depth;chosen;own,own,…`, with files as `device:inode`.
const CHAIN: &str = "PRONTO_FALLBACK_CHAIN";

/// The largest depth of a chain of hand-overs. Hooks may call pronto, whose hooks may call pronto
/// again, but a chain of this depth is a loop.
const DEPTH_LIMIT: u32 = 40;

/// The identity of a file, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ProgramIdentity {
    device: u64,
    inode: u64,
}

impl ProgramIdentity {
    fn of(metadata: &Metadata) -> Self {
        ProgramIdentity {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (device, inode) = text.split_once(':')?;
        Some(ProgramIdentity {
            device: device.parse().ok()?,
            inode: inode.parse().ok()?,
        })
    }
}

#[derive(Debug, Default)]
struct CallChain {
    depth: u32,
    /// The files that are this program, or that lead back to it.
    own: Vec<ProgramIdentity>,
}

impl CallChain {
    /// Reads the record of earlier hand-overs from the environment, and adds this program.
    fn inherited() -> Self {
        let mut chain = variable(CHAIN)
            .and_then(|text| CallChain::parse(text.to_str()?))
            .unwrap_or_default();
        if let Ok(own) = std::env::current_exe().and_then(std::fs::metadata) {
            chain.add(ProgramIdentity::of(&own));
        }
        // The name `git` may be a link to `pronto`, which has become this program.
        if let Some(Ok(caller)) = programs::caller().map(std::fs::metadata) {
            chain.add(ProgramIdentity::of(&caller));
        }
        chain
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.split(';');
        let process: u32 = fields.next()?.parse().ok()?;
        let mut chain = CallChain {
            depth: fields.next()?.parse().ok()?,
            own: Vec::new(),
        };
        let chosen = ProgramIdentity::parse(fields.next()?);
        for own in fields
            .next()?
            .split(',')
            .take(64)
            .filter_map(ProgramIdentity::parse)
        {
            chain.add(own);
        }
        // The same process runs again, so the chosen git is a script that calls pronto.
        if process == std::process::id() {
            chosen.into_iter().for_each(|wrapper| chain.add(wrapper));
        }
        Some(chain)
    }

    fn add(&mut self, identity: ProgramIdentity) {
        if !self.own.contains(&identity) {
            self.own.push(identity);
        }
    }

    fn render(&self, chosen: ProgramIdentity) -> String {
        let text = |file: &ProgramIdentity| format!("{}:{}", file.device, file.inode);
        let own: Vec<String> = self.own.iter().map(text).collect();
        let (process, depth) = (std::process::id(), self.depth + 1);
        format!("{process};{depth};{};{}", text(&chosen), own.join(","))
    }
}

/// Returns whether the user has disabled handing calls to git (`PRONTO_NO_FALLBACK`).
pub(crate) fn is_forbidden() -> bool {
    variable("PRONTO_NO_FALLBACK")
        .is_some_and(|value| !matches!(value.as_bytes(), b"" | b"0" | b"false"))
}

/// Returns whether an installed git can run calls.
pub(crate) fn is_possible() -> bool {
    let chain = CallChain::inherited();
    !is_forbidden() && chain.depth < DEPTH_LIMIT && find_git(&chain).is_ok()
}

/// Replaces this process by the installed git with `arguments` (without the name of the program).
/// Returns only if that fails.
pub(crate) fn exec(globals: &Globals, arguments: &[OsString]) -> CliError {
    let chain = CallChain::inherited();
    if chain.depth >= DEPTH_LIMIT {
        return CliError::fatal("git on PATH calls pronto again, in a loop")
            .with_hint("set PRONTO_GIT to the path of the git program");
    }
    let (git, identity) = match find_git(&chain) {
        Ok(found) => found,
        Err(error) => return error,
    };
    if let Some(start) = &globals.start
        && let Err(error) = rustix::process::fchdir(start)
    {
        return CliError::of_system("cannot change back to the initial directory", &error.into());
    }
    let error = child::command(&git)
        .arg0("git")
        .args(without_own_options(arguments))
        .envs(globals.trace_variables())
        .env(CHAIN, chain.render(identity))
        .env_remove(programs::CALLER)
        .exec();
    CliError::of_system(&format!("cannot run '{}'", git.display()), &error)
}

/// The git that does a part of a command.
#[derive(Clone, Debug)]
pub(crate) struct FallbackGit {
    /// The path of the program.
    pub(crate) program: PathBuf,
    /// The changes of the environment: the options before the command of this process, and the
    /// record that prevents loops.
    pub(crate) variables: Vec<(OsString, OsString)>,
}

impl FallbackGit {
    /// Creates a command that runs this git.
    pub(crate) fn command(&self) -> Command {
        let mut command = child::command(&self.program);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the error for a `command` that cannot be started.
    pub(crate) fn cannot_run(&self, error: &std::io::Error) -> CliError {
        let reason = pronto_io::error::reason(error);
        CliError::fatal(format!("cannot run '{}': {reason}", self.program.display()))
    }
}

/// Returns the git that does a part of a command.
///
/// # Errors
/// Fails if git is not installed, or if calls of git are disabled.
pub(crate) fn git(globals: &Globals) -> Result<FallbackGit, CliError> {
    let chain = CallChain::inherited();
    if is_forbidden() {
        let hint = "unset PRONTO_NO_FALLBACK to allow pronto to run git";
        return Err(CliError::fatal(
            "this command needs git, but PRONTO_NO_FALLBACK forbids pronto to run it",
        )
        .with_hint(hint));
    }
    if chain.depth >= DEPTH_LIMIT {
        return Err(CliError::fatal("git on PATH calls pronto again, in a loop")
            .with_hint("set PRONTO_GIT to the path of the git program"));
    }
    let (program, identity) = find_git(&chain)?;
    let given = globals.variables();
    let given = given.map(|(name, value)| (name.into(), value.to_owned()));
    let mark = (CHAIN.into(), chain.render(identity).into());
    let variables = given.chain([mark]).collect();
    Ok(FallbackGit { program, variables })
}

/// Returns an environment variable of this process. Only this function reads the variables that
/// select the git to run.
fn variable(name: &str) -> Option<OsString> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment says which git runs, before anything else is known"
    )]
    std::env::var_os(name)
}

/// Removes the options before the command that git does not have.
fn without_own_options(arguments: &[OsString]) -> Vec<&OsStr> {
    let mut kept = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"--trace-chrome" {
            rest.next();
        } else if !bytes.starts_with(b"--trace-chrome=") {
            kept.push(argument.as_os_str());
            if matches!(
                bytes,
                b"-C" | b"-c" | b"--config-env" | b"--git-dir" | b"--work-tree" | b"--namespace"
            ) {
                kept.extend(rest.next().map(OsString::as_os_str));
            } else if bytes.first() != Some(&b'-') {
                break;
            }
        }
    }
    kept.extend(rest.map(OsString::as_os_str));
    kept
}

/// Finds the git to run: the program that `PRONTO_GIT` names, or the first `git` on `PATH` that is
/// not this program.
fn find_git(chain: &CallChain) -> Result<(PathBuf, ProgramIdentity), CliError> {
    if let Some(named) = variable("PRONTO_GIT").filter(|path| !path.is_empty()) {
        // A name without a slash is searched on `PATH`, not in the current directory.
        let path = match named.as_bytes().contains(&b'/') {
            true => PathBuf::from(named),
            false => child::find(&named).unwrap_or_else(|| named.into()),
        };
        return match child::executable(&path).map(|metadata| ProgramIdentity::of(&metadata)) {
            Some(identity) if chain.own.contains(&identity) => Err(CliError::fatal(format!(
                "PRONTO_GIT is pronto itself: '{}'",
                path.display()
            ))),
            Some(identity) if path.components().count() > 1 => Ok((path, identity)),
            _ => Err(CliError::fatal(format!(
                "PRONTO_GIT is not an executable file: '{}'",
                path.display()
            ))),
        };
    }
    let mut identity = None;
    let found = child::find_where(OsStr::new("git"), |metadata| {
        identity = Some(ProgramIdentity::of(metadata)).filter(|file| !chain.own.contains(file));
        identity.is_some()
    });
    if let (Some(path), Some(identity)) = (found, identity) {
        return Ok((path, identity));
    }
    Err(CliError::fatal("git is not on PATH").with_hint(
        "install git, or set PRONTO_GIT to its path: pronto runs git for calls that it does not \
         implement natively",
    ))
}

/// Adds the information to `error` that the call would have been handed to git.
pub(crate) fn refusal(error: CliError) -> CliError {
    error.with_hint("unset PRONTO_NO_FALLBACK to let git run this call")
}

/// Returns the error for a command that is not in the table. git runs the call.
pub(crate) fn missing_command(name: &OsStr) -> CliError {
    CliError::unsupported(format!("command '{}'", display(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_options_are_taken_out_before_the_command_only() {
        let arguments: Vec<OsString> = [
            "-C",
            "--trace-chrome",
            "--trace-chrome",
            "f",
            "log",
            "--trace-chrome",
            "x",
        ]
        .iter()
        .map(Into::into)
        .collect();
        assert_eq!(
            without_own_options(&arguments),
            ["-C", "--trace-chrome", "log", "--trace-chrome", "x"]
        );
    }

    #[test]
    fn a_wrapper_that_comes_back_as_the_same_process_is_not_taken_again() {
        let wrapper = ProgramIdentity {
            device: 1,
            inode: 2,
        };
        let text = CallChain::default().render(wrapper);
        assert_eq!(CallChain::parse(&text).expect("well formed").own, [wrapper]);
        let other = text.replacen(&std::process::id().to_string(), "0", 1);
        assert_eq!(CallChain::parse(&other).expect("well formed").own, []);
        assert!(CallChain::parse("nonsense").is_none());
    }
}
