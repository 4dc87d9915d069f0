//! Packs refs (`git pack-refs`): writes loose refs into `packed-refs` and removes their files.

use bstr::{BStr, BString, ByteSlice};
use pronto_config::glob::{self, MatchOptions};
use pronto_hash::{ObjectId, oid};

use super::RefHost;
use super::loose::{self, LooseRefContents};
use super::packed::PackedRef;
use super::packed_file::{PackedLock, Text};
use super::patience::patience;
use super::transaction::hook::{self, HookLine};
use super::transaction::remove_empty_parents;
use super::{RefNameRef, name};
use pronto_config::lock::{Lock, Marking};
use pronto_config::{Error, ErrorKind, Result};

/// The smallest number of loose refs that `auto` packs.
const FEWEST: u64 = 16;

/// Options of `git pack-refs`: the refs to pack, and the treatment of their loose files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackRefsOptions {
    /// Remove the loose file of each packed ref (`--prune`, `--no-prune`).
    pub prune: bool,
    /// Pack only if there are many loose refs compared with the packed ones (`--auto`).
    pub auto: bool,
    /// Patterns of the refs to pack, of which one must match (`--include`). `*` also matches
    /// slashes.
    pub includes: Vec<BString>,
    /// Patterns of the refs that stay loose (`--exclude`).
    pub excludes: Vec<BString>,
}

impl Default for PackRefsOptions {
    /// Packs tags and removes their loose files (`--include=refs/tags/* --prune`).
    fn default() -> Self {
        PackRefsOptions {
            prune: true,
            auto: false,
            includes: vec!["refs/tags/*".into()],
            excludes: Vec::new(),
        }
    }
}

impl PackRefsOptions {
    /// Returns the options to pack all refs and remove their loose files (`--all --prune`).
    pub fn all() -> Self {
        PackRefsOptions {
            includes: vec!["*".into()],
            ..PackRefsOptions::default()
        }
    }

    fn includes(&self, name: &BStr) -> bool {
        let is_any = |patterns: &[BString]| {
            let mut patterns = patterns.iter();
            patterns.any(|pattern| glob::matches(pattern, name, MatchOptions::default()))
        };
        !is_any(&self.excludes) && is_any(&self.includes)
    }
}

/// The result of packing refs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct PackRefsReport {
    /// The number of packed refs; `None` if `auto` did not require packing.
    pub packed: Option<usize>,
    /// The number of removed loose files.
    pub pruned: usize,
    /// The errors for loose files that could not be removed, with Git's messages. The values in
    /// these files are still correct.
    pub failures: Vec<Error>,
}

/// A loose ref that will be packed.
#[derive(Debug)]
struct PackableRef {
    name: BString,
    id: ObjectId,
}

impl dyn RefHost + '_ {
    /// Packs refs like `git pack-refs`: writes `packed-refs`, then removes the file of each ref
    /// that still holds the packed value, under the lock of the ref. Symrefs, broken refs and
    /// per-worktree refs are never packed. Each ref can be read at any moment, and a killed process
    /// loses no ref.
    ///
    /// Waits up to `core.packedRefsTimeout` for the lock of `packed-refs`. Refs that point to
    /// missing objects are [noted](RefHost::note_missing_target).
    ///
    /// With reftables, merges all tables of a stack into one; with `auto`, merges only the tables
    /// that are necessary to keep their number small.
    ///
    /// Costs a read and an object lookup for each loose ref, a copy of `packed-refs`, and about
    /// seven system calls for each removed file.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Locked`] if the lock is held for longer than the timeout, with
    /// [`ErrorKind::Io`] or [`ErrorKind::Reference`] if a file cannot be read or written, and with
    /// [`ErrorKind::Hook`] if the hook `reference-transaction` refuses.
    pub fn pack_refs(&self, options: &PackRefsOptions) -> Result<PackRefsReport> {
        let mut report = PackRefsReport::default();
        if let Some(tables) = self.refs().tables() {
            tables.compact(!options.auto)?;
            return Ok(report);
        }
        if options.auto && !self.should_pack_refs(options)? {
            return Ok(report);
        }
        let mut lock = PackedLock::acquire(self)?;
        let candidates = self.pack_candidates(options, usize::MAX)?;
        self.write_packed(&mut lock, &candidates)?;
        drop(lock);
        report.packed = Some(candidates.len());
        if options.prune {
            // As in Git, the last ref is pruned first: a symbolic link to another ref is examined
            // before that ref is removed.
            for candidate in candidates.iter().rev() {
                match self.prune_loose(candidate) {
                    Ok(is_gone) => report.pruned += usize::from(is_gone),
                    Err(error) => report.failures.push(error),
                }
            }
        }
        Ok(report)
    }

    /// Returns whether `pack_refs` with these options and `auto` would pack: the number of loose
    /// refs to pack is at least sixteen, and at least five times the binary logarithm of the number
    /// of packed refs.
    ///
    /// Costs a read of each loose ref up to that number.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if `packed-refs` cannot be read, and with the error of the
    /// object store if an object cannot be read.
    pub fn should_pack_refs(&self, options: &PackRefsOptions) -> Result<bool> {
        if let Some(tables) = self.refs().tables() {
            return tables.needs_compaction();
        }
        let file = self.refs().common_dir.join("packed-refs");
        let size = match std::fs::metadata(&file) {
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => {
                let message = "cannot determine packed-refs size";
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
        };
        let digits = (size / 100).checked_ilog2().unwrap_or(0);
        let limit = (u64::from(digits) * 5).max(FEWEST) as usize;
        Ok(self.pack_candidates(options, limit)?.len() >= limit)
    }

    /// Returns the first `limit` loose refs to pack, in order of names.
    fn pack_candidates(&self, options: &PackRefsOptions, limit: usize) -> Result<Vec<PackableRef>> {
        let refs = self.refs();
        let mut candidates = Vec::new();
        for found in refs.loose_names("refs/".into()) {
            if candidates.len() >= limit {
                break;
            }
            if name::is_per_worktree(found.as_bstr()) {
                continue;
            }
            let Ok(safe) = RefNameRef::new(found.as_bstr()) else {
                continue;
            };
            let contents = loose::read(
                &refs.file_of(safe),
                found.as_bstr(),
                self.refs().object_hash(),
            );
            let Ok(Some(LooseRefContents::Object(id))) = contents else {
                continue;
            };
            if id.is_null() {
                continue;
            }
            if !self.has_object(&id)? {
                self.note_missing_target(found.as_bstr());
                continue;
            }
            if options.includes(found.as_bstr()) {
                if found.starts_with(b"refs/heads/") {
                    self.check_packable(found.as_bstr(), &id)?;
                }
                candidates.push(PackableRef { name: found, id });
            }
        }
        Ok(candidates)
    }

    /// Fails if the ref `name` is a branch and its object `id` is not a commit.
    fn check_packable(&self, name: &BStr, id: &oid) -> Result<()> {
        self.check_storable(name, id).map_err(|error| {
            let message = format!("failure preparing to create packed reference {name}: {error}");
            Error::new(error.kind(), message)
        })
    }

    /// Writes `packed-refs` with its current refs and `candidates`.
    fn write_packed(&self, lock: &mut PackedLock, candidates: &[PackableRef]) -> Result<()> {
        let has_hook = self.has_hook();
        let run_hook = |state: &str| -> Result<()> {
            let lines = candidates.iter().map(|candidate| HookLine {
                old: None,
                new: Some(candidate.id.to_string()),
                name: candidate.name.as_bstr(),
            });
            match has_hook && hook::run(self, state, lines)?.is_some_and(|code| code != 0) {
                true if ["preparing", "prepared"].contains(&state) => Err(hook::refused(state)),
                _ => Ok(()),
            }
        };
        if let Err(error) = run_hook("preparing") {
            run_hook("aborted")?;
            return Err(error);
        }
        let existing = self.refs().packed()?;
        let mut text = Text::new();
        let mut new = candidates.iter().peekable();
        if let Some(existing) = &existing {
            for mut record in existing.iter_from("".into()) {
                while let Some(before) = new.next_if(|candidate| candidate.name < record.name) {
                    self.push_candidate(&mut text, before);
                }
                if let Some(same) = new.next_if(|candidate| candidate.name == record.name) {
                    self.push_candidate(&mut text, same);
                    continue;
                }
                if record.peeled.is_none() && !existing.is_fully_peeled {
                    record.peeled = self.peel_tag(record.id)?;
                }
                text.push(&record);
            }
        }
        for candidate in new {
            self.push_candidate(&mut text, candidate);
        }
        if let Some(existing) = &existing {
            existing.intact()?;
        }
        lock.write(self, &text.into_bytes())?;
        if let Err(error) = run_hook("prepared") {
            run_hook("aborted")?;
            return Err(error);
        }
        lock.rename_into_place()?;
        run_hook("committed")
    }

    fn push_candidate(&self, text: &mut Text, candidate: &PackableRef) {
        text.push(&PackedRef {
            name: candidate.name.as_bstr(),
            id: candidate.id,
            // As in Git, a broken tag is not reported.
            peeled: self.peel_tag(candidate.id).ok().flatten(),
        });
    }

    /// Removes the loose file of a packed ref if the file still holds the packed value.
    fn prune_loose(&self, candidate: &PackableRef) -> Result<bool> {
        let name = RefNameRef::new(candidate.name.as_bstr()).map_err(super::bad_name)?;
        let refs = self.refs();
        let file = refs.file_of(name);
        let lock = Lock::acquire_as(&file, Marking::Marked, patience(self.config())?);
        let lock = lock.map_err(|error| {
            let reason = error.message();
            let message = format!("cannot lock ref '{}': {reason}", candidate.name);
            Error::new(error.kind(), message)
        })?;
        let lock = lock.recorded(self.config());
        let held = loose::read(&file, candidate.name.as_bstr(), self.refs().object_hash())?;
        if held == Some(LooseRefContents::DanglingLink) {
            let name = &candidate.name;
            let message = format!("cannot lock ref '{name}': unable to resolve reference '{name}'");
            return Err(Error::new(ErrorKind::Reference, message));
        }
        if held != Some(LooseRefContents::Object(candidate.id)) {
            // Another process has changed or removed the file.
            drop(lock);
            remove_empty_parents(refs, name, false);
            return Ok(false);
        }
        let has_hook = self.has_hook();
        let run_hook = |state: &str| -> Result<bool> {
            let line = HookLine {
                old: Some(candidate.id.to_string()),
                new: None,
                name: candidate.name.as_bstr(),
            };
            Ok(has_hook && hook::run(self, state, [line])?.is_some_and(|code| code != 0))
        };
        for state in ["preparing", "prepared"] {
            if run_hook(state)? {
                run_hook("aborted")?;
                return Err(hook::refused(state));
            }
        }
        std::fs::remove_file(&file).map_err(|error| {
            let message = format!("unable to unlink '{}'", file.display());
            Error::new(ErrorKind::Io, message).because(error)
        })?;
        drop(lock);
        remove_empty_parents(refs, name, false);
        run_hook("committed")?;
        Ok(true)
    }
}
