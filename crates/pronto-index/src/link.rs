//! Reads split indexes: a small file with the differences from a shared index.

use crate::bytes::take;
use crate::error::{Error, corrupt};
use crate::ewah::Bitmap;
use crate::index::Index;
use crate::layout::{self, UnpackedEntries};
use pronto_hash::ObjectId;

/// The content of the `link` extension.
#[derive(Debug)]
pub(crate) struct SplitIndexLink {
    delete: Bitmap,
    replace: Bitmap,
}

impl SplitIndexLink {
    /// Parses only the id of the shared index, which must be read before the bitmaps can be
    /// checked.
    pub(crate) fn base_of(mut data: &[u8], hash_len: usize) -> Result<ObjectId, Error> {
        take(&mut data, hash_len)
            .map(ObjectId::from_bytes_or_panic)
            .ok_or_else(|| corrupt("corrupt link extension (too short)"))
    }

    pub(crate) fn parse(
        mut data: &[u8],
        hash_len: usize,
        base_len: usize,
    ) -> Result<SplitIndexLink, Error> {
        Self::base_of(data, hash_len)?;
        take(&mut data, hash_len);
        let (mut delete, mut replace) = (Bitmap::default(), Bitmap::default());
        if !data.is_empty() {
            delete = Bitmap::parse(&mut data, base_len)
                .map_err(|_| corrupt("corrupt delete bitmap in link extension"))?;
            replace = Bitmap::parse(&mut data, base_len)
                .map_err(|_| corrupt("corrupt replace bitmap in link extension"))?;
        }
        if data.is_empty() {
            Ok(SplitIndexLink { delete, replace })
        } else {
            Err(corrupt("garbage at the end of link extension"))
        }
    }

    /// Merges the entries of the split index `split` with the shared index `base`.
    pub(crate) fn merge(&self, base: &Index, split: &Index) -> Result<UnpackedEntries, Error> {
        let hash_len = base.hash_len();
        let mut replacements = 0;
        let mut additions = self.replace.iter().count();
        if additions > split.len() {
            return Err(corrupt("corrupt link extension, too many replacements"));
        }
        let mut merged = UnpackedEntries::default();
        let mut replace = self.replace.iter().peekable();
        let mut delete = self.delete.iter().peekable();
        for position in 0..base.len() {
            let key = base.key(position);
            let deleted = delete.next_if_eq(&position).is_some();
            let replaced = replace.next_if_eq(&position).is_some();
            if deleted && replaced {
                return Err(corrupt(format!(
                    "entry {position} is marked as both replaced and deleted"
                )));
            }
            while additions < split.len() && split.key(additions) < key {
                copy(&mut merged, split, additions)?;
                additions += 1;
            }
            let overridden = additions < split.len() && split.key(additions) == key;
            if replaced {
                if !split.key(replacements).path.is_empty() {
                    return Err(corrupt(format!(
                        "corrupt link extension, entry {position} should have zero length name"
                    )));
                }
                let (bytes, start) = split.raw(replacements);
                replacements += 1;
                if !overridden {
                    merged.push(layout::fixed_part(bytes, start, hash_len), key.path)?;
                    merged.fix_last_name_len(hash_len, key.path.len());
                }
            } else if !deleted && !overridden {
                copy(&mut merged, base, position)?;
            }
        }
        for position in additions..split.len() {
            copy(&mut merged, split, position)?;
        }
        Ok(merged)
    }
}

fn copy(merged: &mut UnpackedEntries, from: &Index, position: usize) -> Result<(), Error> {
    let (bytes, start) = from.raw(position);
    let path = from.key(position).path;
    if path.is_empty() {
        return Err(corrupt(format!(
            "corrupt link extension, entry {position} should have non-zero length name"
        )));
    }
    merged.push(layout::fixed_part(bytes, start, from.hash_len()), path)
}
