//! Removes refs from `packed-refs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::BStr;

use super::super::Host;
use super::super::packed::Packed;
use super::super::packed_file::{PackedLock, Text};
use pronto_config::Result;

/// Locks the file if a ref may have to be removed, so that no process packs it meanwhile, and
/// writes the rest.
pub(super) fn prepare(repository: &dyn Host, gone: &BTreeSet<&BStr>) -> Result<Option<PackedLock>> {
    if gone.is_empty() {
        return Ok(None);
    }
    let mut lock = PackedLock::acquire(repository)?;
    let packed = repository.refs().packed()?;
    let has_any = |packed: &Arc<Packed>| gone.iter().any(|name| packed.find(name).is_some());
    let Some(packed) = packed.filter(has_any) else {
        return Ok(Some(lock));
    };
    let mut text = Text::new();
    let kept = packed
        .iter_from("".into())
        .filter(|found| !gone.contains(found.name));
    for mut found in kept {
        if found.peeled.is_none() && !packed.is_fully_peeled {
            found.peeled = repository.peel_tag(found.id)?;
        }
        text.push(&found);
    }
    packed.intact()?;
    lock.write(repository, &text.into_bytes())?;
    Ok(Some(lock))
}
