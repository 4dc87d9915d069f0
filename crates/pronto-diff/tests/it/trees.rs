//! Two trees of files, written by git.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with a mode and a content. The content of a symbolic link is its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestFile {
    pub(crate) mode: u32,
    pub(crate) content: Vec<u8>,
}

/// The files of a tree by path.
pub(crate) type TestTree = BTreeMap<String, TestFile>;

/// A repository with two trees.
pub(crate) struct TreePair {
    directory: tempfile::TempDir,
    git: PathBuf,
    ids: [String; 2],
}

impl TreePair {
    pub(crate) fn new(git: &Path, trees: [&TestTree; 2]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut pair = TreePair {
            directory,
            git: git.to_owned(),
            ids: Default::default(),
        };
        pair.run(&["init", "-q", "."]);
        pair.ids = trees.map(|tree| {
            pair.write(tree);
            pair.run(&["add", "-A", "."]);
            pair.run(&["write-tree"]).trim_end().to_owned()
        });
        pair
    }

    /// Replaces all files of the worktree.
    fn write(&self, tree: &TestTree) {
        let root = self.directory.path();
        for entry in std::fs::read_dir(root).expect("a directory") {
            let path = entry.expect("an entry").path();
            match path.is_dir() && !path.is_symlink() {
                true if path.ends_with(".git") => {}
                true => std::fs::remove_dir_all(path).expect("removed"),
                false => std::fs::remove_file(path).expect("removed"),
            }
        }
        for (path, file) in tree {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().expect("it is below")).expect("a directory");
            if file.mode == 0o120_000 {
                let target = String::from_utf8(file.content.clone()).expect("a text");
                symlink(target, &path).expect("a link");
                continue;
            }
            std::fs::write(&path, &file.content).expect("a file");
            let permissions = PermissionsExt::from_mode(file.mode & 0o777);
            std::fs::set_permissions(&path, permissions).expect("permissions");
        }
    }

    /// Returns the output of `git diff-tree` with `options` for the two trees.
    pub(crate) fn diff(&self, options: &[&str]) -> String {
        let mut arguments = vec!["diff-tree", "-r"];
        arguments.extend(options);
        arguments.extend(self.ids.iter().map(String::as_str));
        self.run(&arguments)
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(&self.git)
            .args(["-c", "core.autocrlf=false", "-c", "core.safecrlf=false"])
            .args(arguments)
            .current_dir(&self.directory)
            .env("HOME", self.directory.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .expect("git can be started");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {error}");
        String::from_utf8(output.stdout).expect("a text")
    }
}
