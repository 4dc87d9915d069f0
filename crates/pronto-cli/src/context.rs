//! What a command gets to work with.

use std::ffi::OsString;
use std::io::Write;

use pronto_io::interrupt::Interrupt;

use crate::globals::Globals;
use crate::output::Output;

/// Everything around a command: the options before it, its output, and the ways to stop it.
#[derive(Debug)]
pub struct Context {
    /// The standard output, buffered; flushed at the end.
    pub out: Output,
    /// What the options before the command said.
    pub globals: Globals,
    /// Set when the process is asked to end; to be passed to every long operation.
    pub interrupt: Interrupt,
    /// The arguments of the command as they were given, before they were brought into one form.
    pub arguments: Vec<OsString>,
    /// The number of plain arguments before a `--`, if there was one.
    pub separator: Option<usize>,
    /// Whether this process was started under the name `git`.
    pub called_as_git: bool,
}

impl Context {
    pub(crate) fn new(globals: Globals, called_as_git: bool) -> Self {
        Context {
            out: Output::new(),
            globals,
            interrupt: Interrupt::new(),
            arguments: Vec::new(),
            separator: None,
            called_as_git,
        }
    }

    /// The name by which messages call this program.
    pub fn program(&self) -> &'static str {
        if self.called_as_git { "git" } else { "pronto" }
    }

    /// Prints `warning: MESSAGE` on the standard error, after what has been output so far.
    pub fn warn(&mut self, message: &str) {
        self.say("warning: ", message);
    }

    /// Prints `error: MESSAGE` on the standard error; for failures that do not end the command.
    pub fn complain(&mut self, message: &str) {
        self.say("error: ", message);
    }

    /// Prints `MESSAGE` on a line of the standard error.
    pub fn remark(&mut self, message: &str) {
        self.say("", message);
    }

    /// Prints each line of `advice` after `hint: `.
    pub fn hint(&mut self, advice: &str) {
        for line in advice.split('\n') {
            self.say(if line.is_empty() { "hint:" } else { "hint: " }, line);
        }
    }

    fn say(&mut self, prefix: &str, message: &str) {
        // A closed standard output is reported at the end, not here.
        let _ = self.out.flush();
        write_to_stderr(format!("{prefix}{message}\n").as_bytes());
    }
}

/// Writes `bytes` to the standard error. Whoever closed it does not want to read of it.
pub(crate) fn write_to_stderr(bytes: &[u8]) {
    let _ = std::io::stderr().write_all(bytes);
}
