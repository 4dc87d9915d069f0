//! Clones from a server that a package contains, with the installed git.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use super::super::roots::{StoppedChild, output};

/// Runs `command` with the arguments that serve the current directory at a free port, and clones
/// `repository` from it with the installed git.
///
/// # Errors
/// Fails if the server does not start or the clone fails.
pub(super) fn clone_from(command: &mut Command, repository: &str) -> Result<(), String> {
    // A shell takes the first argument as the name of the script; others have their arguments.
    match command.get_program() == "unshare" {
        true => command.args(["sh", "serve", "--listen", "127.0.0.1:0", "."]),
        false => command.args(["serve", "--listen", "127.0.0.1:0", "."]),
    };
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let server = command
        .spawn()
        .map_err(|error| format!("the server does not start: {error}"))?;
    let mut server = StoppedChild(server);
    let stdout = server.0.stdout.take().ok_or("no standard output")?;
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    let address = lines.find_map(|line| {
        let at = line.find("http://")?;
        Some(
            line[at..]
                .split_ascii_whitespace()
                .next()?
                .trim_end_matches('/')
                .to_owned(),
        )
    });
    let Some(address) = address else {
        let mut reason = String::new();
        if let Some(mut stderr) = server.0.stderr.take() {
            let _ = stderr.read_to_string(&mut reason);
        }
        return Err(format!("the server has not printed its address: {reason}"));
    };
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut git = Command::new("git");
    git.args(["clone", "-q"])
        .arg(format!("{address}/{repository}"))
        .arg(scratch.path().join("clone"));
    output(
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("no_proxy", "127.0.0.1"),
    )?;
    match scratch.path().join("clone/file").exists() {
        true => Ok(()),
        false => Err("the clone has no files".to_owned()),
    }
}
