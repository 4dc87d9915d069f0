//! Runs the commands of maintenance in processes of this program.

use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use pronto::maintenance::{CommandCall, CommandRunner, MaintenanceTask};
use pronto::{Error, ErrorKind};

use super::{Background, own_program};
use crate::Context;

/// A runner that starts a process for each command and waits for its end.
pub(crate) struct Subprocesses<'a> {
    pub(crate) context: &'a mut Context,
    /// The arguments of the process that continues in the background.
    pub(crate) rest: Vec<OsString>,
}

impl Subprocesses<'_> {
    fn command(&self) -> Result<Command, Error> {
        own_program(self.context).map_err(|error| Error::new(ErrorKind::Io, error.render()))
    }
}

impl CommandRunner for Subprocesses<'_> {
    fn run(&mut self, step: &CommandCall) -> Result<bool, Error> {
        // Earlier output precedes that of the other process.
        let _ = self.context.out.flush();
        let mut command = self.command()?;
        command.args(&step.arguments);
        if step.input.is_some() {
            command.stdin(Stdio::piped()).stdout(Stdio::null());
        }
        // The trace shows the name of the program that users call.
        let traced = pronto_io::child::started_as("?", self.context.program(), &command);
        let cannot = |error: std::io::Error| {
            let name = step.arguments.first();
            let name = name.map(|name| name.to_string_lossy()).unwrap_or_default();
            let reason = pronto_io::error::reason(&error);
            Error::new(ErrorKind::Io, format!("cannot run '{name}': {reason}"))
        };
        let mut child = command.spawn().map_err(cannot)?;
        if let (Some(input), Some(mut pipe)) = (&step.input, child.stdin.take()) {
            // If the process has ended early, its exit status shows the failure.
            let _ = pipe.write_all(input);
        }
        let status = child.wait().map_err(cannot)?;
        traced.ended(child.id(), status);
        if self.context.interrupt.is_triggered() {
            return Err(Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        Ok(status.success())
    }

    fn detach(&mut self) -> bool {
        let Ok(mut command) = self.command() else {
            return false;
        };
        command.args(&self.rest);
        Background::Rest.spawn(&mut command).is_ok()
    }

    fn report_failure(&mut self, task: MaintenanceTask, error: &Error) {
        let message = error.to_string();
        if !message.is_empty() {
            self.context.report_error(&message);
        }
        self.context
            .report_error(&format!("task '{}' failed", task.name()));
    }

    fn report_no_multi_pack_index(&mut self) {
        self.context
            .warn("skipping incremental-repack task because core.multiPackIndex is disabled");
    }
}
