//! Directories of scenarios: shared worktrees, and directories that no earlier run has used.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use slowfs::{Model, SlowMount};

use crate::Args;
use crate::data::{BenchRepository, git};
use crate::scenario::settle;
use crate::volume::{self, Volume};

/// The directories of scenarios.
pub(crate) struct ScenarioPaths {
    pub(crate) source: PathBuf,
    pub(crate) older: String,
    pub(crate) newer: String,
    /// A permanent worktree of the newer commit.
    pub(crate) worktree: PathBuf,
    /// A repository with one file.
    pub(crate) tiny: PathBuf,
    /// The largest pack of the source.
    pub(crate) pack: PathBuf,
    /// The file with the ids of all objects of the source, one on each line, in the order of their
    /// packs.
    pub(crate) ids: PathBuf,
    /// The file with the same ids in an order that is unrelated to their positions.
    pub(crate) shuffled_ids: PathBuf,
    /// The directory to which runs write, on the slow file system if there is one.
    scratch: PathBuf,
    /// The real directory behind `scratch`; the same directory without a slow file system.
    behind: PathBuf,
    slow: RefCell<Option<SlowMount>>,
    arguments: Args,
    made: RefCell<Vec<PathBuf>>,
    next: Cell<u32>,
    deleted_at: Cell<Option<Instant>>,
    least_free_bytes: u64,
    rest: Duration,
    /// The temporary file system. As the last field, it is dropped last.
    volume: Option<Volume>,
}

impl ScenarioPaths {
    /// Creates the shared worktrees below `data`.
    pub(crate) fn new(
        data: &Path,
        repository: &BenchRepository,
        arguments: &Args,
    ) -> Result<Self, String> {
        let volume = arguments
            .place
            .map(|kind| Volume::new(kind, data, arguments.place_size))
            .transpose()?;
        let base = volume.as_ref().map_or(data, |volume| &volume.at);
        let scratch = base.join(format!("scratch-{}", std::process::id()));
        let is_slow = arguments.slow.is_some() || arguments.seek.is_some();
        let behind = match is_slow {
            true => scratch.with_extension("behind"),
            false => scratch.clone(),
        };
        for directory in [&scratch, &behind] {
            fs::create_dir_all(directory).map_err(|error| text(&error))?;
        }
        let slow = is_slow.then(|| mount(&behind, &scratch, arguments));
        let space = rustix::fs::statvfs(&behind).map_err(|error| error.to_string())?;
        // A small file system is not emptied before every run.
        let sixth = space.f_blocks * space.f_frsize / 6;
        let waits = !matches!(arguments.place, Some(kind) if kind != volume::Kind::Ext4);
        let place = ScenarioPaths {
            source: repository.path.clone(),
            older: repository.older.clone(),
            newer: repository.newer.clone(),
            worktree: data.join(format!("{}-worktree", repository.name)),
            tiny: data.join("tiny"),
            pack: largest_pack(&repository.path)?,
            ids: data.join(format!("{}-ids", repository.name)),
            shuffled_ids: data.join(format!("{}-shuffled-ids", repository.name)),
            scratch,
            behind,
            slow: RefCell::new(slow.transpose()?),
            arguments: arguments.clone(),
            made: RefCell::default(),
            next: Cell::new(0),
            deleted_at: Cell::new(None),
            least_free_bytes: match arguments.place {
                Some(_) => sixth.min(arguments.free << 30),
                None => arguments.free << 30,
            },
            rest: Duration::from_secs(if waits { arguments.rest } else { 0 }),
            volume,
        };
        place.prepare_worktrees()?;
        place.prepare_ids()?;
        Ok(place)
    }

    fn prepare_worktrees(&self) -> Result<(), String> {
        if !self.worktree.exists() {
            let target = self.worktree.to_string_lossy();
            git(&self.source, &["clone", "-q", "--shared", ".", &target])?;
        }
        if !self.tiny.exists() {
            fs::create_dir_all(&self.tiny).map_err(|error| text(&error))?;
            git(&self.tiny, &["init", "-q"])?;
            fs::write(self.tiny.join("file"), "text\n").map_err(|error| text(&error))?;
            git(&self.tiny, &["add", "file"])?;
            let identity = ["-c", "user.name=b", "-c", "user.email=b@example.com"];
            git(
                &self.tiny,
                &[&identity[..], &["commit", "-q", "-m", "one"]].concat(),
            )?;
        }
        Ok(())
    }

    fn prepare_ids(&self) -> Result<(), String> {
        if self.shuffled_ids.exists() {
            return Ok(());
        }
        let packed = ["--batch-all-objects", "--unordered"];
        let question = ["cat-file", "--batch-check=%(objectname)"];
        let ids = git(&self.source, &[&question[..], &packed].concat())? + "\n";
        fs::write(&self.ids, &ids).map_err(|error| text(&error))?;
        let mut shuffled: Vec<&str> = ids.lines().collect();
        // Ids are uniformly distributed, so sorting by their last digits gives random positions in
        // the packs.
        shuffled.sort_unstable_by_key(|id| id.as_bytes().iter().rev().copied().collect::<Vec<_>>());
        fs::write(&self.shuffled_ids, shuffled.join("\n") + "\n").map_err(|error| text(&error))
    }

    /// Returns the real directory to which runs write.
    pub(crate) fn behind(&self) -> &Path {
        &self.behind
    }

    /// Returns a worktree of the newer commit on the file system of runs. The first call creates
    /// the worktree.
    pub(crate) fn volume_worktree(&self) -> Result<PathBuf, String> {
        let worktree = self.scratch.join("worktree");
        if !worktree.exists() {
            let target = worktree.to_string_lossy();
            let options = ["clone", "-q", "--shared", "--no-checkout", ".", &target];
            git(&self.source, &options)?;
            let newer = ["checkout", "-q", "-f", "--detach", &self.newer];
            git(&worktree, &newer)?;
            settle(&worktree)?;
        }
        Ok(worktree)
    }

    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.source.display())
    }

    /// Returns an unused path. Earlier directories are deleted only if the file system is nearly
    /// full.
    pub(crate) fn fresh(&self) -> Result<PathBuf, String> {
        if free_bytes(&self.behind)? < self.least_free_bytes {
            self.clean()?;
        }
        let number = self.next.get();
        self.next.set(number + 1);
        let path = self.scratch.join(number.to_string());
        self.made
            .borrow_mut()
            .push(self.behind.join(number.to_string()));
        Ok(path)
    }

    /// Returns the number of metadata calls of the slow file system so far.
    pub(crate) fn metadata_calls(&self) -> Option<u64> {
        let mount = self.slow.borrow();
        Some(mount.as_ref()?.model().metadata_count())
    }

    /// Waits until the last deletion no longer slows down writes.
    pub(crate) fn rest(&self) {
        if let Some(deleted) = self.deleted_at.take() {
            std::thread::sleep(self.rest.saturating_sub(deleted.elapsed()));
        }
    }

    /// Deletes the files of earlier runs.
    pub(crate) fn clean(&self) -> Result<(), String> {
        // The mount is renewed, because deleting files behind it frees inode numbers that the
        // kernel still associates with other files.
        let was_slow = self.slow.take().is_some();
        for path in self.made.borrow_mut().drain(..) {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(text(&error)),
                _ => self.deleted_at.set(Some(Instant::now())),
            }
        }
        // The waiting time starts when the deletion has reached the disk.
        rustix::fs::sync();
        if was_slow {
            let slow = mount(&self.behind, &self.scratch, &self.arguments)?;
            self.slow.replace(Some(slow));
        }
        Ok(())
    }
}

impl Drop for ScenarioPaths {
    fn drop(&mut self) {
        drop(self.slow.take());
        if self.volume.take().is_none() {
            let _ = fs::remove_dir_all(&self.scratch);
            let _ = fs::remove_dir_all(&self.behind);
        }
    }
}

fn mount(behind: &Path, at: &Path, arguments: &Args) -> Result<SlowMount, String> {
    let mut model = Model::default();
    if let Some(delay) = arguments.slow {
        model.delay_metadata(delay);
    }
    model.seek = arguments.seek;
    SlowMount::new(behind, at, model)
        .map_err(|error| format!("cannot mount the slow file system: {error}"))
}

fn largest_pack(repository: &Path) -> Result<PathBuf, String> {
    let folder = repository.join("objects/pack");
    let entries = fs::read_dir(&folder).map_err(|error| text(&error))?;
    let packs = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        let pack = entry.path().extension()? == "pack";
        Some((entry.metadata().ok().filter(|_| pack)?.len(), entry.path()))
    });
    packs
        .max()
        .map(|(_, path)| path)
        .ok_or_else(|| format!("no pack in '{}'", folder.display()))
}

fn free_bytes(path: &Path) -> Result<u64, String> {
    let file_system = rustix::fs::statvfs(path).map_err(|error| error.to_string())?;
    Ok(file_system.f_bavail * file_system.f_frsize)
}

fn text(error: &io::Error) -> String {
    error.to_string()
}
