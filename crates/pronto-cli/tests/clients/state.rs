//! The state of a repository, as git sees it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Output;

use test_support::git::isolated;

/// The objects, the refs and the shallow boundary of a repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) refs: BTreeSet<String>,
    objects: BTreeSet<String>,
    shallow: BTreeSet<String>,
}

impl State {
    /// Reads the state of a repository, which must be valid.
    pub(crate) fn read(directory: &Path) -> Result<Self, String> {
        check(directory)?;
        let format = "--format=%(refname) %(objectname) %(symref)";
        let mut refs = lines(directory, &["for-each-ref", format])?;
        let head = lines(directory, &["rev-parse", "--symbolic-full-name", "HEAD"])?;
        refs.extend(head.into_iter().map(|name| format!("HEAD {name}")));
        let objects = [
            "cat-file",
            "--batch-all-objects",
            "--batch-check",
            "--unordered",
        ];
        let git = lines(directory, &["rev-parse", "--absolute-git-dir"])?;
        let git = git.first().ok_or("there is no directory")?;
        let shallow = std::fs::read_to_string(Path::new(git).join("shallow")).unwrap_or_default();
        Ok(State {
            refs,
            objects: lines(directory, &objects)?,
            shallow: shallow.lines().map(str::to_owned).collect(),
        })
    }

    /// Compares the state with the one that results from git's server.
    pub(crate) fn compare(&self, reference: &State) -> Result<(), String> {
        let parts = [
            ("refs", &self.refs, &reference.refs),
            ("objects", &self.objects, &reference.objects),
            ("shallow commits", &self.shallow, &reference.shallow),
        ];
        for (name, ours, theirs) in parts {
            if ours != theirs {
                let more: Vec<_> = ours.difference(theirs).take(5).collect();
                let fewer: Vec<_> = theirs.difference(ours).take(5).collect();
                let counts = (ours.len(), theirs.len());
                return Err(format!(
                    "{name} differ {counts:?}: pronto {more:?}, git {fewer:?}"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether a commit lacks its parents.
    pub(crate) fn is_shallow(&self) -> bool {
        !self.shallow.is_empty()
    }

    /// Compares the remote-tracking branches and tags of a clone with the refs of its server.
    pub(crate) fn follows(&self, server: &State) -> Result<(), String> {
        for line in &server.refs {
            let wanted = match line.strip_prefix("refs/heads/") {
                // A client stores a symref of the server as an ordinary ref.
                Some(rest) => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    format!("refs/remotes/origin/{} {} ", words[0], words[1])
                }
                None if line.starts_with("refs/tags/") => line.clone(),
                None => continue,
            };
            if !self.refs.contains(&wanted) {
                return Err(format!("the clone lacks '{wanted}'"));
            }
        }
        Ok(())
    }
}

/// Checks a repository with `git fsck`.
pub(crate) fn check(directory: &Path) -> Result<(), String> {
    run(directory, &["fsck", "--full", "--strict", "--no-progress"]).map(|_| ())
}

fn lines(directory: &Path, arguments: &[&str]) -> Result<BTreeSet<String>, String> {
    let output = run(directory, arguments)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().map(str::to_owned).collect())
}

/// Runs git in a repository and fails unless it succeeds.
pub(crate) fn run(directory: &Path, arguments: &[&str]) -> Result<Output, String> {
    let output = isolated(directory, arguments, b"");
    match output.status.success() {
        true => Ok(output),
        false => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(format!(
                "git {} in {}: {text}",
                arguments[0],
                directory.display()
            ))
        }
    }
}
