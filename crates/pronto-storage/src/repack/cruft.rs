//! Cruft packs: unreachable objects with the times of their last use (`.mtimes`).

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_odb::Quarantine;
use pronto_odb::packing::{PackContents, PackMember};
use pronto_pack::mtimes;
use pronto_pack::writer::WrittenPack;
use pronto_repository::expiry::ExpiryAge;
use pronto_repository::objects::from_odb;
use pronto_repository::packs::{from_pack, writer_options};
use pronto_repository::{ErrorKind, Result};

use super::{Cruft, RepackRun};
use crate::last_used::dates;
use crate::pack_objects::{ExistingPack, known_packs, loose_objects, mark};
use crate::prune::{ReachableMarks, has_expired};

/// Objects with the time of their last use, in seconds since 1970.
type Aged = HashMap<ObjectId, u32>;

impl RepackRun<'_> {
    /// Returns whether the cruft pack is kept because of its size (`--combine-cruft-below-size`).
    pub(super) fn is_retained(&self, pack: &Path) -> bool {
        let Some(least) = self.cruft().and_then(|cruft| cruft.combine_below) else {
            return false;
        };
        let expires = self.cruft().is_some_and(|cruft| cruft.expiration.is_some());
        !expires
            && pack.with_extension("mtimes").exists()
            && pack.metadata().is_ok_and(|found| found.len() >= least)
    }

    /// Writes cruft packs of the objects that are neither in `chosen` nor in a kept pack: all of them,
    /// or those that have not expired and the objects reachable from them. Returns the paths of the new
    /// packs.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object or pack index cannot be read, or [`ErrorKind::Io`]
    /// if a file cannot be written.
    pub(super) fn write_cruft(
        &self,
        cruft: &Cruft,
        chosen: &HashSet<ObjectId>,
    ) -> Result<Vec<PathBuf>> {
        let mut aged = self.unreachable(chosen)?;
        let mut expired = Aged::new();
        if let Some(expire) = cruft.expiration {
            let kept = self.unexpired(expire, &aged)?;
            for (id, time) in std::mem::take(&mut aged) {
                match kept.contains(&id) {
                    true => _ = aged.insert(id, time),
                    false => _ = expired.insert(id, time),
                }
            }
        }
        let mut written = Vec::new();
        written.extend(self.pack_aged(&aged)?);
        if let Some(prefix) = &cruft.expire_to
            && !expired.is_empty()
        {
            self.pack_expired(&expired, prefix)?;
        }
        Ok(written)
    }

    /// Selects the loose objects and the objects in packs that may be deleted, unless they are in
    /// `chosen` or in a kept pack.
    fn unreachable(&self, chosen: &HashSet<ObjectId>) -> Result<Aged> {
        let packs = known_packs(self.repository)?;
        let hash = self.repository.object_hash();
        let mut aged = Aged::new();
        let mut add = |id: ObjectId, time: SystemTime| {
            if !chosen.contains(&id) {
                let before = aged.entry(id).or_default();
                *before = (*before).max(seconds(time));
            }
        };
        for pack in packs.iter().filter(|pack| self.is_repackable(pack)) {
            let modified = modified(&pack.path);
            let dates = dates(pack, hash)?;
            for (row, id) in (0..).zip(pack.ids()?) {
                match &dates {
                    Some(dates) => add(id, dates.at(row)?),
                    None => add(id, modified),
                }
            }
        }
        let objects = self.directory.parent().unwrap_or(&self.directory);
        for id in loose_objects(objects)? {
            let hex = id.to_string();
            add(id, modified(&objects.join(&hex[..2]).join(&hex[2..])));
        }
        self.leave_in_place(&packs, &mut aged)?;
        Ok(aged)
    }

    /// Removes objects that kept packs contain from `aged`, unless they were used more recently.
    fn leave_in_place(&self, packs: &[ExistingPack], aged: &mut Aged) -> Result<()> {
        let ids: Vec<ObjectId> = aged.keys().copied().collect();
        for pack in packs {
            let is_in_way = match pack.is_own {
                true => self.was_there(pack) && !self.is_repackable(pack),
                false => self.options.local,
            };
            if !is_in_way {
                continue;
            }
            let mut marks = vec![false; ids.len()];
            mark(&pack.index, &ids, &mut marks)?;
            let dates = dates(pack, self.repository.object_hash())?;
            for (id, _) in ids.iter().zip(marks).filter(|(_, mark)| *mark) {
                let row = match &dates {
                    Some(_) => pack.index.find(id).map_err(from_pack)?,
                    None => None,
                };
                let date = match (&dates, row) {
                    (Some(dates), Some(row)) => Some(seconds(dates.at(row.0)?)),
                    _ => None,
                };
                if date.is_none_or(|date| aged.get(id).is_some_and(|time| *time <= date)) {
                    aged.remove(id);
                }
            }
        }
        Ok(())
    }

    /// Returns the objects of `aged` that have not expired, and the objects reachable from them.
    fn unexpired(&self, expire: ExpiryAge, aged: &Aged) -> Result<HashSet<ObjectId>> {
        let recent = aged.iter().filter(|(_, time)| !is_over(expire, **time));
        let recent: Vec<ObjectId> = recent.map(|(id, _)| *id).collect();
        let mut marks = ReachableMarks::new(self.repository, self.watch)?;
        marks.lead_loosely_from(recent)?;
        let kept = aged.keys().filter(|id| marks.contains(id));
        Ok(kept.copied().collect())
    }

    /// Writes the cruft pack. Its `.mtimes` file is complete before the pack becomes visible.
    fn pack_aged(&self, aged: &Aged) -> Result<Option<PathBuf>> {
        if aged.is_empty() {
            return Ok(None);
        }
        let store = self.repository.objects()?;
        let quarantine = Quarantine::begin(store).map_err(from_odb)?;
        let made = self.pack_dated(aged, &quarantine.pack_directory(), None)?;
        let name = made.pack.file_name().unwrap_or_default();
        let path = self.directory.join(name);
        if path.exists() {
            // The existing pack has the same objects, but the times may differ.
            let times = made.pack.with_extension("mtimes");
            let to = path.with_extension("mtimes");
            std::fs::rename(&times, &to).context(ErrorKind::Io, "unable to rename to", &to)?;
        }
        quarantine.publish().map_err(from_odb)?;
        Ok(Some(path))
    }

    fn pack_expired(&self, expired: &Aged, prefix: &Path) -> Result<()> {
        let directory = match prefix.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let name = prefix.file_name().unwrap_or_default();
        self.pack_dated(expired, directory, Some(name.to_owned()))?;
        Ok(())
    }

    /// Writes a pack and its `.mtimes` file.
    fn pack_dated(
        &self,
        aged: &Aged,
        directory: &Path,
        prefix: Option<std::ffi::OsString>,
    ) -> Result<WrittenPack> {
        let repository = self.repository;
        let mut members: Vec<PackMember> = (aged.keys())
            .map(|id| PackMember {
                id: *id,
                name_hash: 0,
            })
            .collect();
        members.sort_unstable_by_key(|member| member.id);
        let contents = PackContents {
            members: &members,
            ..PackContents::default()
        };
        let mut files = writer_options(repository.config(), repository.object_hash())?;
        files.files.name_prefix = prefix;
        let store = repository.objects()?;
        let packing = &self.options.packing;
        let made = store.pack_into(&contents, packing, directory, files, self.watch);
        let (written, _) = made.map_err(from_odb)?;
        let kind = repository.object_hash();
        let access = pronto_io::view::ViewAccess::Auto;
        let pack =
            pronto_pack::pack::PackReader::open(&written.pack, kind, access).map_err(from_pack)?;
        let checksum = pack.checksum().map_err(from_pack)?;
        let seconds: Vec<u32> = members.iter().map(|member| aged[&member.id]).collect();
        let path = written.pack.with_extension("mtimes");
        let mut bytes = Vec::new();
        let made = mtimes::write(&mut bytes, kind, &seconds, &checksum);
        made.context(ErrorKind::Io, "unable to write", &path)?;
        std::fs::write(&path, bytes).context(ErrorKind::Io, "unable to write", &path)?;
        let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o444);
        let changed = std::fs::set_permissions(&path, read_only);
        changed.context(ErrorKind::Io, "cannot set permissions of", &path)?;
        Ok(written)
    }
}

fn is_over(expire: ExpiryAge, seconds: u32) -> bool {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.into());
    has_expired(expire, time)
}

fn seconds(time: SystemTime) -> u32 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
    })
}

/// Returns the modification time of the file, or the Unix epoch if the file does not exist.
fn modified(path: &Path) -> SystemTime {
    let modified = path.metadata().and_then(|found| found.modified());
    modified.unwrap_or(SystemTime::UNIX_EPOCH)
}
