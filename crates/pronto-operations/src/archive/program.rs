//! The program behind a configured format of archives (`tar.<format>.command`).

use std::ffi::OsStr;
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use bstr::{BStr, ByteSlice};
use pronto_io::error::OsReason;

use super::{Event, Events, from_output};
use crate::{Error, ErrorKind, Result};

/// The size of the pieces in which streams are copied.
const PIECE_BYTES: usize = 1 << 16;

/// A command line through which an archive goes.
pub(super) struct Program<'a> {
    pub(super) line: &'a BStr,
    /// The directory in which it runs as that of a bare repository; `None` for the present one.
    pub(super) repository: Option<&'a std::path::Path>,
}

/// The program's input.
struct Input {
    pipe: BufWriter<ChildStdin>,
    /// Whether the program reads no more.
    is_closed: bool,
}

impl Input {
    fn note<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &done {
            self.is_closed |= error.kind() == io::ErrorKind::BrokenPipe;
        }
        done
    }
}

impl Write for Input {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.pipe.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.pipe.flush();
        self.note(flushed)
    }
}

/// A program that does not outlive the archive.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

impl Program<'_> {
    /// Writes to `output` what the program makes of the archive that `produce` writes.
    pub(super) fn filter(
        &self,
        output: &mut (dyn Write + Send),
        events: &Events<'_>,
        produce: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let line = self.line;
        let mut command = self.command();
        let traced = pronto_io::child::started("archive", &command);
        let child = command.spawn().map_err(|error| {
            let message = format!("unable to start '{line}' filter");
            Error::new(ErrorKind::Io, message).because(OsReason(error))
        })?;
        let mut running = Running(child);
        let child = &mut running.0;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(mut made), Some(mut said)) = streams else {
            return Err(Error::new(ErrorKind::Io, "unable to create pipe"));
        };
        let mut input = Input {
            pipe: BufWriter::with_capacity(PIECE_BYTES, input),
            is_closed: false,
        };
        let (produced, copied, is_closed) = std::thread::scope(|scope| {
            scope.spawn(move || tell(&mut said, events));
            let copying = scope.spawn(move || copy(&mut made, output));
            let produced = produce(&mut input);
            let produced = produced.and_then(|()| input.flush().map_err(from_output));
            let is_closed = input.is_closed;
            if produced.is_err() && !is_closed {
                let _ = child.kill();
            }
            let Input { pipe, .. } = input;
            drop(pipe.into_parts());
            let copied = copying.join().unwrap_or(Ok(()));
            (produced, copied, is_closed)
        });
        let status = child.wait().map_err(from_output)?;
        traced.ended(child.id(), status);
        copied.map_err(from_output)?;
        // A program that fails may leave its input unread.
        if !status.success() && (is_closed || produced.is_ok()) {
            let message = format!("'{line}' filter reported error");
            return Err(Error::new(ErrorKind::Io, message));
        }
        produced
    }

    fn command(&self) -> Command {
        let line = OsStr::from_bytes(self.line);
        let mut command = match needs_shell(self.line) {
            true => pronto_io::child::shell(line, line),
            false => pronto_io::child::command(line),
        };
        if let Some(directory) = self.repository {
            command.current_dir(directory).env("GIT_DIR", ".");
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Returns whether a shell is needed to run `line`.
fn needs_shell(line: &BStr) -> bool {
    line.find_byteset(b"|&;<>()$`\\\"' \t\n*?[#~=%").is_some()
}

/// Passes on what the program says.
fn tell(said: &mut impl Read, events: &Events<'_>) {
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = said.read(&mut piece) {
        events(Event::ErrorOutput(piece.get(..count).unwrap_or_default()));
    }
}

/// Copies what the program makes, as it comes. After an error its output is discarded, so that it ends.
fn copy(made: &mut impl Read, output: &mut (dyn Write + Send)) -> io::Result<()> {
    let copied = io::copy(made, output);
    if copied.is_err() {
        let _ = io::copy(made, &mut io::sink());
    }
    copied.map(|_| ())
}
