//! Runs the hooks of a push.

use std::ffi::{OsStr, OsString};
use std::io::{PipeReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command as Process, ExitStatus, Stdio};

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::{ReceivedPush, RefCommand};
use crate::{Error, ErrorKind, Result, hooks, path, quote};

/// A call of a hook.
#[derive(Default)]
struct HookInvocation {
    arguments: Vec<OsString>,
    input: Vec<u8>,
    variables: Vec<Variable>,
    output: HookOutput,
}

/// The place for the output of a hook.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum HookOutput {
    /// The message sideband, if there is one.
    #[default]
    Client,
    /// The standard error of this process: Git sends the output of `push-to-checkout` to nobody else.
    StandardError,
}

/// An environment variable that is set or removed for a program.
#[derive(Clone)]
pub(super) struct Variable {
    pub(super) name: OsString,
    pub(super) value: Option<OsString>,
}

impl Variable {
    pub(super) fn set(name: impl Into<OsString>, value: impl AsRef<OsStr>) -> Self {
        Variable {
            name: name.into(),
            value: Some(value.as_ref().to_owned()),
        }
    }
}

impl ReceivedPush<'_> {
    /// Runs `pre-receive` or `post-receive`. Returns whether the hook accepted. A missing hook
    /// accepts everything.
    pub(super) fn run_receive_hook(&self, name: &str) -> Result<bool> {
        let is_after = name == "post-receive";
        let takes =
            |command: &&RefCommand| !is_after || command.error.is_none() && !command.did_not_exist;
        let mut input = Vec::new();
        for command in self.commands.iter().filter(takes) {
            write_lines(command, &mut input);
        }
        if input.is_empty() {
            return Ok(true);
        }
        let mut call = HookInvocation {
            input,
            variables: self.option_variables(),
            ..HookInvocation::default()
        };
        call.variables.extend(self.quarantine_variables());
        call.variables.extend(self.certificate_variables_for(name)?);
        Ok(self.run_hook(name, &call)?.is_none_or(|code| code == 0))
    }

    /// Runs `update` for one command. Returns whether the hook accepted.
    pub(super) fn run_update_hook(&self, command: &RefCommand) -> Result<bool> {
        let hex = |id: &ObjectId| OsString::from(id.to_string());
        let call = HookInvocation {
            arguments: vec![
                path::from_bytes(&command.name).into(),
                hex(&command.old),
                hex(&command.new),
            ],
            ..HookInvocation::default()
        };
        Ok(self.run_hook("update", &call)?.is_none_or(|code| code == 0))
    }

    /// Runs `post-update` with the names of the changed refs.
    pub(super) fn run_post_update_hook(&self) -> Result<()> {
        let changed = self.commands.iter();
        let changed = changed.filter(|command| command.error.is_none() && !command.did_not_exist);
        let arguments: Vec<OsString> = changed
            .map(|command| path::from_bytes(&command.name).into())
            .collect();
        if arguments.is_empty() {
            return Ok(());
        }
        let call = HookInvocation {
            arguments,
            ..HookInvocation::default()
        };
        self.run_hook("post-update", &call).map(|_| ())
    }

    /// Runs `push-to-checkout` for the worktree at `top`; `None` if there is no such hook.
    pub(super) fn run_push_to_checkout(
        &self,
        new: &ObjectId,
        git_dir: &Path,
        top: &Path,
    ) -> Result<Option<bool>> {
        let call = HookInvocation {
            arguments: vec![new.to_string().into()],
            variables: vec![
                Variable::set("GIT_DIR", git_dir),
                Variable::set("GIT_WORK_TREE", top),
            ],
            output: HookOutput::StandardError,
            ..HookInvocation::default()
        };
        let code = self.run_hook("push-to-checkout", &call)?;
        Ok(code.map(|code| code == 0))
    }

    /// Returns the environment variables with the push options.
    fn option_variables(&self) -> Vec<Variable> {
        let numbered = self.push_options.iter().enumerate();
        let mut variables: Vec<Variable> = numbered
            .map(|(number, option)| {
                let name = format!("GIT_PUSH_OPTION_{number}");
                Variable::set(name, path::borrow(option.as_bstr()))
            })
            .collect();
        let count = self.push_options.len().to_string();
        variables.push(Variable::set("GIT_PUSH_OPTION_COUNT", count));
        variables
    }

    /// Returns the environment variables that make the quarantine visible to a program, and forbid
    /// changes of refs.
    pub(super) fn quarantine_variables(&self) -> Vec<Variable> {
        let Some(quarantine) = &self.quarantine else {
            return Vec::new();
        };
        let inherited = "GIT_ALTERNATE_OBJECT_DIRECTORIES";
        let mut alternates = match self.repository.environment().bytes(inherited) {
            Some(list) if !list.is_empty() => [list, b":"].concat(),
            _ => Vec::new(),
        };
        let objects = self.repository.objects_dir();
        let objects = path::as_bytes(&objects);
        match objects.starts_with(b"\"") || objects.contains(&b':') {
            true => alternates.extend_from_slice(&quote::c_quote(objects, false)),
            false => alternates.extend_from_slice(objects),
        }
        vec![
            Variable::set(inherited, path::from_bytes(&alternates)),
            Variable::set("GIT_OBJECT_DIRECTORY", quarantine.path()),
            Variable::set("GIT_QUARANTINE_PATH", quarantine.path()),
        ]
    }

    /// Runs the programs of the hook `name`. Returns their exit codes, combined with `|`; `None` if
    /// there is no such hook.
    fn run_hook(&self, name: &str, call: &HookInvocation) -> Result<Option<i32>> {
        let programs = hooks::programs(self.repository, name)?;
        let processes = programs.iter().map(|program| {
            let mut process = program.command(self.repository.git_dir());
            process.args(&call.arguments);
            self.prepare(&mut process);
            apply(&mut process, &call.variables);
            process
        });
        let jobs = hooks::jobs(self.repository, name)?;
        if jobs > 1 {
            return self.run_at_once(processes.collect(), call, jobs);
        }
        let mut codes = None;
        for process in processes {
            let status = self.run_program(call.output, "hook", process, &call.input);
            codes = Some(codes.unwrap_or(0) | self.code(status)?);
        }
        Ok(codes)
    }

    /// Runs programs in parallel. Returns the same as [`run_hook`](Self::run_hook).
    fn run_at_once(
        &self,
        processes: Vec<Process>,
        call: &HookInvocation,
        jobs: usize,
    ) -> Result<Option<i32>> {
        let mut codes = Ok(None);
        let to_client = self.bands.is_banded() && call.output == HookOutput::Client;
        hooks::run_parallel(processes, &call.input, jobs, &mut |finished| {
            match to_client {
                true => self.bands.message(&finished.output),
                false => _ = std::io::stderr().write_all(&finished.output),
            }
            let code = self.code(finished.status);
            codes = match (std::mem::replace(&mut codes, Ok(None)), code) {
                (Ok(codes), Ok(code)) => Ok(Some(codes.unwrap_or(0) | code)),
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
        });
        codes
    }

    /// Returns the exit code of a hook. A client can choose push options that cannot be passed to a
    /// program: as in Git, a hook that cannot run has not accepted.
    fn code(&self, status: Result<ExitStatus>) -> Result<i32> {
        match status {
            Ok(status) => Ok(code_of(status)),
            Err(error) if error.kind() == ErrorKind::Hook => {
                self.bands.error(&error.to_string());
                Ok(1)
            }
            Err(error) => Err(error),
        }
    }

    /// Sets the git directory as the current directory and as the environment of a program.
    pub(super) fn prepare(&self, process: &mut Process) {
        for (name, value) in self.repository.environment().changes() {
            match value {
                Some(value) => process.env(name, value),
                None => process.env_remove(name),
            };
        }
        process
            .current_dir(self.repository.git_dir())
            .env("GIT_DIR", ".");
    }

    /// Runs a program to its end and sends its output to `to`.
    fn run_program(
        &self,
        to: HookOutput,
        class: &str,
        mut process: Process,
        input: &[u8],
    ) -> Result<ExitStatus> {
        process.stdin(match input.is_empty() {
            true => Stdio::null(),
            false => Stdio::piped(),
        });
        let output = match to {
            HookOutput::Client => self.attach_output(&mut process)?,
            HookOutput::StandardError => {
                process.stdout(pronto_io::child::standard_error());
                None
            }
        };
        let name = process.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Hook, format!("cannot run {name}")).because(error)
        };
        let traced = pronto_io::child::started(class, &process);
        let mut child = pronto_io::child::spawn(&mut process).map_err(failed)?;
        // The process value holds the other ends of the pipes.
        drop(process);
        let stdin = child.stdin.take();
        std::thread::scope(|scope| {
            if let Some(mut stdin) = stdin {
                // A program need not read its input.
                scope.spawn(move || _ = stdin.write_all(input));
            }
            match output {
                Some(mut output) => self.bands.forward(&mut output),
                None => Ok(()),
            }
        })
        .map_err(failed)?;
        let status = child.wait().map_err(failed)?;
        traced.ended(child.id(), status);
        Ok(status)
    }

    /// Connects the output of a program to the message sideband, or to standard error. Returns the
    /// pipe to read from.
    pub(super) fn attach_output(&self, process: &mut Process) -> Result<Option<PipeReader>> {
        let failed = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "unable to create pipe").because(error)
        };
        if self.bands.is_banded() {
            let (reader, writer) = std::io::pipe().map_err(failed)?;
            let copy = writer.try_clone().map_err(failed)?;
            process.stdout(writer).stderr(copy);
            return Ok(Some(reader));
        }
        process.stdout(pronto_io::child::standard_error());
        Ok(None)
    }
}

/// Appends the input lines of the hook about a command: the requested change, or each of the
/// changes that were made instead.
fn write_lines(command: &RefCommand, input: &mut Vec<u8>) {
    let mut line = |old: ObjectId, new: ObjectId, name: &BStr| {
        input.extend_from_slice(format!("{old} {new} ").as_bytes());
        input.extend_from_slice(name);
        input.push(b'\n');
    };
    if command.rewrites.is_empty() {
        line(command.old, command.new, command.name.as_bstr());
    }
    for rewritten in &command.rewrites {
        let name: &BString = rewritten.name.as_ref().unwrap_or(&command.name);
        line(
            rewritten.old.unwrap_or(command.old),
            rewritten.new.unwrap_or(command.new),
            name.as_bstr(),
        );
    }
}

pub(super) fn apply(process: &mut Process, variables: &[Variable]) {
    for variable in variables {
        match &variable.value {
            Some(value) => process.env(&variable.name, value),
            None => process.env_remove(&variable.name),
        };
    }
}

pub(super) fn code_of(status: ExitStatus) -> i32 {
    let signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(signal).unwrap_or(1)
}
