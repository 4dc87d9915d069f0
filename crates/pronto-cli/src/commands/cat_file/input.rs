//! Reads standard input by lines.

use std::io::Read;

use crate::CliError;

const CHUNK_LEN: usize = 64 * 1024;

/// Standard input, line by line.
pub(super) struct InputLines<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end_byte: u8,
    is_over: bool,
}

impl<R: Read> InputLines<R> {
    /// Reads lines of `source` that end with `end_byte`.
    pub(super) fn new(source: R, end_byte: u8) -> Self {
        InputLines {
            source,
            buffer: Vec::new(),
            start: 0,
            end_byte,
            is_over: false,
        }
    }

    /// Returns the next line without its end (and without a carriage return before a line feed), or
    /// `None` at the end of the input. `before_waiting` runs before a read that may block.
    pub(super) fn next(
        &mut self,
        mut before_waiting: impl FnMut() -> Result<(), CliError>,
    ) -> Result<Option<&[u8]>, CliError> {
        let mut searched = self.start;
        let end = loop {
            let found = memchr(self.end_byte, &self.buffer[searched..]);
            if let Some(at) = found {
                break searched + at;
            }
            searched = self.buffer.len();
            if self.is_over {
                break searched;
            }
            before_waiting()?;
            searched -= self.start;
            self.read_more()?;
        };
        if self.is_over && self.start == self.buffer.len() {
            return Ok(None);
        }
        let line = &self.buffer[self.start..end];
        self.start = (end + 1).min(self.buffer.len());
        Ok(Some(match line {
            [line @ .., b'\r'] if self.end_byte == b'\n' => line,
            line => line,
        }))
    }

    fn read_more(&mut self) -> Result<(), CliError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let len = self.buffer.len();
        self.buffer.resize(len + CHUNK_LEN, 0);
        let read = loop {
            match self.source.read(&mut self.buffer[len..]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        let read =
            read.map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
        self.buffer.truncate(len + read);
        self.is_over = read == 0;
        Ok(())
    }
}

fn memchr(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|other| *other == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], end_byte: u8) -> Vec<Vec<u8>> {
        let mut lines = InputLines::new(text, end_byte);
        let mut all = Vec::new();
        while let Some(line) = lines.next(|| Ok(())).expect("it is in memory") {
            all.push(line.to_owned());
        }
        all
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(lines(b"a\n\nb\r\nc", b'\n'), [&b"a"[..], b"", b"b", b"c"]);
        assert_eq!(lines(b"a\n", b'\n'), [b"a"]);
        assert_eq!(lines(b"", b'\n'), Vec::<Vec<u8>>::new());
        assert_eq!(lines(b"a\nb\0c\0", 0), [&b"a\nb"[..], b"c"]);
        let long = [vec![b'x'; 200_000], vec![b'\n'], vec![b'y'; 100]].concat();
        assert_eq!(lines(&long, b'\n').len(), 2);
    }
}
