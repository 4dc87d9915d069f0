//! Large objects that are deltas: each step of the chain is made in a file without a name, which is
//! mapped as the base of the next one, so that memory does not grow with the object.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use gix_object::Kind as ObjectKind;
use pronto_hash::oid;
use pronto_io::error::IoContext as _;
use pronto_io::view::{Access, View};

use super::decode::base_of;
use super::{EntryReader, Pack, PackOffset};
use crate::delta;
use crate::entry::Header;
use crate::error::{Error, ErrorKind};
use crate::temporary::Temporary;

/// What is gathered before it is written.
const BUFFER_LEN: usize = 256 * 1024;

/// An object in a file without a name, which stands at its start.
#[derive(Debug)]
pub struct Spooled {
    /// What it is.
    pub kind: ObjectKind,
    /// Its content.
    pub file: File,
    /// How much that is.
    pub size_bytes: u64,
}

/// A delta on the way to its base.
struct Link {
    data_offset: u64,
    size_bytes: u64,
    offset: PackOffset,
}

impl Pack {
    /// Makes the object at `offset` in a file without a name in `directory`; `find` is where a base
    /// that is named by its id lies in this pack. Takes half a MiB of memory whatever its
    /// size; writes as many times its size as the chain has steps.
    ///
    /// # Errors
    /// `Corrupt`, `Truncated` or `Missing` when the pack is damaged, `Io` when the pack cannot be
    /// read or the file not be written.
    pub fn spool(
        self: &Arc<Self>,
        offset: PackOffset,
        find: &dyn Fn(&oid) -> Result<Option<PackOffset>, Error>,
        directory: &Path,
    ) -> Result<Spooled, Error> {
        let (mut chain, mut at) = (Vec::new(), offset);
        loop {
            let entry = self.entry(at)?;
            if matches!(entry.header, Header::Object(_)) {
                break;
            }
            if chain.len() >= self.len() as usize {
                return Err(self.corrupt("chain of deltas leads back to itself", at.0));
            }
            chain.push(Link {
                data_offset: at.0 + entry.header_len as u64,
                size_bytes: entry.size_bytes,
                offset: at,
            });
            at = base_of(self, at, &entry, find)?;
        }
        let mut whole = self
            .reader(at)?
            .ok_or_else(|| self.corrupt("chain of deltas ends in a delta", at.0))?;
        let kind = whole.kind();
        let mut file = spool(directory, |out| self.copy(&mut whole, out, at))?;
        while let Some(link) = chain.pop() {
            file = self.step(file, &link, directory)?;
        }
        let size_bytes = file
            .metadata()
            .context(ErrorKind::Io, "cannot stat in", directory)?;
        Ok(Spooled {
            kind,
            file,
            size_bytes: size_bytes.len(),
        })
    }

    /// The result of the delta `link` for the base in `base`.
    fn step(self: &Arc<Self>, base: File, link: &Link, directory: &Path) -> Result<File, Error> {
        let map = |file| {
            View::from_file(file, directory, Access::Mapped).context(
                ErrorKind::Io,
                "cannot map a file in",
                directory,
            )
        };
        let mut stream = self.stream((link.data_offset, link.size_bytes), ObjectKind::Blob);
        let delta = map(spool(directory, |out| {
            self.copy(&mut stream, out, link.offset)
        })?)?;
        let base = map(base)?;
        let bytes = View::bytes;
        spool(directory, |out| {
            let (base, delta) = (bytes(&base), bytes(&delta));
            delta::apply_to(base.unwrap_or_default(), delta.unwrap_or_default(), out)
                .map_err(|error| error.at_path(self.path()).at_offset(link.offset.0))
        })
    }

    fn copy(
        &self,
        from: &mut EntryReader,
        out: &mut dyn io::Write,
        at: PackOffset,
    ) -> Result<(), Error> {
        let copied = io::copy(from, out);
        copied
            .map(drop)
            .map_err(|error| self.corrupt("cannot inflate object", at.0).because(error))
    }
}

/// A file without a name, with what `fill` writes, at its start.
fn spool(
    directory: &Path,
    fill: impl FnOnce(&mut BufWriter<&File>) -> Result<(), Error>,
) -> Result<File, Error> {
    let temporary = Temporary::create(directory, "large")?;
    std::fs::remove_file(&temporary.path).context(
        ErrorKind::Io,
        "unable to unlink",
        &temporary.path,
    )?;
    let mut out = BufWriter::with_capacity(BUFFER_LEN, &temporary.file);
    fill(&mut out)?;
    let written = out.flush();
    drop(out);
    let mut file = temporary.into_file();
    written
        .and_then(|()| file.rewind())
        .context(ErrorKind::Io, "unable to write in", directory)?;
    Ok(file)
}
