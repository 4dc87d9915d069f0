//! A server as a child process, on this machine or through ssh.

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use bstr::{BStr, BString};
use pronto_io::error::OsReason;

use super::{Connection, LOCAL_VARIABLES, Options, Readiness, Service, version_parameter, watch};
use crate::error::{Error, ErrorKind};

/// The size of the pipe in bytes. A large pipe lets the server work ahead.
const PIPE_BYTES: usize = 1 << 20;

/// A running server. Dropping it closes its streams and waits for the process.
pub(super) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    name: String,
    traced: pronto_io::child::TracedChild,
}

impl Process {
    /// Starts `command` with its streams connected to this process, in the directory of `options`. Its
    /// standard error is inherited.
    pub(super) fn start(mut command: Command, options: &Options) -> Result<Self, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        if let Some(directory) = &options.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let traced = pronto_io::child::started("transport", &command);
        let mut child = pronto_io::child::spawn(&mut command).map_err(|error| {
            let message = match name.contains('/') {
                true => format!("cannot exec '{name}'"),
                false => format!("cannot run {name}"),
            };
            Error::new(ErrorKind::Connection, message).because(OsReason(error))
        })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::new(ErrorKind::Connection, "unable to create pipe"));
        };
        // If the size is refused (a limit on the pipes of a user), the pipe is only slower.
        let _ = rustix::pipe::fcntl_setpipe_size(&output, PIPE_BYTES);
        Ok(Process {
            child,
            input: Some(input),
            output,
            name,
            traced,
        })
    }
}

impl Read for Process {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.output.read(buffer)
    }
}

impl Connection for Process {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        let sent = match &mut self.input {
            Some(input) => input.write_all(request).and_then(|()| input.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        sent.map_err(|error| {
            // The server has ended; its own message contains the reason.
            let kind = match error.kind() {
                io::ErrorKind::BrokenPipe => ErrorKind::Disconnected,
                _ => ErrorKind::Connection,
            };
            Error::new(kind, "unable to write to remote").because(error)
        })
    }

    fn take_writer(&mut self) -> Option<Box<dyn Write + Send>> {
        let input = self.input.take()?;
        Some(Box::new(input))
    }

    fn readiness(&self) -> Option<Readiness> {
        watch(&self.output)
    }

    fn close(&mut self) -> Result<(), Error> {
        self.input = None;
        let status = self.child.wait().map_err(|error| {
            let message = format!("waitpid for {} failed", self.name);
            Error::new(ErrorKind::Connection, message).because(error)
        })?;
        self.traced.ended(self.child.id(), status);
        if status.success() {
            return Ok(());
        }
        let message = format!("{} failed with {status}", self.name);
        Err(Error::new(ErrorKind::Connection, message))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input = None;
        // A server that is still sending could block forever on its pipe.
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Serves the repository at `path` by a process on this machine.
pub(super) fn local(path: &BStr, service: Service, options: &Options) -> Result<Process, Error> {
    let mut command = match &options.command {
        Some(server) => shell(quoted_call(server.as_ref(), path).as_ref()),
        None => {
            let mut command = pronto_io::child::command(&options.git);
            let name = service.program().trim_start_matches("git-");
            command.arg(name).arg(OsStr::from_bytes(path));
            command
        }
    };
    for name in LOCAL_VARIABLES {
        command.env_remove(name);
    }
    // As in Git, the inherited variable is kept if no version is requested.
    if let Some(value) = version_parameter(options.version) {
        command.env("GIT_PROTOCOL", value);
    }
    for (name, value) in &options.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Process::start(command, options)
}

/// Returns the command `sh -c LINE`, which uses the line as its name in messages.
pub(super) fn shell(line: &BStr) -> Command {
    let line = OsStr::from_bytes(line);
    pronto_io::child::shell(line, line)
}

/// Returns the command line `program 'path'` for a shell.
pub(super) fn quoted_call(program: &BStr, path: &BStr) -> BString {
    let mut line = program.to_vec();
    line.push(b' ');
    pronto_io::shell::quote_into(path, &mut line);
    line.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell_as_git_quotes_them() {
        let line = quoted_call("git-upload-pack".into(), "/it's !".into());
        assert_eq!(line, r"git-upload-pack '/it'\''s '\!''");
    }
}
