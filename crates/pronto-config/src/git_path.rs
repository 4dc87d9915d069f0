//! Paths of repository files, which depend on linked worktrees and environment variables.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use crate::{Config, Environment, RepositoryLayout, path};

/// Directories and files in the common directory of all worktrees.
const SHARED_DIRECTORIES: &[&str] = &[
    "branches",
    "common",
    "hooks",
    "info",
    "logs",
    "lost-found",
    "objects",
    "refs",
    "remotes",
    "worktrees",
    "rr-cache",
    "svn",
];
const SHARED_FILES: &[&str] = &["config", "gc.pid", "packed-refs", "shallow"];
/// Paths inside of the shared directories that are separate for each worktree.
const OWN: &[&str] = &[
    "info/sparse-checkout",
    "logs/HEAD",
    "logs/refs/bisect",
    "logs/refs/rewritten",
    "logs/refs/worktree",
    "refs/bisect",
    "refs/rewritten",
    "refs/worktree",
];

/// Returns whether `name` is in the common directory if the repository has linked worktrees.
pub fn is_shared(name: &str) -> bool {
    let is_or_below = |base: &str| {
        let rest = name.strip_prefix(base);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if OWN.iter().any(|own| is_or_below(own)) {
        return false;
    }
    let plain = name.strip_suffix(".lock").unwrap_or(name);
    SHARED_FILES.contains(&plain) || SHARED_DIRECTORIES.iter().any(|shared| is_or_below(shared))
}

impl RepositoryLayout {
    /// Returns the directory of loose objects and packs (`GIT_OBJECT_DIRECTORY`).
    pub fn objects_dir(&self, environment: &Environment) -> PathBuf {
        match environment.path("GIT_OBJECT_DIRECTORY") {
            Some(path) => environment.resolve(path),
            None => self.common_dir.join("objects"),
        }
    }

    /// Returns the path of the index (`GIT_INDEX_FILE`).
    pub fn index_path(&self, environment: &Environment) -> PathBuf {
        let named = environment.file("GIT_INDEX_FILE");
        named.unwrap_or_else(|| self.git_dir.join("index"))
    }

    /// Returns the path of the file that lists the shallow boundary commits (`GIT_SHALLOW_FILE`).
    pub fn shallow_path(&self, environment: &Environment) -> PathBuf {
        let named = environment.file("GIT_SHALLOW_FILE");
        named.unwrap_or_else(|| self.common_dir.join("shallow"))
    }
}

/// Returns the path of the repository file `name` (`index`, `hooks/x`, `info/exclude`).
pub fn git_path(
    layout: &RepositoryLayout,
    config: &Config,
    environment: &Environment,
    name: &str,
) -> PathBuf {
    let below = |base: &str| {
        let rest = name.strip_prefix(base)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').to_owned())
    };
    let join = |base: PathBuf, rest: String| {
        if rest.is_empty() {
            base
        } else {
            base.join(rest)
        }
    };
    if name == "index" {
        return layout.index_path(environment);
    }
    if name == "info/grafts"
        && let Some(file) = environment.file("GIT_GRAFT_FILE")
    {
        return file;
    }
    if let Some(rest) = below("objects") {
        return join(layout.objects_dir(environment), rest);
    }
    if let Some(rest) = below("hooks")
        && let Ok(Some(hooks)) = config.path("core.hookspath", environment.home())
    {
        return join(environment.resolve(hooks), rest);
    }
    let base = if is_shared(name) {
        &layout.common_dir
    } else {
        &layout.git_dir
    };
    join(base.clone(), name.trim_start_matches('/').to_owned())
}

/// Returns the path of the repository file `name` in Git's spelling (`git rev-parse --git-path`):
/// relative to the working directory, and without normalisation of `name` and of the variables.
pub fn display_git_path(
    layout: &RepositoryLayout,
    config: &Config,
    environment: &Environment,
    name: &str,
) -> BString {
    let variable = |name: &str| environment.bytes(name).map(BString::from);
    let own = with_slash(&layout.display_git_dir);
    let common = match layout.common_dir == layout.git_dir {
        true => own.clone(),
        false => with_slash(&layout.common_dir),
    };
    let below = |base: &str| {
        let rest = name.strip_prefix(base)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    };
    let replaced = |base: BString, rest: &str| -> BString {
        [base.as_slice(), rest.as_bytes()].concat().into()
    };
    let grafts = below("info").map(|rest| rest.trim_start_matches('/')) == Some("grafts");
    let path = if grafts {
        variable("GIT_GRAFT_FILE").unwrap_or_else(|| replaced(common, "info/grafts"))
    } else if name == "index" {
        variable("GIT_INDEX_FILE").unwrap_or_else(|| replaced(own, name))
    } else if let Some(rest) = below("objects") {
        let objects = variable("GIT_OBJECT_DIRECTORY");
        replaced(objects.unwrap_or_else(|| replaced(common, "objects")), rest)
    } else if let Some(rest) = below("hooks")
        && let Ok(Some(hooks)) = config.path("core.hookspath", environment.home())
    {
        replaced(path::as_bytes(&hooks).to_owned(), rest)
    } else if is_shared(name) {
        replaced(common, name)
    } else {
        replaced(own, name)
    };
    match path.strip_prefix(b"./") {
        Some(rest) => rest.trim_start_with(|c| c == '/').into(),
        None => path,
    }
}

/// Returns `directory` with a trailing slash.
fn with_slash(directory: &Path) -> BString {
    let mut text = path::as_bytes(directory).to_owned();
    if !text.is_empty() && !text.ends_with(b"/") {
        text.push(b'/');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::is_shared;

    #[test]
    fn linked_work_trees_share_all_but_their_own_state() {
        for name in [
            "config",
            "packed-refs.lock",
            "refs/heads/x",
            "objects",
            "logs/refs/heads",
        ] {
            assert!(is_shared(name), "{name}");
        }
        for name in [
            "HEAD",
            "index",
            "refs/bisect/bad",
            "logs/HEAD",
            "info/sparse-checkout",
        ] {
            assert!(!is_shared(name), "{name}");
        }
    }
}
