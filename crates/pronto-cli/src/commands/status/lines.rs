//! Writes the lines of the long format.

use std::io::{self, Write};

use super::{ColourSlot, StatusView};

/// A writer of lines: each line in one colour, and after a comment character on request.
pub(super) struct StatusWriter<'a, W> {
    pub(super) view: &'a StatusView,
    pub(super) out: &'a mut W,
}

impl<'a, W: Write> StatusWriter<'a, W> {
    /// Flushes the output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Writes a line in the colour of `slot`.
    pub(super) fn line(&mut self, slot: ColourSlot, text: &str) -> io::Result<()> {
        self.start(slot, text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    /// Writes a line of advice, if advice is enabled (`advice.statusHints`).
    pub(super) fn hint(&mut self, text: &str) -> io::Result<()> {
        if self.view.settings.hints {
            self.line(ColourSlot::Header, text)?;
        }
        Ok(())
    }

    /// Writes an empty line.
    pub(super) fn empty(&mut self) -> io::Result<()> {
        if self.view.settings.comment_prefix {
            self.view.look.write(self.out, ColourSlot::Header, b"#")?;
        } else {
            self.view.look.write(self.out, ColourSlot::Header, b"")?;
        }
        self.out.write_all(b"\n")
    }

    /// Writes the first part of a line.
    pub(super) fn start(&mut self, slot: ColourSlot, text: &[u8]) -> io::Result<()> {
        let mut whole = Vec::new();
        if self.view.settings.comment_prefix {
            whole.push(b'#');
            if text.first() != Some(&b'\t') {
                whole.push(b' ');
            }
        }
        whole.extend_from_slice(text);
        self.view.look.write(self.out, slot, &whole)
    }

    /// Writes the rest of a line.
    pub(super) fn more(&mut self, slot: ColourSlot, text: &[u8]) -> io::Result<()> {
        self.view.look.write(self.out, slot, text)
    }

    /// Writes the empty line after the untracked files.
    pub(super) fn line_after_others(&mut self) -> io::Result<()> {
        let sign: &[u8] = if self.view.settings.comment_prefix {
            b"#\n"
        } else {
            b"\n"
        };
        self.out.write_all(sign)
    }
}
