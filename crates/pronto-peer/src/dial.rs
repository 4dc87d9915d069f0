//! Connects to a peer through a child process, on this machine or through ssh.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bstr::{BStr, BString, ByteVec};
use pronto_io::shell;
use pronto_wire::address::RemoteAddress;
use pronto_wire::transport::LOCAL_VARIABLES;

use pronto::config::Config;
use pronto::environment::Environment;
use pronto::remote::connection;
use pronto::{Error, ErrorKind, Result};

/// The peer to connect to, and the settings of the connection.
#[derive(Clone, Debug)]
pub struct ProcessAddress<'a> {
    /// The address of the peer: a path, `ssh://…` or `host:path`.
    pub address: &'a BStr,
    /// The path of this program, which serves a repository on this machine.
    pub program: PathBuf,
    /// The program to run on the remote side of ssh.
    pub remote_program: BString,
    /// The name of this repository at the peer (`--as`).
    pub own_name: &'a str,
    /// Allow unrelated histories, which have no common commit, to be joined (`--allow-unrelated`).
    pub allows_unrelated: bool,
}

/// A connection to a peer in a child process.
#[derive(Debug)]
pub struct ProcessPeer {
    child: Child,
    /// The standard output of the process.
    pub output: ChildStdout,
    /// The standard input of the process.
    pub input: ChildStdin,
}

/// The protocol name of TLS over TCP (`netsync://`) for `protocol.NAME.allow` and
/// `GIT_ALLOW_PROTOCOL`. As for other protocols that Git does not define, the default policy is
/// `user`.
pub const TLS_PROTOCOL: &str = "netsync";

/// Checks that the transport `protocol` is allowed (`protocol.allow`).
///
/// # Errors
/// Fails if the transport is not allowed, or a setting is malformed.
pub fn check_protocol(protocol: &str, config: &Config, environment: &Environment) -> Result<()> {
    let policy = connection::policy(config, environment, protocol)?;
    policy.check(protocol).map_err(connection::from_wire)
}

/// Starts the child process that serves the remote side. Its standard error is inherited.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the address has another form, with
/// [`ErrorKind::Transport`] if the program cannot be started, and for the reasons of
/// [`check_protocol`].
pub fn connect_process(
    dial: &ProcessAddress<'_>,
    config: &Config,
    environment: &Environment,
) -> Result<ProcessPeer> {
    let address = RemoteAddress::parse(dial.address).map_err(connection::from_wire)?;
    check_protocol(address.protocol(), config, environment)?;
    let mut arguments: Vec<&[u8]> = vec![b"serve", b"--netsync", b"--stdio", b"--peer"];
    arguments.push(dial.own_name.as_bytes());
    if dial.allows_unrelated {
        arguments.push(b"--allow-unrelated");
    }
    arguments.push(b"--");
    let mut command = match &address {
        RemoteAddress::File { path } => {
            let mut command = pronto_io::child::command(&dial.program);
            command.args(arguments.iter().copied().map(OsStr::from_bytes));
            command.arg(environment.absolute(pronto::path::borrow(path)));
            command.current_dir(environment.current_dir());
            command
        }
        RemoteAddress::Ssh { host, port, path } => {
            let mut line = dial.remote_program.clone();
            arguments.push(path);
            for argument in arguments {
                line.push(b' ');
                shell::quote_into(argument, &mut line);
            }
            let mut command = ssh(config, environment)?;
            if let Some(port) = port {
                command.arg("-p").arg(port.to_string());
            }
            command.arg(host).arg(OsString::from_vec(line.into()));
            command
        }
        _ => {
            let message = format!("invalid peer address '{}'", dial.address);
            let hint = "use a path, ssh://HOST/PATH, HOST:PATH or netsync://HOST[:PORT]/PATH";
            return Err(Error::new(ErrorKind::InvalidInput, message).with_hint(hint));
        }
    };
    // The variables that select the local repository must not affect the remote side.
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = || Error::new(ErrorKind::Transport, format!("cannot run {name}"));
    let mut child =
        pronto_io::child::spawn(&mut command).map_err(|error| failed().because(error))?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok(ProcessPeer {
            child,
            output,
            input,
        }),
        _ => Err(failed()),
    }
}

/// Returns the host of an address without the user, or `None` for a path.
pub fn host_of(address: &BStr) -> Option<String> {
    match RemoteAddress::parse(address) {
        Ok(RemoteAddress::Ssh { host, .. }) => {
            let host = host.rsplit('@').next().unwrap_or(&host);
            Some(host.to_owned())
        }
        _ => None,
    }
}

impl ProcessPeer {
    /// Ends the conversation, and waits for the end of the child process.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Transport`] if the wait fails, or the process ended with an error.
    pub fn close(mut self) -> Result<()> {
        drop(self.input);
        // The child exits only after its remaining output has been read.
        let _ = std::io::copy(&mut (&mut self.output).take(1 << 20), &mut std::io::sink());
        drop(self.output);
        let failed = |text: String| Error::new(ErrorKind::Transport, text);
        let status = self.child.wait();
        let status =
            status.map_err(|error| failed("cannot wait for the peer".into()).because(error))?;
        if status.success() {
            return Ok(());
        }
        Err(failed(format!(
            "the program of the peer failed with {status}"
        )))
    }
}

fn ssh(config: &Config, environment: &Environment) -> Result<Command> {
    let line = match environment.bytes("GIT_SSH_COMMAND") {
        Some(line) => Some(BString::from(line)),
        None => config.string("core.sshcommand")?.map(BStr::to_owned),
    };
    if let Some(line) = line {
        let mut script = line.clone();
        script.push_str(" \"$@\"");
        let (script, line) = (OsStr::from_bytes(&script), OsStr::from_bytes(&line));
        return Ok(pronto_io::child::shell(script, line));
    }
    Ok(match environment.path("GIT_SSH") {
        Some(program) => pronto_io::child::command(program),
        None => pronto_io::child::command("ssh"),
    })
}
