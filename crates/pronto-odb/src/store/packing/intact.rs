//! Verifies that stored entries are undamaged.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use pronto_hash::{Digester, ObjectId};
use pronto_pack::pack::{PackOffset, PackReader};

use super::super::Store;
use super::super::details::ObjectReader;
use super::each_piece;
use super::plan::PlannedObject;
use crate::error::{Error, ErrorKind, from_pack};
use crate::packs::PackFile;

/// The size of the pieces in which content is hashed.
const PIECE: usize = 64 << 10;

/// Returns the CRC-32 of the stored entry; `None` if the entry is damaged. An entry is damaged if
/// its CRC-32 differs from the index, or, for an index without CRC-32 (version 1), if its content
/// does not have the id of the object.
///
/// # Errors
/// Fails if the index or the pack cannot be read.
pub(super) fn checked_crc(
    store: &Store,
    file: &PackFile,
    row: &PlannedObject,
) -> Result<Option<u32>, Error> {
    let (pack, order, index) = (file.pack()?, file.order()?, file.index()?);
    let Ok(len) = order.size_on_disk(PackOffset(row.offset)) else {
        return Ok(None);
    };
    let found = crc_of(&[], pack, row.offset..row.offset + len)?;
    let known = match order.row(PackOffset(row.offset)) {
        Some(at) => index.crc_at(at).map_err(from_pack)?,
        None => None,
    };
    let is_intact = match known {
        Some(known) => known == found,
        None => match store.entry_reader(file, PackOffset(row.offset)) {
            Ok(reader) => digest(store, reader).is_ok_and(|id| id == Some(row.id)),
            Err(_) => false,
        },
    };
    Ok(is_intact.then_some(found))
}

/// Reads an object as it is read for deflating: any readable copy if the object is smaller than
/// `large_bytes`, otherwise the copy that [`Store::reader`] reads.
///
/// # Errors
/// Fails if there is no copy, or if the copy is damaged. A damaged entry does not count as a copy,
/// even if it can be read.
pub(super) fn check_any_copy(
    store: &Store,
    row: &PlannedObject,
    large_bytes: u64,
) -> Result<(), Error> {
    let id = &row.id;
    let corrupt = || {
        Error::new(
            ErrorKind::Corrupt,
            format!("corrupt packed object for {id}"),
        )
    };
    let here = |pack: &PackFile, offset| match pack.number == row.pack
        && offset == PackOffset(row.offset)
    {
        true => Err(corrupt()),
        false => Ok(()),
    };
    let hex = id.to_string();
    let loose = |objects: &Path| {
        Ok(objects
            .join(&hex[..2])
            .join(&hex[2..])
            .exists()
            .then_some(()))
    };
    store.lookup(id, here, loose)?.ok_or_else(corrupt)?;
    let found = if row.size_bytes < large_bytes {
        let mut content = Vec::new();
        let kind = store.find(id, &mut content)?.ok_or_else(corrupt)?;
        let header = gix_object::encode::loose_header(kind, content.len() as u64);
        pronto_hash::digest(store.kind(), &[&header, &content]).ok()
    } else {
        let reader = store.reader(id)?.ok_or_else(corrupt)?;
        digest(store, reader).map_err(|error| corrupt().because(error))?
    };
    match found {
        Some(found) if found == *id => Ok(()),
        _ => Err(corrupt()),
    }
}

/// Returns the CRC-32 of `header` and the range `body` of the pack.
///
/// # Errors
/// Fails if the pack cannot be read.
pub(super) fn crc_of(header: &[u8], pack: &PackReader, body: Range<u64>) -> Result<u32, Error> {
    let mut digest = crc32fast::Hasher::new();
    digest.update(header);
    each_piece(pack, body, &mut |bytes| {
        digest.update(bytes);
        Ok(())
    })?;
    Ok(digest.finalize())
}

/// Returns the object id of the content of `reader`; `None` if the content is part of a known
/// attack on SHA-1.
fn digest(store: &Store, mut reader: ObjectReader) -> io::Result<Option<ObjectId>> {
    let mut digester = Digester::new(store.kind());
    let header = gix_object::encode::loose_header(reader.kind(), reader.size_bytes());
    digester.update(&header);
    let mut buffer = vec![0; PIECE];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(digester.finish().ok()),
            Ok(len) => digester.update(&buffer[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
