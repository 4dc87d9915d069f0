//! `cargo xtask package --check`: installs each package in a root directory without git, and uses
//! it.

mod crates;
mod served;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::roots::{CURRENT, OLD, UnpackedRoot, output, skip};
use super::{PackageParts, SUMS};

/// The line that a script prints after its last check.
const COMPLETE: &str = "everything works";

/// Checks all packages in the directory `folder`, and returns the problems.
pub(super) fn all(parts: &PackageParts<'_>, folder: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    let mut add = |name: &str, result: Result<(), String>| match result {
        Ok(()) => println!("checked: {name}"),
        Err(problem) => problems.push(format!("{name}: {problem}")),
    };
    add("checksums", checksums(folder));
    add("packages for crates.io", crates::check(parts.root));
    add("tarball without an environment", tarball(parts, folder));
    if !may_change_root() {
        problems.extend(skip(
            "the root directories",
            "only root may use chroot and unshare",
        ));
        return problems;
    }
    add(
        "tarball on an old system",
        tarball_on_old_system(parts, folder),
    );
    add("Debian package", debian(parts, folder));
    let image = folder.join(format!("{}.oci.tar", parts.name()));
    if image.exists() {
        add("image", check_image(&image));
    }
    problems
}

/// Returns whether a program that checks packages, and that is not needed, can be run.
fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
}

fn may_change_root() -> bool {
    rustix::process::geteuid().is_root()
        && Command::new("unshare")
            .args(["--mount", "true"])
            .status()
            .is_ok_and(|status| status.success())
}

fn checksums(folder: &Path) -> Result<(), String> {
    let mut command = Command::new("sha256sum");
    output(
        command
            .args(["--check", "--quiet", SUMS])
            .current_dir(folder),
    )
    .map(drop)
}

/// Makes a repository with the installed git, in which programs without git are tried.
fn make_project(path: &Path) -> Result<(), String> {
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        let command = command.arg("-C").arg(path).args(arguments);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "A U Thor");
            command.env(format!("GIT_{role}_EMAIL"), "author@example.com");
        }
        output(command)
    };
    fs::create_dir_all(path).map_err(|error| error.to_string())?;
    git(&["init", "-q", "-b", "main"])?;
    fs::write(path.join("file"), "content\n").map_err(|error| error.to_string())?;
    git(&["add", "file"])?;
    git(&["commit", "-q", "-m", "Begin"])?;
    Ok(())
}

/// Unpacks the tarball into an empty directory and runs its programs without any variable, as the
/// user of this process.
fn tarball(parts: &PackageParts<'_>, folder: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = scratch.path();
    let mut tar = Command::new("tar");
    tar.arg("-xzf")
        .arg(tarball_path(parts, folder))
        .args(["--strip-components=1", "-C"])
        .arg(at);
    output(&mut tar)?;
    make_project(&at.join("project"))?;
    let program = at.join("bin/pronto");
    let run = |arguments: &[&str]| {
        output(
            Command::new(&program)
                .args(arguments)
                .current_dir(at)
                .env_clear(),
        )
    };
    let version = run(&["version"])?;
    expect(&version, &format!("pronto version {}\n", parts.version))?;
    run(&["clone", "-q", "project", "copy"])?;
    expect(
        &run(&["-C", "copy", "show-ref", "--head"])?.contains("HEAD"),
        &true,
    )?;
    run(&["serve", "--print-config"])?;
    served::clone_from(
        Command::new(&program).env_clear().current_dir(at),
        "project",
    )
}

fn expect<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{found:?} in place of {expected:?}")),
    }
}

fn tarball_path(parts: &PackageParts<'_>, folder: &Path) -> PathBuf {
    folder.join(format!("{}.tar.gz", parts.name()))
}

fn tarball_on_old_system(parts: &PackageParts<'_>, folder: &Path) -> Result<(), String> {
    let root = prepared(&[OLD.archive(parts.root, parts.time)?])?;
    copy(
        &tarball_path(parts, folder),
        &root.path().join("packages/pronto.tar.gz"),
    )?;
    let unpack = "tar -C /usr/local --strip-components=1 -xzf /packages/pronto.tar.gz";
    run(&root, &format!("{unpack}\n{}", script("/usr/local")))?;
    served::clone_from(&mut root.shell("cd /work; exec pronto \"$@\""), "project")?;
    let remove = include_str!("check/remove-tree.sh");
    let left = output(&mut root.shell(remove))?;
    expect(&left, &String::new())
}

fn debian(parts: &PackageParts<'_>, folder: &Path) -> Result<(), String> {
    let root = prepared(&[CURRENT.archive(parts.root, parts.time)?])?;
    let name = format!("pronto_{}_{}.deb", parts.version, parts.platform.debian);
    let package = folder.join(name);
    if is_installed("lintian") {
        let mut lintian = Command::new("lintian");
        lintian.args(["--allow-root", "--fail-on", "error,warning"]);
        output(lintian.arg(&package))?;
    }
    copy(&package, &root.path().join("packages/pronto.deb"))?;
    run(
        &root,
        &format!("dpkg -i /packages/pronto.deb\n{}", script("/usr")),
    )?;
    run(
        &root,
        &format!("{}\necho '{COMPLETE}'", include_str!("check/debian.sh")),
    )?;
    served::clone_from(&mut root.shell("cd /work; exec pronto \"$@\""), "project")?;
    // The server as the unit starts it.
    run(
        &root,
        &format!("{}\necho '{COMPLETE}'", include_str!("check/unit.sh")),
    )?;
    let as_user = "exec setpriv --reuid git --regid git --init-groups $(sed -n 's/^ExecStart=//p' \
                   /usr/lib/systemd/system/pronto-server.service)";
    served::clone_from(
        &mut root.shell(&format!("cd /srv/git; {as_user}")),
        "project",
    )?;
    let left = output(&mut root.shell(include_str!("check/purge.sh")))?;
    expect(&left, &String::new())
}

/// Unpacks archives and puts a repository to `/work/project`.
fn prepared(archives: &[PathBuf]) -> Result<UnpackedRoot, String> {
    let root = UnpackedRoot::unpack(archives)?;
    make_project(&root.path().join("work/project"))?;
    // Installers and runtimes of containers write this file.
    fs::write(root.path().join("etc/hosts"), "127.0.0.1 localhost\n")
        .map_err(|error| format!("cannot write /etc/hosts: {error}"))?;
    Ok(root)
}

/// Returns the script that uses the programs below `prefix`.
fn script(prefix: &str) -> String {
    let used = include_str!("check/used.sh");
    format!("prefix={prefix}\n{used}\necho '{COMPLETE}'")
}

fn run(root: &UnpackedRoot, script: &str) -> Result<(), String> {
    let printed = output(&mut root.shell(script))?;
    match printed.lines().last() {
        Some(COMPLETE) => Ok(()),
        _ => Err(format!("the script ended early\n{printed}")),
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let folder = to.parent().unwrap_or(to);
    let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(from, to));
    copied
        .map(drop)
        .map_err(|error| format!("cannot copy {}: {error}", from.display()))
}

/// Unpacks the layers of the image in the order of its manifest, and starts its entry point as its
/// user.
fn check_image(image: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    output(
        Command::new("tar")
            .arg("-xf")
            .arg(image)
            .arg("-C")
            .arg(scratch.path()),
    )?;
    let blob = |entry: &Value| {
        let digest = entry["digest"].as_str().unwrap_or_default();
        scratch.path().join("blobs").join(digest.replace(':', "/"))
    };
    let json = |path: &Path| -> Result<Value, String> {
        let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    };
    let index = json(&scratch.path().join("index.json"))?;
    let manifest = json(&blob(&index["manifests"][0]))?;
    let config = json(&blob(&manifest["config"]))?;
    let layers = manifest["layers"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let root = prepared(&layers.iter().map(blob).collect::<Vec<_>>())?;
    let words = |name: &str| {
        let list = config["config"][name]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        list.iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    output(&mut root.shell("cp -R /work/project /srv/git/ && chown -R git:git /srv/git/project"))?;
    let command =
        format!("{} {}", words("Entrypoint"), words("Cmd")).replace("0.0.0.0:8418", "127.0.0.1:0");
    let user = config["config"]["User"].as_str().unwrap_or_default();
    let start =
        format!("cd /srv/git; exec setpriv --reuid {user} --regid {user} --init-groups {command}");
    served::clone_from(&mut root.shell(&start), "project")?;
    // Independent readers of the format, where one is installed.
    if is_installed("skopeo") {
        let copy = scratch.path().join("copied");
        let (from, to) = (
            format!("oci-archive:{}", image.display()),
            format!("dir:{}", copy.display()),
        );
        output(Command::new("skopeo").args(["--insecure-policy", "copy", "-q", &from, &to]))?;
    }
    Ok(())
}
