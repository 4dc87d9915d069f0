//! A reftable file: footer, blocks and lookups.

use std::path::{Path, PathBuf};

use pronto_hash::Kind;
use pronto_io::error::IoContext;
use pronto_io::view::{FileView, ViewAccess};

use super::block::{BlockOutline, Records};
use super::values;
use crate::reftable::error::{BlockFault, Error, ErrorKind, Result};
use crate::reftable::format::{
    BLOCK_HEADER_LEN, BlockKind, BlockSection, Footer, LARGEST_BLOCK, TableHeader,
    UpdateIndexRange, be24,
};
use crate::reftable::record::RefEntry;

/// An upper bound for the ratio of inflated to deflated bytes.
const MOST_INFLATED: u64 = 1100;

/// A reftable file, opened for reading. `Send + Sync`; reading takes no lock.
///
/// The file is mapped if possible, so that a search reads only the pages that it needs.
#[derive(Debug)]
pub struct RefTable {
    view: FileView,
    path: PathBuf,
    header: TableHeader,
    footer: Footer,
    /// The type of the first block: refs or logs.
    first: Option<BlockKind>,
}

impl RefTable {
    /// Opens the table at `path`. Costs four system calls; reads the first and the last page.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Missing`] if the file does not exist, with [`ErrorKind::Io`] if it
    /// cannot be opened, and as [`from_view`](Self::from_view) does.
    pub fn open(path: impl Into<PathBuf>) -> Result<RefTable> {
        let path = path.into();
        match FileView::open(&path, ViewAccess::Mapped) {
            Ok(view) => RefTable::from_view(view, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(error).context(ErrorKind::Missing, "cannot open table", &path)
            }
            Err(error) => Err(error).context(ErrorKind::Io, "cannot open table", &path),
        }
    }

    /// Returns the table with the bytes of `view`, which is in memory or mapped; error messages
    /// contain `path`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the header or the footer is malformed, with
    /// [`ErrorKind::Unsupported`] if the version or the hash function is unknown, and with
    /// [`ErrorKind::Options`] if `view` is neither in memory nor mapped.
    pub fn from_view(view: FileView, path: impl Into<PathBuf>) -> Result<RefTable> {
        let path = path.into();
        let Some(bytes) = view.bytes() else {
            let message = "table is neither mapped nor in memory";
            return Err(Error::new(ErrorKind::Options, message).at_path(&path));
        };
        let (header, footer) = read_ends(bytes).map_err(|error| {
            match view.check() {
                Ok(()) => error,
                Err(cut) => Error::new(ErrorKind::Io, "cannot read table").because(cut),
            }
            .at_path(&path)
        })?;
        let end = bytes.len() - header.footer_len();
        let first = bytes[..end].get(header.len()).copied();
        Ok(RefTable {
            first: first.and_then(BlockKind::from_byte),
            view,
            path,
            header,
            footer,
        })
    }

    /// Returns the path of the table.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the hash function of object ids.
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// Returns the range of update indexes that the table may contain.
    pub fn limits(&self) -> UpdateIndexRange {
        self.header.limits
    }

    /// Returns the size of the file in bytes.
    pub fn file_len(&self) -> u64 {
        self.view.len()
    }

    /// Returns the size of aligned blocks; 0 if blocks are not aligned.
    pub fn block_size(&self) -> u32 {
        self.header.block_size
    }

    /// Returns the size that Git's compaction uses for this table.
    pub(in crate::reftable) fn weight(&self) -> u64 {
        let overhead = self.header.footer_len() + self.header.len() - 1;
        self.view.len().saturating_sub(overhead as u64)
    }

    /// Returns the record of the ref `name`, which may be a deletion record.
    ///
    /// Reads one block for each level of the index (one level for two million refs) and one ref
    /// block, of which about twenty records are examined. Allocates nothing.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Corrupt`] if the table is malformed.
    pub fn find(&self, name: impl AsRef<[u8]>) -> Result<Option<RefEntry<'_>>> {
        let name = name.as_ref();
        let mut next = self.leaf(&self.target(BlockKind::Ref, name))?;
        while let Some(position) = next {
            let Some(records) = self.block(position, BlockKind::Ref)? else {
                break;
            };
            let faulty = |fault| self.fault(position, fault);
            let place = records.seek(name).map_err(faulty)?;
            if let Some(head) = place.exact {
                let read = values::reference(&records, &head).map_err(faulty)?;
                let entry = self.entry(read.value).map_err(faulty)?;
                self.check()?;
                return Ok(Some(entry));
            }
            next = (place.at >= records.shape.tail).then_some(records.shape.next);
        }
        self.verify_view()?;
        Ok(None)
    }

    /// Returns the positions of the blocks of one type.
    pub(super) fn section(&self, kind: BlockKind) -> BlockSection {
        let Footer {
            ref_index,
            object_start,
            object_index,
            log_start,
            log_index,
            ..
        } = self.footer;
        let known = |start: u64| (start > 0).then_some(start);
        let at_front = (self.first == Some(kind)).then_some(0);
        match kind {
            BlockKind::Ref => BlockSection {
                start: at_front,
                index: ref_index,
            },
            BlockKind::Object => BlockSection {
                start: known(object_start),
                index: object_index,
            },
            BlockKind::Log => BlockSection {
                start: at_front.or(known(log_start)),
                index: log_index,
            },
            BlockKind::Index => BlockSection::default(),
        }
    }

    /// Returns the number of bytes of an object id in the key of an object record.
    pub(super) fn id_len(&self) -> usize {
        self.footer.id_len
    }

    /// Returns the bytes of the blocks, without the footer.
    fn body(&self) -> &[u8] {
        let bytes = self.view.bytes().unwrap_or_default();
        &bytes[..bytes.len().saturating_sub(self.header.footer_len())]
    }

    /// Returns the records of the uncompressed block at `position`; `None` if there is no block of
    /// the type `kind`.
    pub(super) fn block(&self, position: u64, kind: BlockKind) -> Result<Option<Records<'_>>> {
        let Some(outline) = self.outline(position)? else {
            return Ok(None);
        };
        if outline.kind != kind || kind == BlockKind::Log {
            return Ok(None);
        }
        let bytes = &self.body()[position as usize..];
        let records = Records::new(outline, bytes);
        records
            .map(Some)
            .map_err(|fault| self.fault(position, fault))
    }

    /// Returns the header data of the block at `position`; `None` after the last block.
    pub(super) fn outline(&self, position: u64) -> Result<Option<BlockOutline>> {
        let body = self.body();
        let bytes = usize::try_from(position).ok().and_then(|at| body.get(at..));
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        self.outline_of(position, bytes)
            .map(Some)
            .map_err(|fault| self.fault(position, fault))
    }

    fn outline_of(
        &self,
        position: u64,
        bytes: &[u8],
    ) -> std::result::Result<BlockOutline, BlockFault> {
        let skipped = if position == 0 { self.header.len() } else { 0 };
        let ends = BlockFault::new("corrupt reftable: block is too short", skipped);
        let kind = *bytes.get(skipped).ok_or(ends)?;
        let Some(kind) = BlockKind::from_byte(kind) else {
            return Err(BlockFault::new(
                "corrupt reftable: unknown block type",
                skipped,
            ));
        };
        let len = be24(bytes, skipped + 1).ok_or(ends)? as usize;
        if len < skipped + BLOCK_HEADER_LEN || (kind != BlockKind::Log && len > bytes.len()) {
            return Err(BlockFault::new(
                "corrupt reftable: bad block length",
                skipped + 1,
            ));
        }
        let aligned = self.header.block_size as usize;
        // A block that is shorter than the aligned size is either padded with zeros, or followed
        // directly by the next block.
        let is_padded = len < aligned && bytes.get(len).is_none_or(|byte| *byte == 0);
        let whole = if is_padded { aligned } else { len };
        Ok(BlockOutline {
            kind,
            position,
            skipped,
            len,
            next: position.saturating_add(whole as u64),
            id_len: self.header.kind.len_in_bytes(),
        })
    }

    /// Returns the deflated records of the log block.
    pub(super) fn deflated(&self, outline: &BlockOutline) -> Result<&[u8]> {
        let start = outline.position as usize + outline.skipped + BLOCK_HEADER_LEN;
        let bytes = self.body().get(start..).unwrap_or_default();
        let most = (bytes.len() as u64).saturating_mul(MOST_INFLATED);
        if outline.len as u64 > most || outline.len > LARGEST_BLOCK as usize {
            let fault = BlockFault::new(
                "corrupt reftable: log block is too long",
                outline.skipped + 1,
            );
            return Err(self.fault(outline.position, fault));
        }
        Ok(bytes)
    }

    /// Converts a decoded ref to an entry. Adds the first update index of the table to the stored
    /// difference.
    #[inline(always)]
    pub(super) fn entry<'b>(
        &self,
        reference: values::DecodedRef<'b>,
    ) -> std::result::Result<RefEntry<'b>, BlockFault> {
        let min = self.header.limits.min;
        match min.checked_add(reference.index_delta) {
            Some(update_index) => Ok(RefEntry {
                update_index,
                value: reference.value,
            }),
            None => Err(BlockFault::new(
                "corrupt reftable: update index is out of range",
                0,
            )),
        }
    }

    /// Returns the error for `fault` in the block at `position`, or the error for a truncated file.
    #[cold]
    pub(super) fn fault(&self, position: u64, fault: BlockFault) -> Error {
        match self.check() {
            Ok(()) => Error::new(ErrorKind::Corrupt, fault.message)
                .at_path(&self.path)
                .at_offset(position.saturating_add(fault.at as u64)),
            Err(error) => error,
        }
    }

    /// Checks that the bytes read so far are the contents of the file.
    #[inline(always)]
    pub(super) fn check(&self) -> Result<()> {
        match self.view.check() {
            Ok(()) => Ok(()),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Checks the view. Must be called before a ref is reported as missing.
    pub(super) fn verify_view(&self) -> Result<()> {
        self.view.verify().map_err(|error| self.unreadable(error))
    }

    #[cold]
    fn unreadable(&self, error: std::io::Error) -> Error {
        let error = Err(error).context(ErrorKind::Io, "cannot read table", &self.path);
        error.unwrap_or_else(|error: Error| error)
    }
}

fn read_ends(bytes: &[u8]) -> Result<(TableHeader, Footer)> {
    let corrupt = |fault: BlockFault| {
        Error::new(ErrorKind::Corrupt, fault.message).at_offset(fault.at as u64)
    };
    let Some(header) = TableHeader::read(bytes).map_err(corrupt)? else {
        let message = "unknown version or hash function of a reftable";
        return Err(Error::new(ErrorKind::Unsupported, message).at_offset(4));
    };
    let end = bytes.len().checked_sub(header.footer_len());
    let Some(end) = end.filter(|end| *end >= header.len()) else {
        let message = "truncated reftable footer";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(bytes.len() as u64));
    };
    let footer = Footer::read(&bytes[end..], &header).map_err(|mut fault| {
        fault.at += end;
        corrupt(fault)
    })?;
    if footer.object_start > 0 && footer.id_len == 0 {
        let message = "corrupt reftable: footer has no length of abbreviated object ids";
        return Err(Error::new(ErrorKind::Corrupt, message).at_offset(end as u64));
    }
    Ok((header, footer))
}
