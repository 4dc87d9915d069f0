//! The input of a push for a child process, which ends with the push.
//!
//! Clients of SSH and `git://` close their input only after the report. Without parsing the input,
//! the server would wait for a client that has sent everything, treat the client as stalled, and
//! give its slot to another request.

use std::io::{self, Read};

use pronto_wire::receive::{PushEnd, PushParts};

/// The input of a push, which reports its end after the last byte of the push.
pub(super) struct PushInput<R> {
    input: R,
    end: PushEnd,
    is_over: bool,
}

impl<R> PushInput<R> {
    /// Returns the input of a push, from its first command.
    pub(super) fn new(input: R, parts: PushParts) -> Self {
        PushInput {
            input,
            end: PushEnd::new(parts),
            is_over: false,
        }
    }
}

impl<R: Read> Read for PushInput<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_over {
            return Ok(0);
        }
        let count = self.input.read(buffer)?;
        self.is_over = self.end.push(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}
