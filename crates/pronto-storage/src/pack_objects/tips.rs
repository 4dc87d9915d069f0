//! Objects that refs, reflogs and indexes keep reachable.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use pronto_hash::ObjectId;
use pronto_index::{Index, mode};
use pronto_io::watch::Watch;
use pronto_odb::packing::PackMember;
use pronto_pack::bitmap::name_hash;
use pronto_repository::Notice;
use pronto_repository::errors::from_index;
use pronto_repository::objects::from_odb;
use pronto_repository::refs::{BrokenRef, LogLine};
use pronto_repository::{Error, ErrorKind, Repository, Result};

use super::{Select, SelectedObjects, kept_whole};
use crate::name_files::{files_below, git_directories, unreadable};

/// Returns the objects to which all refs point. Dangling symrefs are skipped.
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] if a ref is broken, because its former target must not be lost.
pub fn ref_tips(repository: &Repository) -> Result<Vec<ObjectId>> {
    let mut tips = Vec::new();
    repository.refs().for_each_or_broken("refs/", |reference| {
        match reference {
            Ok(reference) => tips.push(reference.id),
            Err(BrokenRef::Dangling(_)) => {}
            Err(BrokenRef::Contents(name)) => {
                let message = format!("bad object {name}");
                return Err(Error::new(ErrorKind::Reference, message));
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(tips)
}

/// Returns the existing objects in the reflogs of all refs of all worktrees (`--reflog`). Missing
/// objects are reported as a notice.
///
/// # Errors
/// Fails with [`ErrorKind::Io`] if a reflog cannot be read.
pub fn reflog_tips(repository: &Repository) -> Result<Vec<ObjectId>> {
    let mut logs = Vec::new();
    for directory in git_directories(repository)? {
        let root = directory.join("logs");
        let files = files_below(&root)?.into_iter();
        logs.extend(files.map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(&path).to_owned();
            (name, path)
        }));
        logs.sort();
    }
    let store = repository.objects()?.without_replacements();
    let (mut seen, mut tips) = (HashSet::new(), Vec::new());
    for (name, path) in logs {
        let content = match pronto_io::untrusted::content(&path) {
            // The ref was removed with its reflog.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            content => content.map_err(|error| unreadable(&path, error))?,
        };
        let mut is_pruned = false;
        let lines = bstr::ByteSlice::lines(&content[..]).filter_map(LogLine::parse);
        for id in lines.flat_map(|line| [line.old, line.new]) {
            if id.is_null() || !seen.insert(id) {
                continue;
            }
            match store.contains(&id).map_err(from_odb)? {
                true => tips.push(id),
                false => is_pruned = true,
            }
        }
        if is_pruned {
            let name = name.display();
            repository.notify(Notice::PrunedInReflog(name.to_string()));
        }
    }
    Ok(tips)
}

/// Adds the objects that the indexes of all worktrees reference and `selection` lacks: blobs, cached
/// trees, and blobs of resolved conflicts (`--indexed-objects`).
///
/// # Errors
/// Fails with [`ErrorKind::Worktree`] or [`ErrorKind::Io`] if an index cannot be read, or
/// [`ErrorKind::Object`] if a tree cannot be read.
pub fn include_indexed(
    repository: &Repository,
    selection: &mut SelectedObjects,
    watch: &Watch<'_>,
) -> Result<()> {
    let chosen = selection.members.iter().map(|member| member.id);
    let mut chosen: HashSet<ObjectId> = chosen.collect();
    let mut trees = Vec::new();
    let own = repository.index_path();
    let mut paths: Vec<PathBuf> = git_directories(repository)?;
    paths.iter_mut().for_each(|path| path.push("index"));
    if !paths.contains(&own) {
        paths.push(own);
    }
    for path in paths {
        let index = Index::open(&path, repository.object_hash()).map_err(from_index)?;
        of_index(repository, &index, &mut chosen, &mut trees, selection)?;
    }
    if trees.is_empty() {
        return Ok(());
    }
    let select = Select {
        bitmaps: false,
        ..Select::default()
    };
    let below = super::select(repository, &trees, &[], &select, &watch.quiet())?;
    selection.whole.extend(below.whole);
    let new = below.members.into_iter();
    selection
        .members
        .extend(new.filter(|member| chosen.insert(member.id)));
    Ok(())
}

fn of_index(
    repository: &Repository,
    index: &Index,
    chosen: &mut HashSet<ObjectId>,
    trees: &mut Vec<ObjectId>,
    selection: &mut SelectedObjects,
) -> Result<()> {
    let mut kept_whole = kept_whole(repository)?;
    for entry in index.iter() {
        let id = entry.id.to_owned();
        if entry.is_sparse_directory() {
            trees.extend((!chosen.contains(&id)).then_some(id));
        } else if entry.mode != mode::GITLINK && chosen.insert(id) {
            if kept_whole.has(entry.path)? {
                selection.whole.insert(id);
            }
            let name_hash = name_hash(0, entry.path);
            selection.members.push(PackMember { id, name_hash });
        }
    }
    if let Some(undo) = index.resolve_undo().map_err(from_index)? {
        let stages = undo.paths.iter().flat_map(|path| path.stages);
        for (_, id) in stages.flatten() {
            if chosen.insert(id) && has(repository, &id)? {
                selection.members.push(PackMember { id, name_hash: 0 });
            }
        }
    }
    let Some(cached) = index.cached_tree() else {
        return Ok(());
    };
    let mut directories = vec![cached.root()];
    while let Some(directory) = directories.pop() {
        match directory.id() {
            Some(id) if chosen.contains(id) => {}
            Some(id) if has(repository, id)? => trees.push(id.to_owned()),
            _ => directories.extend(directory.children()),
        }
    }
    Ok(())
}

fn has(repository: &Repository, id: &pronto_hash::oid) -> Result<bool> {
    let store = repository.objects()?;
    store.contains(id).map_err(from_odb)
}
