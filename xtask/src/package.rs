//! `cargo xtask package [--program-dir DIRECTORY] [--target TRIPLE] [--output DIRECTORY] [--check]`:
//! writes the packages of a release, and with `--check` installs and uses each in a root directory
//! of its own.
//!
//! The bytes of the packages depend only on the source, the programs and the time of the commit
//! (`SOURCE_DATE_EPOCH`); those of the image also on the packages of Debian.

mod bill;
mod check;
mod contents;
mod deb;
mod image;
mod platform;
mod roots;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use bill::BillOfMaterials;
use contents::PLAIN;
use platform::Platform;
use tree::{PackageTree, gzip};

/// Writes the packages and returns the problems, one line each.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Vec<String> {
    let written =
        PackageArguments::parse(root, arguments).and_then(|arguments| package(root, &arguments));
    match written {
        Ok(problems) => problems,
        Err(problem) => vec![format!("package: {problem}")],
    }
}

/// The arguments of the command.
struct PackageArguments {
    program_dir: Option<PathBuf>,
    target: Option<Platform>,
    output: PathBuf,
    is_check: bool,
}

/// The parts of which packages consist.
struct PackageParts<'a> {
    root: &'a Path,
    platform: Platform,
    version: String,
    /// The time of all files, in seconds since 1970.
    time: u64,
    pronto: Vec<u8>,
    server: Vec<u8>,
    /// The licences of the crates of the programs.
    licences: String,
}

impl PackageParts<'_> {
    /// Reads a file of the source.
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let read = std::fs::read(self.root.join(path));
        read.map_err(|error| format!("cannot read {path}: {error}"))
    }

    fn text(&self, path: &str) -> Result<String, String> {
        String::from_utf8(self.read(path)?).map_err(|error| format!("{path}: {error}"))
    }

    /// Returns the name of the tarball without its extension, which is the directory in it.
    fn name(&self) -> String {
        format!("pronto-{}-{}", self.version, self.platform.name)
    }
}

impl PackageArguments {
    fn parse(root: &Path, arguments: &[&str]) -> Result<Self, String> {
        let mut parsed = PackageArguments {
            program_dir: None,
            target: None,
            output: crate::target(root).join("packages"),
            is_check: false,
        };
        let mut rest = arguments.iter();
        while let Some(&argument) = rest.next() {
            let mut value = || {
                rest.next()
                    .ok_or_else(|| format!("{argument} needs a value"))
            };
            match argument {
                "--program-dir" => parsed.program_dir = Some(PathBuf::from(value()?)),
                "--target" => parsed.target = Some(Platform::named(value()?)?),
                "--output" => parsed.output = PathBuf::from(value()?),
                "--check" => parsed.is_check = true,
                _ => return Err(format!("unknown argument '{argument}'")),
            }
        }
        Ok(parsed)
    }
}

fn package(root: &Path, arguments: &PackageArguments) -> Result<Vec<String>, String> {
    let own = Platform::own();
    let platform = arguments.target.map_or_else(|| own.clone(), Ok)?;
    let programs = match &arguments.program_dir {
        Some(directory) => directory.clone(),
        None => built(root, arguments.target)?,
    };
    let bill = BillOfMaterials::read(root, platform)?;
    let read = |name: &str| {
        let path = programs.join(name);
        std::fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let parts = PackageParts {
        root,
        platform,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        time: source_time(root)?,
        pronto: read("pronto")?,
        server: read("pronto-server")?,
        licences: bill.licences()?,
    };
    let mut packages = packages(&parts, &bill)?;
    let mut problems = Vec::new();
    match roots::image_base(root, &parts) {
        Ok(base) => packages.add(
            &format!("{}.oci.tar", parts.name()),
            image::build(&parts, &base)?,
        ),
        Err(reason) => problems.extend(roots::skip("the image", &reason)),
    }
    let files = write(&packages, &arguments.output)?;
    for file in &files {
        println!("{}", file.display());
    }
    if arguments.is_check {
        match own {
            Ok(own) if own.triple == platform.triple => {
                problems.extend(check::all(&parts, &arguments.output));
            }
            _ => problems.extend(roots::skip(
                "--check",
                "the programs do not run on this machine",
            )),
        }
    }
    Ok(problems)
}

/// Builds the optimized programs and returns their directory.
fn built(root: &Path, target: Option<Platform>) -> Result<PathBuf, String> {
    let Some(platform) = target else {
        crate::build_release(root)?;
        return Ok(crate::target(root).join("release"));
    };
    let is_own = Platform::own().is_ok_and(|own| own.triple == platform.triple);
    let variable = platform.triple.to_uppercase().replace('-', "_");
    let linker = format!("target.{}.linker='{}'", platform.triple, platform.linker);
    let mut arguments = vec!["--target", platform.triple];
    if !is_own && std::env::var_os(format!("CARGO_TARGET_{variable}_LINKER")).is_none() {
        arguments.extend(["--config", &linker]);
    }
    crate::build_released(root, &arguments)?;
    Ok(crate::target(root).join(platform.triple).join("release"))
}

/// Returns the Debian package, the tarball and the bill of materials, by name.
fn packages(parts: &PackageParts<'_>, bill: &BillOfMaterials) -> Result<PackageTree, String> {
    let (version, platform) = (&parts.version, parts.platform);
    let mut packages = PackageTree::default();
    packages.add(
        &format!("pronto_{version}_{}.deb", platform.debian),
        deb::build(parts)?,
    );
    let name = parts.name();
    packages.add(
        &format!("{name}.tar.gz"),
        gzip(&plain(parts)?.to_tar(&name, parts.time)?)?,
    );
    packages.add(
        &format!("{name}.cdx.json"),
        bill.to_cyclonedx(version, parts.time)?,
    );
    Ok(packages)
}

/// Returns the files of the tarball.
fn plain(parts: &PackageParts<'_>) -> Result<PackageTree, String> {
    let mut tree = PackageTree::default();
    contents::add(&mut tree, &PLAIN, parts)?;
    for (name, from) in [
        ("INSTALL.md", "contrib/packages/INSTALL.md"),
        ("LICENSE-MIT", "LICENSE-MIT"),
        ("LICENSE-APACHE", "LICENSE-APACHE"),
        ("copyright", "contrib/packages/copyright"),
    ] {
        tree.add(&format!("share/doc/pronto/{name}"), parts.read(from)?);
    }
    Ok(tree)
}

/// Writes the packages and their checksums into a directory, from which packages of other versions
/// are removed. Returns the paths.
fn write(packages: &PackageTree, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error| format!("cannot write to {}: {error}", folder.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("pronto") || name == SUMS {
            std::fs::remove_file(&path).map_err(failed)?;
        }
    }
    let mut sums = String::new();
    let mut written = Vec::new();
    for (name, entry) in packages.entries() {
        if let tree::PackageEntry::File(content, _) = entry {
            std::fs::write(folder.join(name), content).map_err(failed)?;
            sums.push_str(&format!("{}  {name}\n", sha256(content)));
            written.push(folder.join(name));
        }
    }
    std::fs::write(folder.join(SUMS), sums).map_err(failed)?;
    written.push(folder.join(SUMS));
    Ok(written)
}

const SUMS: &str = "SHA256SUMS";

/// Returns the time of the source: `SOURCE_DATE_EPOCH`, or the time of the commit.
fn source_time(root: &Path) -> Result<u64, String> {
    let text = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(text) => text,
        Err(_) => {
            let mut git = Command::new("git");
            let git = git.args(["log", "-1", "--format=%ct"]).current_dir(root);
            let output = git
                .output()
                .map_err(|error| format!("cannot run git: {error}"))?;
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
    };
    let number = text.trim().parse();
    number.map_err(|_| "the source has no commit: set SOURCE_DATE_EPOCH".to_owned())
}

fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
