//! The standard error of a server and of its child processes, as events of the log.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::os::fd::AsFd as _;

use pronto_server::Event;
use rustix::event::{PollFd, PollFlags, poll};

use super::Writer;

/// The largest length of a line in bytes. Longer lines become several events.
const LONGEST_LINE: usize = 4096;

/// The capture of standard error. It ends when this value is dropped.
pub(super) struct StderrCapture {
    /// Standard error before the capture.
    original: File,
    /// The thread stops when this end of the pipe is closed.
    _running: PipeWriter,
}

impl StderrCapture {
    /// Replaces standard error with a pipe, whose lines a thread passes to `writer`.
    ///
    /// # Errors
    /// Fails if the system has no resources for pipes or a thread.
    pub(super) fn start(writer: Writer) -> io::Result<Self> {
        let original = File::from(io::stderr().as_fd().try_clone_to_owned()?);
        let (output, input) = io::pipe()?;
        let (stopped, running) = io::pipe()?;
        let thread = std::thread::Builder::new().name("output".to_owned());
        thread.spawn(move || pass(output, &stopped, &writer))?;
        rustix::stdio::dup2_stderr(&input)?;
        Ok(StderrCapture {
            original,
            _running: running,
        })
    }

    /// Restores standard error. Lines that were written before become events.
    pub(super) fn end(self) {
        drop(self);
    }
}

impl Drop for StderrCapture {
    fn drop(&mut self) {
        // Without this, later errors of this process would be lost; no other stream can report the failure.
        let _ = rustix::stdio::dup2_stderr(&self.original);
    }
}

/// Passes lines to `writer` until `output` ends, or until `stopped` ends and nothing is left to read.
fn pass(mut output: PipeReader, stopped: &PipeReader, writer: &Writer) {
    let mut line = Vec::new();
    let mut buffer = [0; LONGEST_LINE];
    while wait(&output, stopped) {
        match output.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                for byte in buffer.iter().take(count) {
                    match byte {
                        b'\n' | b'\r' => log(&mut line, writer),
                        byte => line.push(*byte),
                    }
                    if line.len() == LONGEST_LINE {
                        log(&mut line, writer);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    log(&mut line, writer);
}

/// Waits until there is something to read. Returns false if the capture has ended and nothing is left.
fn wait(output: &PipeReader, stopped: &PipeReader) -> bool {
    let mut both = [
        PollFd::new(output, PollFlags::IN),
        PollFd::new(stopped, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Ok(_) => return !both[0].revents().is_empty(),
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}

/// Logs a line that is not empty.
fn log(line: &mut Vec<u8>, writer: &Writer) {
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    line.clear();
    if !text.is_empty() {
        writer.write(&Event::Output { line: text });
    }
}
