//! Bare Git repositories: their refs, and their creation from a view.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pronto::refs::{HeadValue, RefTarget};
use pronto::{Environment, ObjectId, Repository};
use pronto_store::{Generation, StoredRefValue};
use test_support::git::isolated;

/// Returns the names of the bare repositories below `root`.
pub(crate) fn names_in(root: &Path) -> Vec<String> {
    let found = repositories(root).into_iter();
    found.map(|(name, _)| name).collect()
}

/// Returns the names and the directories of the bare repositories below `root`.
pub(super) fn repositories(root: &Path) -> Vec<(String, PathBuf)> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().expect("it is there").is_dir() {
                continue;
            }
            let name = path.strip_prefix(root).expect("it is below");
            let name = name.to_str().expect("text");
            match name
                .strip_suffix(".git")
                .filter(|_| path.join("HEAD").exists())
            {
                Some(name) => found.push((name.to_owned(), path)),
                None => waiting.push(path),
            }
        }
    }
    found
}

/// Creates a repository whose refs are files, from a view whose packs are moved.
pub(super) fn convert(
    view: &Path,
    target: &Path,
    generation: &Generation,
    environment: &Environment,
) {
    let repository = Repository::open(view, environment).expect("a view is a repository");
    let format = format!("--object-format={}", repository.object_hash());
    let parent = target.parent().expect("a parent");
    let path = target.to_str().expect("text");
    git(parent, &["init", "-q", "--bare", &format, path]);
    let mut packed = String::from("# pack-refs with: sorted\n");
    for reference in repository.refs().all("refs/").expect("refs") {
        let name = reference.name.to_string();
        match reference.target {
            RefTarget::Object(id) => packed.push_str(&format!("{id} {name}\n")),
            RefTarget::Symbolic(to) => {
                let file = target.join(&name);
                fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
                fs::write(file, format!("ref: {to}\n")).expect("a file");
            }
        }
    }
    fs::write(target.join("packed-refs"), packed).expect("a file");
    let head = match repository.head().expect("it has a HEAD") {
        HeadValue::Branch { name, .. } | HeadValue::Unborn { name } => format!("ref: {name}\n"),
        HeadValue::Detached { id } => format!("{id}\n"),
    };
    fs::write(target.join("HEAD"), head).expect("a file");
    let config = target.join("config");
    let own = fs::read(&config).expect("a file");
    let all = [&own[..], &generation.manifest.config].concat();
    fs::write(&config, all).expect("a file");
    drop(repository);
    let (from, to) = (view.join("objects/pack"), target.join("objects/pack"));
    fs::create_dir_all(&to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::rename(entry.path(), to.join(entry.file_name())).expect("a pack");
    }
}

/// Runs git. The command must succeed.
pub(super) fn git(directory: &Path, arguments: &[&str]) {
    let output = isolated(directory, arguments, b"");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {text}");
}

/// Returns the refs of a repository, including `HEAD`.
pub(super) fn values_of(repository: &Repository) -> BTreeMap<String, StoredRefValue> {
    let mut values = BTreeMap::new();
    let direct = |id: ObjectId| {
        let peeled = repository.peel_tag(id).expect("it can be read");
        StoredRefValue::Direct {
            id,
            peeled: peeled.filter(|peeled| *peeled != id),
        }
    };
    let head = match repository.head().expect("it has a HEAD") {
        HeadValue::Branch { name, .. } | HeadValue::Unborn { name } => {
            StoredRefValue::Symbolic(name)
        }
        HeadValue::Detached { id } => direct(id),
    };
    values.insert("HEAD".to_owned(), head);
    for reference in repository.refs().all("refs/").expect("refs") {
        let value = match reference.target {
            RefTarget::Object(id) => direct(id),
            RefTarget::Symbolic(to) => StoredRefValue::Symbolic(to.into_inner()),
        };
        values.insert(reference.name.to_string(), value);
    }
    values
}
