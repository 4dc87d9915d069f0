//! Removes refs from `packed-refs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::super::Host;
use super::super::packed::Packed;
use super::super::packed_file::{PackedLock, Text};
use super::hook::{self, Line};
use pronto_config::Result;

/// The removal of refs from `packed-refs`, prepared. As in Git, the hook is asked about it as about a
/// transaction, besides the one that deletes the refs.
#[derive(Debug)]
pub(super) struct Removal {
    lock: PackedLock,
    /// The full names of the refs.
    names: Vec<BString>,
    /// Whether one of them is in the file.
    is_needed: bool,
}

/// Locks the file if a ref may have to be removed, so that no process packs it meanwhile, and
/// writes the rest. Asks the hook, or tells it that there is nothing to do.
pub(super) fn prepare(repository: &dyn Host, names: Vec<BString>) -> Result<Option<Removal>> {
    if names.is_empty() {
        return Ok(None);
    }
    let lock = PackedLock::acquire(repository)?;
    let packed = repository.refs().packed()?;
    let has_any = |packed: &Arc<Packed>| {
        let mut names = names.iter();
        names.any(|name| packed.find(name.as_bstr()).is_some())
    };
    let packed = packed.filter(has_any);
    let is_needed = packed.is_some();
    let mut removal = Removal {
        lock,
        names,
        is_needed,
    };
    let Some(packed) = packed else {
        tell(repository, "aborted", &removal.names)?;
        return Ok(Some(removal));
    };
    removal.ask(repository, "preparing")?;
    let gone: BTreeSet<&BStr> = removal.names.iter().map(|name| name.as_bstr()).collect();
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
    removal.lock.write(repository, &text.into_bytes())?;
    removal.ask(repository, "prepared")?;
    Ok(Some(removal))
}

impl Removal {
    /// Gives the new file its name.
    pub(super) fn put_in_place(&mut self) -> Result<()> {
        self.lock.put_in_place()
    }

    /// Releases the lock, and tells the hook what has become of the removal: `committed` or `aborted`.
    pub(super) fn end(self, repository: &dyn Host, state: &str) -> Result<()> {
        drop(self.lock);
        if self.is_needed {
            tell(repository, state, &self.names)?;
        }
        Ok(())
    }

    /// Asks the hook, which may refuse.
    fn ask(&self, repository: &dyn Host, state: &str) -> Result<()> {
        if tell(repository, state, &self.names)?.is_some_and(|code| code != 0) {
            tell(repository, "aborted", &self.names)?;
            return Err(hook::refused(state));
        }
        Ok(())
    }
}

/// Runs the hook with `state` for refs that are deleted; its exit code.
fn tell(repository: &dyn Host, state: &str, names: &[BString]) -> Result<Option<i32>> {
    if !repository.has_hook() {
        return Ok(None);
    }
    let lines = names.iter().map(|name| Line {
        old: None,
        new: None,
        name: name.as_bstr(),
    });
    hook::run(repository, state, lines)
}
