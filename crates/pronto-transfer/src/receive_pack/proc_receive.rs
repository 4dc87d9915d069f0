//! Runs the hook `proc-receive`, which executes commands instead of the server.

use std::io::{PipeReader, Read, Write};
use std::process::{Child, Stdio};

use bstr::{BString, ByteSlice};
use pronto_wire::pktline::{self, Packet};
use pronto_wire::reader::PacketReader;

use super::{ProcReceiveRewrite, ProcReceiveState, ReceivedPush};
use crate::remote::connection::from_wire;
use crate::{Error, ErrorKind, Result, hooks};

/// The limit for the number of packets in the hook's response.
const MOST_PACKETS: usize = 1 << 20;

/// A failure of the communication with the hook.
struct ProcReceiveFailure(Option<String>);

fn failure(text: &str) -> ProcReceiveFailure {
    ProcReceiveFailure(Some(text.to_owned()))
}

impl ReceivedPush<'_> {
    /// Lets the hook execute the commands for refs that match `receive.procReceiveRefs`.
    pub(super) fn run_proc_receive(&mut self) -> Result<()> {
        let is_scheduled = |push: &Self| {
            let mut commands = push.commands.iter();
            commands.any(|command| command.proc_receive != ProcReceiveState::No)
        };
        if !is_scheduled(self) || self.call_hook()? {
            return Ok(());
        }
        let atomic = self.features.atomic;
        for command in &mut self.commands {
            if command.proc_receive == ProcReceiveState::Scheduled
                || atomic && command.proc_receive != ProcReceiveState::Reported
            {
                command.fail("fail to run proc-receive hook");
            }
        }
        Ok(())
    }

    /// Runs the hook. Returns whether it succeeded.
    fn call_hook(&mut self) -> Result<bool> {
        let Some(program) = hooks::find_file(self.repository, "proc-receive") else {
            self.bands.error("cannot find hook 'proc-receive'");
            return Ok(false);
        };
        let mut process = pronto_io::child::command(&program);
        self.prepare(&mut process);
        let errors = self.attach_errors(&mut process)?;
        process.stdin(Stdio::piped()).stdout(Stdio::piped());
        let traced = pronto_io::child::started("hook", &process);
        let spawned = pronto_io::child::spawn(&mut process);
        drop(process);
        let mut child = spawned.map_err(|error| {
            let message = format!("cannot run {}", program.display());
            Error::new(ErrorKind::Hook, message).because(error)
        })?;
        let bands = self.bands;
        let conversation = std::thread::scope(|scope| {
            if let Some(mut errors) = errors {
                // A broken pipe ends the forwarding, like the end of the hook.
                scope.spawn(move || _ = bands.forward(&mut errors));
            }
            let conversation = self.converse(&mut child);
            // Both pipes close, so the hook ends.
            drop((child.stdin.take(), child.stdout.take()));
            conversation
        });
        let status = child.wait().map_err(|error| {
            Error::new(ErrorKind::Hook, "waitpid for proc-receive failed").because(error)
        })?;
        traced.ended(child.id(), status);
        let text = match &conversation {
            Ok(()) => None,
            Err(ProcReceiveFailure(text)) => text.as_deref(),
        };
        if let Some(text) = text {
            self.bands.error(text.trim_end_matches('\n'));
        }
        Ok(conversation.is_ok() && status.success())
    }

    /// Connects only the standard error of the hook to the message sideband, because its standard
    /// output is the protocol.
    fn attach_errors(&self, process: &mut std::process::Command) -> Result<Option<PipeReader>> {
        if !self.bands.is_banded() {
            return Ok(None);
        }
        let (reader, writer) = std::io::pipe()
            .map_err(|error| Error::new(ErrorKind::Io, "unable to create pipe").because(error))?;
        process.stderr(writer);
        Ok(Some(reader))
    }

    fn converse(&mut self, child: &mut Child) -> Result<(), ProcReceiveFailure> {
        let (Some(stdin), Some(stdout)) = (&mut child.stdin, &mut child.stdout) else {
            return Err(failure("unable to create pipe"));
        };
        let mut packets = PacketReader::new(stdout as &mut dyn Read);
        let negotiating = "fail to negotiate version with proc-receive hook";
        let hello = self.hello().map_err(|_| failure(negotiating))?;
        stdin.write_all(&hello).map_err(|_| failure(negotiating))?;
        let wants_options = take_version(&mut packets)?;
        let commands = self.scheduled().map_err(|_| failure(negotiating))?;
        let sent = stdin.write_all(&commands);
        sent.map_err(|_| failure("fail to write commands to proc-receive hook"))?;
        if wants_options {
            let failed = || failure("fail to write push-options to proc-receive hook");
            let mut out = Vec::new();
            for option in &self.push_options {
                pktline::write(&mut out, option).map_err(|_| failed())?;
            }
            pktline::write_flush(&mut out);
            stdin.write_all(&out).map_err(|_| failed())?;
        }
        self.take_report(&mut packets)
    }

    fn hello(&self) -> Result<Vec<u8>> {
        let mut features = Vec::new();
        if self.features.atomic {
            features.push("atomic");
        }
        if self.features.push_options {
            features.push("push-options");
        }
        let line = match features.is_empty() {
            true => "version=1\n".to_owned(),
            false => format!("version=1\0{}\n", features.join(" ")),
        };
        let mut out = Vec::new();
        pktline::write(&mut out, line.as_bytes()).map_err(from_wire)?;
        pktline::write_flush(&mut out);
        Ok(out)
    }

    fn scheduled(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let scheduled = |it: &&super::RefCommand| {
            it.is_open() && it.proc_receive == ProcReceiveState::Scheduled
        };
        for command in self.commands.iter().filter(scheduled) {
            let ids = format!("{} {} ", command.old, command.new);
            let parts: [&[u8]; 2] = [ids.as_bytes(), &command.name];
            pktline::write_parts(&mut out, &parts).map_err(from_wire)?;
        }
        pktline::write_flush(&mut out);
        Ok(out)
    }

    /// Reads the report of the hook about the commands.
    fn take_report(
        &mut self,
        packets: &mut PacketReader<&mut dyn Read>,
    ) -> Result<(), ProcReceiveFailure> {
        let mut report = Report {
            current: None,
            expects_options: false,
            is_new: false,
            has_said_so: false,
            errors: String::new(),
            failed: false,
        };
        let mut left = MOST_PACKETS;
        loop {
            left = left
                .checked_sub(1)
                .ok_or_else(|| failure("the output of the proc-receive hook is too large"))?;
            let packet = packets.next_or_end();
            let packet = packet.map_err(|error| failure(error.message()))?;
            let line = match packet {
                None => {
                    report.errors.push_str("proc-receive exited abnormally");
                    return Err(ProcReceiveFailure(Some(report.errors)));
                }
                Some(packet @ Packet::Data(_)) => packet.text().unwrap_or_default().to_owned(),
                Some(_) => break,
            };
            self.take_line(&line, &mut report);
        }
        for command in &mut self.commands {
            if command.proc_receive == ProcReceiveState::Scheduled && command.error.is_none() {
                command.fail("proc-receive failed to report status");
                report.failed = true;
            }
        }
        match (report.failed, report.errors.is_empty()) {
            (false, true) => Ok(()),
            (_, true) => Err(ProcReceiveFailure(None)),
            (_, false) => Err(ProcReceiveFailure(Some(report.errors))),
        }
    }

    fn take_line(&mut self, line: &[u8], report: &mut Report) {
        let Some((head, rest)) = line.split_once_str(" ") else {
            let line = line.as_bstr();
            report.fail(&format!(
                "proc-receive reported incomplete status line: '{line}'\n"
            ));
            return;
        };
        if head == b"option" {
            self.take_option(rest, report);
            return;
        }
        report.expects_options = false;
        let (name, reason) = match rest.split_once_str(" ") {
            Some((name, reason)) => (name, Some(reason)),
            None => (rest, None),
        };
        let (name, head) = (name.as_bstr(), head.as_bstr());
        if head != "ok" && head != "ng" {
            report.fail(&format!(
                "proc-receive reported bad status '{head}' on ref '{name}'\n"
            ));
            return;
        }
        let found = self
            .commands
            .iter()
            .position(|command| command.name == name);
        let Some(at) = found else {
            report.current = None;
            report.fail(&format!(
                "proc-receive reported status on unknown ref: {name}\n"
            ));
            return;
        };
        report.current = Some(at);
        let Some(command) = self.commands.get_mut(at) else {
            return;
        };
        if command.proc_receive == ProcReceiveState::No {
            report.fail(&format!(
                "proc-receive reported status on unexpected ref: {name}\n"
            ));
            return;
        }
        command.proc_receive = ProcReceiveState::Reported;
        match head == "ng" {
            true => {
                command.error = Some(reason.unwrap_or(b"failed").into());
                report.failed = true;
            }
            false => {
                report.expects_options = true;
                report.is_new = true;
            }
        }
    }

    fn take_option(&mut self, text: &[u8], report: &mut Report) {
        let command = report.current.filter(|_| report.expects_options);
        let Some(command) = command.and_then(|at| self.commands.get_mut(at)) else {
            if !std::mem::replace(&mut report.has_said_so, true) {
                report.errors.push_str(
                    "proc-receive reported 'option' without a matching 'ok/ng' directive\n",
                );
            }
            report.failed = true;
            return;
        };
        if std::mem::take(&mut report.is_new) {
            command.rewrites.push(ProcReceiveRewrite::default());
        }
        let Some(rewritten) = command.rewrites.last_mut() else {
            return;
        };
        let (key, value) = match text.split_once_str(" ") {
            Some((key, value)) => (key, Some(value)),
            None => (text, None),
        };
        let id = || value.and_then(|value| pronto_hash::parse_hex(value).ok());
        match key {
            b"refname" => rewritten.name = value.map(BString::from),
            b"old-oid" => rewritten.old = id().or(rewritten.old),
            b"new-oid" => rewritten.new = id().or(rewritten.new),
            b"forced-update" => rewritten.forced = true,
            // The server executes the command itself.
            b"fall-through" => command.proc_receive = ProcReceiveState::No,
            _ => {}
        }
    }
}

/// The state of reading a report.
struct Report {
    /// The command of the last line.
    current: Option<usize>,
    /// Whether options may follow.
    expects_options: bool,
    /// Whether the next option starts another rewritten change.
    is_new: bool,
    has_said_so: bool,
    errors: String,
    failed: bool,
}

impl Report {
    fn fail(&mut self, text: &str) {
        self.errors.push_str(text);
        self.failed = true;
    }
}

/// Reads the version and capabilities of the hook. Returns whether the hook accepts push options.
fn take_version(packets: &mut PacketReader<&mut dyn Read>) -> Result<bool, ProcReceiveFailure> {
    let negotiating = || failure("fail to negotiate version with proc-receive hook");
    let (mut version, mut wants_options) = (0, false);
    for _ in 0..MOST_PACKETS {
        let packet = packets.next_or_end().map_err(|_| negotiating())?;
        let line = match packet {
            None => return Err(negotiating()),
            Some(packet @ Packet::Data(_)) => packet.text().unwrap_or_default(),
            Some(_) => {
                return match version {
                    0 | 1 => Ok(wants_options),
                    version => Err(ProcReceiveFailure(Some(format!(
                        "proc-receive version '{version}' is not supported"
                    )))),
                };
            }
        };
        let Some(rest) = line.strip_prefix(b"version=") else {
            continue;
        };
        let (number, features) = match rest.split_once_str("\0") {
            Some((number, features)) => (number, features),
            None => (rest, &[][..]),
        };
        version = number
            .to_str()
            .ok()
            .and_then(|it| it.parse().ok())
            .unwrap_or(0);
        wants_options |= features.fields().any(|word| word == b"push-options");
    }
    Err(negotiating())
}
