//! Deletes refs from `packed-refs`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};

use super::super::RefHost;
use super::super::packed::PackedRefs;
use super::super::packed_file::{PackedLock, Text};
use super::hook::{self, HookLine};
use pronto_config::Result;

/// A prepared deletion of refs from `packed-refs`. As in Git, the hook runs for this deletion as
/// for a transaction of its own, besides the transaction that deletes the refs.
#[derive(Debug)]
pub(super) struct PackedRemoval {
    lock: PackedLock,
    /// The full names of the refs.
    names: Vec<BString>,
    /// Whether at least one of the refs is in `packed-refs`.
    is_needed: bool,
}

/// Locks `packed-refs` if a ref may be in the file, so that no process packs the ref meanwhile, and
/// writes the remaining refs to a new file. Runs the hook with `prepared`, or with `aborted` if no
/// ref is in the file.
pub(super) fn prepare(
    repository: &dyn RefHost,
    names: Vec<BString>,
) -> Result<Option<PackedRemoval>> {
    if names.is_empty() {
        return Ok(None);
    }
    let lock = PackedLock::acquire(repository)?;
    let packed = repository.refs().packed()?;
    let has_any = |packed: &Arc<PackedRefs>| {
        let mut names = names.iter();
        names.any(|name| packed.find(name.as_bstr()).is_some())
    };
    let packed = packed.filter(has_any);
    let is_needed = packed.is_some();
    let mut removal = PackedRemoval {
        lock,
        names,
        is_needed,
    };
    let Some(packed) = packed else {
        run_hook(repository, "aborted", &removal.names)?;
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

impl PackedRemoval {
    /// Replaces `packed-refs` with the new file.
    pub(super) fn rename_into_place(&mut self) -> Result<()> {
        self.lock.rename_into_place()
    }

    /// Releases the lock, and runs the hook with the final `state` of the deletion: `committed` or
    /// `aborted`.
    pub(super) fn end(self, repository: &dyn RefHost, state: &str) -> Result<()> {
        drop(self.lock);
        if self.is_needed {
            run_hook(repository, state, &self.names)?;
        }
        Ok(())
    }

    /// Runs the hook with `state`, and fails if the hook refuses.
    fn ask(&self, repository: &dyn RefHost, state: &str) -> Result<()> {
        if run_hook(repository, state, &self.names)?.is_some_and(|code| code != 0) {
            run_hook(repository, "aborted", &self.names)?;
            return Err(hook::refused(state));
        }
        Ok(())
    }
}

/// Runs the hook with `state` for the deleted refs. Returns the exit code of the hook.
fn run_hook(repository: &dyn RefHost, state: &str, names: &[BString]) -> Result<Option<i32>> {
    if !repository.has_hook() {
        return Ok(None);
    }
    let lines = names.iter().map(|name| HookLine {
        old: None,
        new: None,
        name: name.as_bstr(),
    });
    hook::run(repository, state, lines)
}
