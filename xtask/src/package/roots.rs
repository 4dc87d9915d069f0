//! Root directories of Debian, made by `mmdebstrap`: the first layer of the image, and systems in
//! which packages are tried.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use super::PackageParts;
use super::platform::Platform;

/// A root directory: a release of Debian with packages.
pub(super) struct RootRecipe {
    /// The name of its archive.
    name: &'static str,
    release: &'static str,
    packages: &'static str,
    options: &'static [&'static str],
}

/// The first layer of the image, as `contrib/Containerfile` makes it.
const IMAGE: RootRecipe = RootRecipe {
    name: "image",
    release: "bookworm",
    packages: "git,ca-certificates,passwd",
    options: &[
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--customize-hook=chroot \"$1\" useradd --create-home --uid 1000 git",
        "--customize-hook=install -d -o 1000 -g 1000 \"$1/srv/git\"",
    ],
};

/// The release of Debian for which the package is made, without git.
pub(super) const CURRENT: RootRecipe = RootRecipe {
    name: "current",
    release: "bookworm",
    packages: "man-db,bash-completion,zsh,fish,passwd,systemd",
    options: &[],
};

/// The oldest system on which the tarball must run: glibc 2.31 of 2020, and nothing else.
pub(super) const OLD: RootRecipe = RootRecipe {
    name: "old",
    release: "bullseye",
    packages: "libc-bin",
    options: &[],
};

/// Returns the archive of the first layer of the image.
///
/// # Errors
/// Fails with the reason if it cannot be made here.
pub(super) fn image_base(root: &Path, parts: &PackageParts<'_>) -> Result<Vec<u8>, String> {
    match Platform::own() {
        Ok(own) if own.triple == parts.platform.triple => {}
        _ => return Err("an image is made on its own platform".to_owned()),
    }
    let path = IMAGE.archive(root, parts.time)?;
    std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Reports a part that is left out. Returns the problem that this is in CI.
pub(super) fn skip(part: &str, reason: &str) -> Option<String> {
    println!("SKIPPED: {part}: {reason}");
    let is_problem = !test_support::may_skip();
    is_problem.then(|| format!("package: CI may not skip {part}: {reason}"))
}

impl RootRecipe {
    /// Makes the archive of the root directory, unless it is there, and returns its path. Packages
    /// come from the mirror of Debian; apt checks their signatures.
    ///
    /// # Errors
    /// Fails with the reason if it cannot be made here.
    pub(super) fn archive(&self, root: &Path, time: u64) -> Result<PathBuf, String> {
        let folder = crate::target(root).join("package-roots");
        let path = folder.join(format!("{}.tar", self.name));
        if path.exists() {
            return Ok(path);
        }
        let failed = |error| format!("cannot write to {}: {error}", folder.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let partial = folder.join(format!("{}.partial.tar", self.name));
        let mut command = Command::new("mmdebstrap");
        command
            .args(["--quiet", "--variant=essential"])
            .arg(format!("--include={}", self.packages))
            .args(self.options)
            .args([Path::new(self.release), partial.as_path()])
            .arg("http://deb.debian.org/debian")
            .env("SOURCE_DATE_EPOCH", time.to_string());
        let advice = "'apt-get install mmdebstrap' installs it (Debian)";
        let made = command.output();
        let made = made.map_err(|error| format!("cannot run mmdebstrap: {error}: {advice}"))?;
        succeeded("mmdebstrap", &made)?;
        std::fs::rename(&partial, &path).map_err(failed)?;
        Ok(path)
    }
}

/// A root directory that is unpacked, until it is dropped.
pub(super) struct UnpackedRoot {
    directory: tempfile::TempDir,
}

impl UnpackedRoot {
    /// Unpacks archives above each other. Needs the rights of root.
    ///
    /// # Errors
    /// Fails if tar fails.
    pub(super) fn unpack(archives: &[PathBuf]) -> Result<Self, String> {
        let directory = tempfile::Builder::new().prefix("pronto-root-").tempdir();
        let directory = directory.map_err(|error| format!("cannot make a directory: {error}"))?;
        for archive in archives {
            let mut tar = Command::new("tar");
            tar.args(["--numeric-owner", "-xpf"])
                .arg(archive)
                .arg("-C")
                .arg(directory.path());
            output(&mut tar)?;
        }
        let root = UnpackedRoot { directory };
        std::fs::create_dir_all(root.path().join("proc")).map_err(|error| error.to_string())?;
        // Users other than root enter it.
        output(Command::new("chmod").arg("755").arg(root.path()))?;
        Ok(root)
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns a command that runs a shell script in the root directory, with processes and
    /// mounts of its own, and without the environment of this process.
    pub(super) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--pid", "--fork", "--kill-child"])
            .arg(format!(
                "--mount-proc={}",
                self.path().join("proc").display()
            ))
            .arg("chroot")
            .arg(self.path())
            .args(["/bin/sh", "-eu", "-c", script])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("TERM", "dumb")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }
}

/// A process that ends when it is dropped.
pub(super) struct StoppedChild(pub(super) Child);

impl Drop for StoppedChild {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command and returns its standard output.
///
/// # Errors
/// Fails with the output of the command if it fails.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    succeeded(&name, &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn succeeded(name: &str, output: &Output) -> Result<(), String> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{name} failed with {}\n{}{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr)
        )),
    }
}
