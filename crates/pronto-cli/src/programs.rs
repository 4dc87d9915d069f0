//! The two programs of an installation: `pronto`, and `pronto-server` for the commands that serve.
//!
//! Both are built from this crate. For the commands that serve, `pronto` becomes `pronto-server` by
//! `exec`: users see one program, and a short call does not load the code of servers.
//! `pronto-server` has all commands, so that the processes which a server starts by its own path do
//! not need `pronto`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use pronto_io::child;

use crate::error::CliError;
#[cfg(feature = "serve")]
use crate::error::display;

const SERVER: &str = "pronto-server";

/// The version of this program.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The environment variable that describes the `pronto` that became this process:
/// `pid;version;path`. Child processes inherit it, but their process ids differ.
pub(crate) const CALLER: &str = "PRONTO_CALLER";

/// The `pronto` that became this process.
#[derive(Debug, PartialEq, Eq)]
struct Caller {
    version: OsString,
    program: PathBuf,
}

impl Caller {
    fn parse(text: &OsStr, process: u32) -> Option<Self> {
        let mut fields = text.as_bytes().splitn(3, |&byte| byte == b';');
        let (id, version, program) = (fields.next()?, fields.next()?, fields.next()?);
        (id == process.to_string().as_bytes()).then(|| Caller {
            version: OsStr::from_bytes(version).to_owned(),
            program: OsStr::from_bytes(program).into(),
        })
    }

    fn render(program: &Path) -> OsString {
        let mut text = format!("{};{VERSION};", std::process::id()).into_bytes();
        text.extend_from_slice(program.as_os_str().as_bytes());
        OsString::from_vec(text)
    }

    fn of_process() -> Option<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "it says which program this is, before there is an environment"
        )]
        let text = std::env::var_os(CALLER)?;
        Caller::parse(&text, std::process::id())
    }
}

/// Returns the path of this program, for child processes that run it. If `pronto` became this
/// process, returns the path of `pronto`.
///
/// # Errors
/// Fails if the system does not report the path.
pub(crate) fn own() -> Result<PathBuf, CliError> {
    match caller() {
        Some(caller) => Ok(caller),
        None => std::env::current_exe().map_err(|error| unknown_path(&error)),
    }
}

/// Returns the error for a path of this program that the system does not report.
fn unknown_path(error: &io::Error) -> CliError {
    CliError::of_system("cannot determine the path of the pronto program", error)
}

/// Returns the path of the `pronto` that became this process; `None` if the process was started as
/// `pronto-server`.
pub(crate) fn caller() -> Option<PathBuf> {
    Some(Caller::of_process()?.program)
}

/// Checks that the `pronto` that became this process has the same version.
///
/// # Errors
/// Fails with a fatal error if the versions differ.
#[cfg(feature = "serve")]
pub(crate) fn check_caller() -> Result<(), CliError> {
    let Some(caller) = Caller::of_process().filter(|caller| caller.version != VERSION) else {
        return Ok(());
    };
    let here = std::env::current_exe().unwrap_or_else(|_| SERVER.into());
    let message = format!(
        "'{}' is version {}, but '{}' is version {VERSION}",
        caller.program.display(),
        display(&caller.version),
        here.display()
    );
    Err(CliError::fatal(message).with_hint("install both programs from one release of pronto"))
}

/// Replaces this process by `pronto-server`, with its arguments `process`, for `command`. Returns
/// to the directory `start` first if `-C` has left that directory. Returns only if the replacement
/// fails.
pub(crate) fn become_server(
    command: &str,
    process: &[OsString],
    start: Option<&OwnedFd>,
) -> CliError {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => {
            return unknown_path(&error).with_hint(format!(
                "run '{SERVER}' instead of 'pronto', with the same arguments"
            ));
        }
    };
    let places = places(&own);
    let Some(server) = places.iter().find(|path| child::executable(path).is_some()) else {
        return missing(command, &places);
    };
    if let Some(start) = start
        && let Err(error) = rustix::process::fchdir(start)
    {
        return CliError::of_system("cannot change back to the initial directory", &error.into());
    }
    let name = process
        .first()
        .map_or(OsStr::new("pronto"), OsString::as_os_str);
    let error = child::command(server)
        .arg0(name)
        .args(process.iter().skip(1))
        .env(CALLER, Caller::render(&own))
        .exec();
    let reason = pronto_io::error::reason(&error);
    CliError::fatal(format!("cannot run '{}': {reason}", server.display()))
}

/// Returns the candidate paths of `pronto-server`, in the order in which they are tried: beside
/// this program (with symbolic links resolved), and in the directory for programs that users do not
/// call.
fn places(own: &Path) -> Vec<PathBuf> {
    let Some(directory) = own.parent() else {
        return Vec::new();
    };
    let mut places = vec![directory.join(SERVER)];
    if let Some(prefix) = directory.parent() {
        places.push(prefix.join("libexec/pronto").join(SERVER));
    }
    places
}

fn missing(command: &str, places: &[PathBuf]) -> CliError {
    let places: Vec<String> = places
        .iter()
        .map(|place| format!("'{}'", place.display()))
        .collect();
    let message = format!("'{command}' needs the program '{SERVER}', which is not installed");
    CliError::fatal(message)
        .with_hint(format!("pronto looks for it at {}", places.join(" and ")))
        .with_hint(format!(
            "install '{SERVER}' {VERSION} there; 'cargo install' installs both programs"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_of_this_process_only() {
        let path = Path::new("/a;b/pronto");
        let text = Caller::render(path);
        let own = Caller::parse(&text, std::process::id()).expect("well formed");
        assert_eq!(own.program, path);
        assert_eq!(own.version, VERSION);
        assert_eq!(Caller::parse(&text, 0), None);
        assert_eq!(Caller::parse(OsStr::new("1;2"), 1), None);
    }

    #[test]
    fn the_server_is_beside_the_program_or_in_its_libexec() {
        assert_eq!(
            places(Path::new("/usr/bin/pronto")),
            [
                Path::new("/usr/bin/pronto-server"),
                Path::new("/usr/libexec/pronto/pronto-server")
            ]
        );
    }
}
