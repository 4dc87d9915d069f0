//! Prints the lines of `rev-list`.

use std::io::Write;

use bstr::{BStr, ByteSlice};
use pronto::history::Commits;
use pronto::walk::WalkedCommit;
use pronto_hash::oid;

use super::Request;
use crate::CliError;

/// Prints commits and objects, or counts them.
pub(super) struct RevisionPrinter<'a, W: Write> {
    request: &'a Request,
    out: &'a mut W,
    left: u64,
    /// The number of commits on the right side, and of all objects.
    others: u64,
    line: Vec<u8>,
}

impl<'a, W: Write> RevisionPrinter<'a, W> {
    pub(super) fn new(request: &'a Request, out: &'a mut W) -> Self {
        RevisionPrinter {
            request,
            out,
            left: 0,
            others: 0,
            line: Vec::new(),
        }
    }

    pub(super) fn commit(
        &mut self,
        commits: &Commits<'_>,
        walked: WalkedCommit,
    ) -> Result<(), CliError> {
        let request = self.request;
        if request.quiet {
            return Ok(());
        }
        if request.count {
            match walked.is_left {
                true => self.left += 1,
                false => self.others += 1,
            }
            return Ok(());
        }
        let number = walked.number;
        self.line.clear();
        if request.timestamp {
            write!(self.line, "{} ", commits.time(number))?;
        }
        if request.left_right {
            self.line.push(if walked.is_left { b'<' } else { b'>' });
        }
        self.id(&commits.id(number)?);
        if request.parents {
            for which in 0..commits.parent_count(number) {
                self.line.push(b' ');
                self.id(&commits.parent_id(number, which)?);
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        Ok(())
    }

    /// Prints an object. If the path contains line feeds, only its first line is printed.
    pub(super) fn object(&mut self, id: &oid, path: &BStr) -> Result<(), CliError> {
        if self.request.quiet {
            return Ok(());
        }
        if self.request.count {
            self.others += 1;
            return Ok(());
        }
        self.line.clear();
        self.id(id);
        if self.request.names {
            self.line.push(b' ');
            let end = path.find_byte(b'\n').unwrap_or(path.len());
            self.line.extend_from_slice(&path[..end]);
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        Ok(())
    }

    fn id(&mut self, id: &oid) {
        let hex = pronto_hash::hex(id);
        self.line.extend_from_slice(hex.as_bytes());
    }

    /// Prints the counts, if they are requested (`--count`).
    pub(super) fn finish(self) -> Result<(), CliError> {
        let request = self.request;
        if request.count && !request.quiet {
            match request.left_right {
                true => writeln!(self.out, "{}\t{}", self.left, self.others)?,
                false => writeln!(self.out, "{}", self.left + self.others)?,
            }
        }
        Ok(())
    }
}
