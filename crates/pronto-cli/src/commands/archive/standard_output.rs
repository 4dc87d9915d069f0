//! The standard output of an archive: a pipe or a file receives all bytes unchanged, and a terminal
//! receives no control characters.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::terminal::text::sanitized_bytes;

/// Standard output, or a file instead. Git writes archives to terminals unchanged; pronto removes
/// control characters, because names and contents are untrusted.
pub(super) struct StandardOutput {
    file: File,
    is_terminal: bool,
}

impl StandardOutput {
    /// Uses the standard output of this process.
    ///
    /// # Errors
    /// Fails if standard output is closed.
    pub(super) fn new() -> io::Result<Self> {
        Ok(StandardOutput::over(
            io::stdout().as_fd().try_clone_to_owned()?.into(),
        ))
    }

    /// Uses an open file.
    pub(super) fn over(file: File) -> Self {
        StandardOutput {
            is_terminal: file.is_terminal(),
            file,
        }
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.file.write(bytes);
        }
        self.file.write_all(&sanitized_bytes(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _};

    use super::*;

    #[test]
    fn only_a_terminal_gets_no_control_characters() {
        for (is_terminal, expected) in [
            (true, &b"a?]0;x?\n?b?"[..]),
            (false, b"a\x1b]0;x\x07\n\0b\x9b"),
        ] {
            let mut file = tempfile::tempfile().expect("a file");
            let copy = file.try_clone().expect("a file");
            let mut output = StandardOutput {
                file: copy,
                is_terminal,
            };
            output
                .write_all(b"a\x1b]0;x\x07\n\0b\x9b")
                .expect("it is written");
            let mut written = Vec::new();
            file.rewind().expect("it is a file");
            file.read_to_end(&mut written).expect("it is read");
            assert_eq!(written, expected);
        }
    }
}
