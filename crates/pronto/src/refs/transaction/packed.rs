//! Writing `packed-refs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::{BStr, ByteVec};
use pronto_hash::ObjectId;

use super::super::packed::{Packed, PackedRef};
use crate::durability::Component;
use crate::lock::Lock;
use crate::{Repository, Result};

/// The first line of the file: all tags are peeled, the names sorted.
const HEADER: &str = "# pack-refs with: peeled fully-peeled sorted \n";

/// References to be taken out of the file, which is locked and written anew beside it.
#[derive(Debug)]
pub(super) struct Removal {
    lock: Lock,
    is_written: bool,
}

impl Removal {
    /// Puts the new file in place, if anything had to go.
    pub(super) fn commit(self) -> Result<()> {
        if self.is_written {
            self.lock.commit()
        } else {
            Ok(())
        }
    }
}

pub(super) fn lock(repository: &Repository) -> Result<Lock> {
    let patience = super::timeout(repository.config(), "core.packedrefstimeout", 1000);
    let lock = Lock::acquire(repository.common_dir().join("packed-refs"), patience)?;
    Ok(lock.waits(repository.fsync()?.of(Component::Reference)))
}

/// Locks the file if something may have to go, so that nobody packs it meanwhile, and writes the
/// rest.
pub(super) fn prepare(repository: &Repository, gone: &BTreeSet<&BStr>) -> Result<Option<Removal>> {
    if gone.is_empty() {
        return Ok(None);
    }
    let mut lock = lock(repository)?;
    let packed = repository.refs().packed()?;
    let has_any = |packed: &Arc<Packed>| gone.iter().any(|name| packed.find(name).is_some());
    let Some(packed) = packed.filter(has_any) else {
        lock.close();
        return Ok(Some(Removal {
            lock,
            is_written: false,
        }));
    };
    let mut text = Vec::from(HEADER);
    let kept = packed
        .iter_from("".into())
        .filter(|found| !gone.contains(found.name));
    for mut found in kept {
        if found.peeled.is_none() && !packed.is_fully_peeled {
            found.peeled = repository.peel_tag(found.id)?;
        }
        push_record(&mut text, &found);
    }
    packed.intact()?;
    lock.write_and_close(&text)?;
    Ok(Some(Removal {
        lock,
        is_written: true,
    }))
}

/// The text of a whole file; the records must be sorted by name.
pub(super) fn whole<'a>(
    records: impl Iterator<Item = (&'a BStr, ObjectId, Option<ObjectId>)>,
) -> Vec<u8> {
    let mut text = Vec::from(HEADER);
    for (name, id, peeled) in records {
        push_record(&mut text, &PackedRef { name, id, peeled });
    }
    text
}

fn push_record(text: &mut Vec<u8>, record: &PackedRef<'_>) {
    text.push_str(format!("{} ", record.id));
    text.push_str(record.name);
    text.push(b'\n');
    if let Some(peeled) = record.peeled {
        text.push_str(format!("^{peeled}\n"));
    }
}
