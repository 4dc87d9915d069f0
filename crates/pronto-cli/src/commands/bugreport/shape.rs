//! The shape of the repository, for a report: formats, counts and sizes.

use std::fs::{self, DirEntry, File};
use std::io::Read as _;
use std::path::Path;

use pronto::Repository;
use pronto::repository::RefStorage;

use super::{Surroundings, line};

/// Appends the description.
pub(super) fn describe(surroundings: &Surroundings, text: &mut String) {
    text.push_str("\n[Repository]\n");
    let Some(repository) = &surroundings.repository else {
        match surroundings.failure {
            Some(kind) => line(text, "cannot be opened", format_args!("{kind:?}")),
            None => text.push_str("none in this directory\n"),
        }
        return;
    };
    formats(repository, text);
    references(repository, text);
    objects(repository, text);
    index(repository, text);
}

fn formats(repository: &Repository, text: &mut String) {
    let format = repository.format();
    line(text, "object format", repository.object_hash());
    let storage = match format.ref_storage {
        RefStorage::Files => "files",
        RefStorage::Reftable => "reftable",
    };
    line(text, "ref format", storage);
    line(text, "bare", repository.is_bare());
    line(text, "shallow", repository.is_shallow());
    let partial = repository.has_promisor();
    line(text, "partial clone", partial.is_ok_and(|it| it));
    let sparse = repository.config().bool_or("core.sparseCheckout", false);
    line(text, "sparse checkout", sparse.is_ok_and(|it| it));
    let top = repository.work_tree();
    let has_modules = top.is_some_and(pronto::gitmodules::is_in);
    line(text, "submodules", has_modules);
    let count = repository.work_trees().map_or(0, |all| all.len());
    line(text, "worktrees", count);
    let now = repository.in_progress();
    let operations = [
        ("merge", now.merge()),
        ("am", now.am()),
        ("rebase", now.rebase().is_some()),
        ("cherry-pick", now.cherry_pick()),
        ("revert", now.revert()),
        ("bisect", now.bisect()),
    ];
    let names: Vec<&str> = (operations.iter())
        .filter(|(_, is_present)| *is_present)
        .map(|(name, _)| *name)
        .collect();
    let shown = match names.is_empty() {
        true => "nothing".to_owned(),
        false => names.join(", "),
    };
    line(text, "in progress", shown);
}

fn references(repository: &Repository, text: &mut String) {
    let mut counts = [
        ("refs/heads/", "branches", 0_u64),
        ("refs/tags/", "tags", 0),
        ("refs/remotes/", "remote-tracking refs", 0),
        ("refs/", "other refs", 0),
    ];
    let all = repository.refs().all("refs/");
    for reference in all.iter().flatten() {
        let name = reference.name.as_slice();
        let mut kinds = counts.iter_mut();
        if let Some(kind) = kinds.find(|(prefix, ..)| name.starts_with(prefix.as_bytes())) {
            kind.2 += 1;
        }
    }
    if all.is_err() {
        line(text, "refs", "cannot be read");
        return;
    }
    for (_, name, count) in counts {
        line(text, name, count);
    }
}

/// The number of files, and their size.
#[derive(Default)]
struct FileCount {
    count: u64,
    size_bytes: u64,
}

impl FileCount {
    fn add(&mut self, entry: &DirEntry) {
        self.count += 1;
        self.size_bytes += entry.metadata().map_or(0, |it| it.len());
    }
}

fn objects(repository: &Repository, text: &mut String) {
    let directory = repository.objects_dir();
    let extensions = ["pack", "keep", "bitmap", "rev", "promisor", "mtimes"];
    let mut files = extensions.map(|extension| (extension, FileCount::default()));
    for entry in entries(&directory.join("pack")) {
        let path = entry.path();
        let mut counts = files.iter_mut();
        if let Some((_, count)) =
            counts.find(|(name, _)| path.extension().is_some_and(|it| it == *name))
        {
            count.add(&entry);
        }
    }
    for (extension, files) in &files {
        let FileCount { count, size_bytes } = files;
        let name = format!("packs with .{extension}");
        line(text, &name, format_args!("{count}, {size_bytes} bytes"));
    }
    let mut loose = FileCount::default();
    let is_hex = |name: &std::ffi::OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_hexdigit);
    for below in entries(&directory) {
        let name = below.file_name();
        if name.len() != 2 || !is_hex(&name) {
            continue;
        }
        for entry in entries(&below.path()).filter(|entry| is_hex(&entry.file_name())) {
            loose.add(&entry);
        }
    }
    let FileCount { count, size_bytes } = loose;
    line(
        text,
        "loose objects",
        format_args!("{count}, {size_bytes} bytes"),
    );
    let has = |name: &str| directory.join(name).exists();
    line(text, "multi-pack-index", has("pack/multi-pack-index"));
    let graph = has("info/commit-graph") || has("info/commit-graphs/commit-graph-chain");
    line(text, "commit-graph", graph);
    line(text, "alternates", has("info/alternates"));
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    let listed = fs::read_dir(directory);
    listed.into_iter().flatten().filter_map(Result::ok)
}

/// Appends version, entries and size of the index, from its header.
fn index(repository: &Repository, text: &mut String) {
    let mut header = [0; 12];
    let opened = File::open(repository.index_path());
    let read = opened.and_then(|mut file| {
        file.read_exact(&mut header)?;
        file.metadata()
    });
    let number = |at: usize| {
        let bytes = header[at..].first_chunk::<4>();
        bytes.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    match read {
        Ok(metadata) if header.starts_with(b"DIRC") => line(
            text,
            "index",
            format_args!(
                "version {}, {} entries, {} bytes",
                number(4),
                number(8),
                metadata.len()
            ),
        ),
        Ok(_) => line(text, "index", "not an index file"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => line(text, "index", "none"),
        Err(_) => line(text, "index", "cannot be read"),
    }
}
