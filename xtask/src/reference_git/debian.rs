//! Downloads the source package of git from Debian with apt, which checks its signatures.
//!
//! apt runs with a private state directory. Its only source is the suite sid of the mirror in the
//! machine's own configuration, so that nothing on the machine changes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// The suite with the newest releases.
const SUITE: &str = "sid";

/// The file of Debian's keys, which the package `debian-archive-keyring` installs.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A source tree, which is removed when the value is dropped.
#[derive(Debug)]
pub(super) struct SourceTree {
    scratch: TempDir,
}

impl SourceTree {
    /// Returns the top directory of the tree.
    pub(super) fn path(&self) -> PathBuf {
        self.scratch.path().join("tree")
    }
}

/// Downloads and extracts the source of the newest git into a temporary directory in `cache`.
///
/// # Errors
/// Fails if apt has no mirror of Debian configured, or if a program fails.
pub(super) fn source(cache: &Path) -> Result<SourceTree, String> {
    let mirror = mirror()?;
    eprintln!("getting the source package of git from Debian ({SUITE})");
    let scratch = tempfile::tempdir_in(cache).map_err(|error| {
        format!(
            "cannot create a directory in '{}': {error}",
            cache.display()
        )
    })?;
    let top = scratch.path();
    let prepared = || {
        for directory in ["lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(top.join(directory))?;
        }
        // apt downloads as a user of its own, which needs access.
        std::fs::set_permissions(top, std::fs::Permissions::from_mode(0o755))?;
        let keys = match Path::new(KEYS).is_file() {
            true => format!("[signed-by={KEYS}] "),
            false => String::new(),
        };
        let line = format!("deb-src {keys}{mirror} {SUITE} main\n");
        std::fs::write(top.join("sources.list"), line)
    };
    prepared().map_err(|error| format!("cannot prepare '{}': {error}", top.display()))?;
    super::succeed(apt(top).args(["-q", "update"]).stdout(Stdio::null()))?;
    super::succeed(
        apt(top)
            .args(["-q", "source", "--download-only", "git"])
            .stdout(Stdio::null()),
    )?;
    let description = description(top)?;
    // apt has checked the package, so the key of the package's maintainer is not needed.
    super::succeed(
        Command::new("dpkg-source")
            .args(["--no-check", "--extract"])
            .arg(description)
            .arg("tree")
            .current_dir(top)
            .stdin(Stdio::null())
            .stdout(Stdio::null()),
    )?;
    Ok(SourceTree { scratch })
}

/// Returns `apt-get` with its state in `top`, and with only the package sources of that directory.
fn apt(top: &Path) -> Command {
    let mut command = Command::new("apt-get");
    let options = [
        ("Dir::State::Lists", "lists"),
        ("Dir::Cache", "cache"),
        ("Dir::Etc::SourceList", "sources.list"),
        ("Dir::Etc::SourceParts", "no-parts"),
    ];
    for (option, name) in options {
        command.arg(format!("-o{option}={}", top.join(name).display()));
    }
    command.current_dir(top).stdin(Stdio::null());
    command
}

/// Returns the `.dsc` file that describes the source package.
fn description(top: &Path) -> Result<PathBuf, String> {
    let failed = |error| format!("cannot read '{}': {error}", top.display());
    for entry in std::fs::read_dir(top).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "dsc") {
            return Ok(path);
        }
    }
    Err("apt-get got no source package of git".to_owned())
}

/// Returns the URL of the Debian mirror in the machine's apt sources.
fn mirror() -> Result<String, String> {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(LABEL) $(SITE)"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run 'apt-get': {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    mirror_in(&text).ok_or_else(|| {
        "apt's sources name no mirror of Debian ('apt-get update' may be needed); \
         '--source DIRECTORY' builds a source tree of git"
            .to_owned()
    })
}

/// Returns the URL in the first line `LABEL URL` of Debian itself, not of its security updates.
fn mirror_in(text: &str) -> Option<String> {
    let mut lines = text.lines().filter_map(|line| line.split_once(' '));
    let (_, address) = lines.find(|(label, address)| *label == "Debian" && !address.is_empty())?;
    Some(address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_that_of_debian_itself() {
        let text = "Debian-Security http://a.example/security\nOther http://b.example\n\
                    Debian http://c.example/debian\nDebian http://d.example\n";
        assert_eq!(mirror_in(text).as_deref(), Some("http://c.example/debian"));
        assert_eq!(mirror_in(" http://a.example\n"), None);
    }
}
