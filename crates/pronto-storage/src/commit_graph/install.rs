//! Selects the layers of a chain that are kept, and installs the new file.

use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pronto_config::durability::Component;
use pronto_config::lock::{Lock, PATIENCE};
use pronto_config::shared;
use pronto_hash::ObjectId;
use pronto_io::cleanup::Guard;
use pronto_io::error::IoContext as _;
use pronto_pack::commit_graph::write::GraphContents;
use pronto_pack::commit_graph::{CommitGraph, chain_path, layer_path, single_path, write};
use pronto_repository::{Error, ErrorKind, Result};

use super::{GraphWriter, SplitStrategy};

/// The plan for the existing layers.
#[derive(Debug, Default)]
pub(super) struct GraphChain {
    /// The ids of the kept layers, lowest first.
    pub(super) kept_ids: Vec<ObjectId>,
    kept_paths: Vec<PathBuf>,
    /// The number of commits in the layers that are kept.
    pub(super) below: u32,
    /// The positions of the commits in layers that are merged into the new layer.
    pub(super) merged: Range<u32>,
    /// The files of layers that are not kept.
    dropped_paths: Vec<PathBuf>,
    /// Whether the topmost kept layer has generation data: the new layer must match it.
    pub(super) keeps_generations: Option<bool>,
    /// The number of the object directory of the topmost kept layer.
    kept_directory: usize,
}

impl GraphChain {
    /// Plans which layers are kept if `count` commits are added in a new layer, which is written to the
    /// object directory with number `directory`.
    pub(super) fn plan(work: &GraphWriter<'_>, directory: usize, count: u64) -> GraphChain {
        let (Some(split), Some(graph)) = (work.options.split, &work.graph) else {
            return GraphChain::default();
        };
        let paths: Vec<PathBuf> = graph.paths().map(Path::to_owned).collect();
        let ids: Vec<ObjectId> = graph.layer_ids().collect();
        let ranges: Vec<Range<u32>> = graph.ranges().collect();
        let directories: Vec<usize> = graph.directories().collect();
        let mut kept = match split {
            SplitStrategy::Replace => 0,
            _ => paths.len(),
        };
        let mut count = count;
        let options = work.options;
        while split == SplitStrategy::Merge && kept > 0 && directories[kept - 1] == directory {
            let own = ranges[kept - 1].len() as u64;
            let is_small = own <= options.size_multiple.saturating_mul(count);
            if !is_small && (options.max_commits == 0 || count <= options.max_commits) {
                break;
            }
            count += own;
            kept -= 1;
        }
        let mut merged_to = paths.len();
        if kept == 1 && is_foreign_single(graph, directory) {
            (kept, merged_to) = (0, 0);
        }
        let below = kept.checked_sub(1).map_or(0, |top| ranges[top].end);
        let end = merged_to.checked_sub(1).map_or(0, |top| ranges[top].end);
        GraphChain {
            kept_ids: ids[..kept].to_vec(),
            kept_paths: paths[..kept].to_vec(),
            below,
            merged: match split {
                SplitStrategy::Replace => 0..0,
                _ => below..end.max(below),
            },
            dropped_paths: paths[kept..].to_vec(),
            keeps_generations: kept
                .checked_sub(1)
                .map(|top| graph.layer_has_corrected_dates(top)),
            kept_directory: kept.checked_sub(1).map_or(0, |top| directories[top]),
        }
    }
}

/// Returns whether `graph` is a single file in an object directory other than the one with number
/// `directory`. No layer can be added to such a file.
pub(super) fn is_foreign_single(graph: &CommitGraph, directory: usize) -> bool {
    let mut paths = graph.paths();
    let is_one = paths.next().is_some_and(is_single) && paths.next().is_none();
    is_one && graph.directories().next() != Some(directory)
}

fn is_single(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "commit-graph")
}

/// Writes the file under its final name, then removes layers that are no longer used.
pub(super) fn install(
    work: &GraphWriter<'_>,
    objects_dir: &Path,
    chain: &GraphChain,
    contents: &GraphContents<'_>,
) -> Result<()> {
    let title = writing_title(contents.chunk_count());
    let total = (contents.chunk_count() * contents.commits.len()) as u64;
    let meter = work.watch.progress().begin(title, Some(total));
    let mut used = HashSet::new();
    let sync = work.repository.fsync()?.of(Component::CommitGraph);
    if work.options.split.is_none() {
        let lock = Lock::acquire(single_path(objects_dir), PATIENCE)?;
        let lock = lock.recorded(work.repository.config());
        let path = lock.path().to_owned();
        if let Some(file) = lock.file() {
            let written =
                write::write(&mut &*file, contents, &meter).and_then(|_| sync.apply(file));
            written.context(ErrorKind::Io, "unable to write", &path)?;
        }
        seal(work, &path)?;
        lock.commit()?;
        let _ = std::fs::remove_file(chain_path(objects_dir));
    } else {
        install_layer(work, objects_dir, chain, contents, &meter, &mut used)?;
    }
    meter.finish();
    expire(work, objects_dir, &used);
    Ok(())
}

fn install_layer(
    work: &GraphWriter<'_>,
    objects_dir: &Path,
    chain: &GraphChain,
    contents: &GraphContents<'_>,
    meter: &pronto_io::progress::Meter,
    used: &mut HashSet<PathBuf>,
) -> Result<()> {
    let lock = Lock::acquire(chain_path(objects_dir), PATIENCE)?;
    let mut lock = lock.recorded(work.repository.config());
    let directory = objects_dir.join("info/commit-graphs");
    let name = format!("tmp_graph_{:x}", std::process::id());
    let path = directory.join(name);
    let guard = Guard::new(&path);
    let failed = "unable to create temporary graph layer";
    let mut file = File::create(&path).context(ErrorKind::Io, failed, &path)?;
    let id = write::write(&mut file, contents, meter).context(ErrorKind::Io, failed, &path)?;
    let synced = work
        .repository
        .fsync()?
        .of(Component::CommitGraph)
        .apply(&file);
    synced.context(ErrorKind::Io, failed, &path)?;
    drop(file);
    seal(work, &path)?;
    let mut list = String::new();
    for id in &chain.kept_ids {
        list.push_str(&format!("{id}\n"));
    }
    list.push_str(&format!("{id}\n"));
    match chain.kept_paths.last() {
        // A single file becomes the lowest layer of the chain.
        Some(base) if is_single(base) => {
            let top = chain.kept_ids.len() - 1;
            let home = work.object_directory_of(chain.kept_directory)?;
            let layer = layer_path(&home, &chain.kept_ids[top].to_string());
            std::fs::rename(base, &layer).context(
                ErrorKind::Io,
                "failed to rename base commit-graph file",
                base,
            )?;
            used.insert(layer);
        }
        Some(_) => {}
        None => _ = std::fs::remove_file(single_path(objects_dir)),
    }
    let layer = layer_path(objects_dir, &id.to_string());
    let failed = "failed to rename temporary commit-graph file";
    std::fs::rename(&path, &layer).context(ErrorKind::Io, failed, &path)?;
    guard.keep();
    used.extend(chain.kept_paths.iter().cloned());
    used.insert(layer);
    let list_path = lock.path().to_owned();
    lock.write_and_close(list.as_bytes())?;
    seal(work, &list_path)?;
    lock.commit()?;
    touch(&chain.dropped_paths);
    Ok(())
}

/// Removes the write permissions of the file.
fn seal(work: &GraphWriter<'_>, path: &Path) -> Result<()> {
    let metadata = std::fs::metadata(path).context(ErrorKind::Io, "unable to adjust", path)?;
    let mode = Permissions::from_mode(metadata.permissions().mode() & 0o444);
    std::fs::set_permissions(path, mode).context(ErrorKind::Io, "unable to adjust", path)?;
    shared::adjust(work.store.options().sharing, path)
}

/// Updates the modification time of unused layers, so that processes that still read them find them for
/// a while.
fn touch(paths: &[PathBuf]) {
    for path in paths {
        if let Ok(file) = File::open(path) {
            let _ = file.set_modified(SystemTime::now());
        }
    }
}

/// Removes unused layers that were modified before `--expire-time`.
fn expire(work: &GraphWriter<'_>, objects_dir: &Path, used: &HashSet<PathBuf>) {
    let before = match work.options.expire_before {
        Some(seconds) if seconds != 0 => seconds,
        _ => SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX)),
    };
    let Ok(entries) = std::fs::read_dir(objects_dir.join("info/commit-graphs")) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_layer = path
            .extension()
            .is_some_and(|extension| extension == "graph");
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let modified = modified.unwrap_or(UNIX_EPOCH);
        let modified = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_old = i64::try_from(modified.as_secs()).is_ok_and(|modified| modified <= before);
        if is_layer && is_old && !used.contains(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl GraphWriter<'_> {
    fn object_directory_of(&self, number: usize) -> Result<PathBuf> {
        let store = &self.store;
        let found = match number.checked_sub(1) {
            None => Some(store.path()),
            Some(alternate) => store.alternates().get(alternate).map(PathBuf::as_path),
        };
        found.map(Path::to_owned).ok_or_else(|| {
            Error::new(ErrorKind::Io, "the object directory has disappeared")
                .because(io::Error::from(io::ErrorKind::NotFound))
        })
    }
}

fn writing_title(passes: usize) -> &'static str {
    match passes {
        3 => "Writing out commit graph in 3 passes",
        4 => "Writing out commit graph in 4 passes",
        5 => "Writing out commit graph in 5 passes",
        6 => "Writing out commit graph in 6 passes",
        7 => "Writing out commit graph in 7 passes",
        8 => "Writing out commit graph in 8 passes",
        _ => "Writing out commit graph in 9 passes",
    }
}
