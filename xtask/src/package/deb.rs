//! The Debian package: an `ar` archive of the control files and of the installed files, in the
//! format of deb(5).

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use md5::{Digest as _, Md5};

use super::contents::{self, DEBIAN};
use super::platform::needed_glibc;
use super::tree::{PackageEntry, PackageTree, gzip};
use super::{PackageParts, hex};

/// The scripts that dpkg runs, from `contrib/packages`.
const SCRIPTS: &[&str] = &["postinst", "postrm", "prerm"];

/// Returns the bytes of the package.
///
/// # Errors
/// Fails if a file of the source cannot be read.
pub(super) fn build(parts: &PackageParts<'_>) -> Result<Vec<u8>, String> {
    let tree = tree(parts)?;
    let mut control = PackageTree::default();
    control.add("control", control_file(&tree, parts));
    control.add("md5sums", checksums(&tree));
    for name in SCRIPTS {
        control.add_program(name, parts.read(&format!("contrib/packages/{name}"))?);
    }
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.to_tar(".", parts.time)?)?),
        ("data.tar.gz", gzip(&tree.to_tar(".", parts.time)?)?),
    ];
    let mut archive = b"!<arch>\n".to_vec();
    for (name, content) in members {
        let (time, length) = (parts.time, content.len());
        let header = format!(
            "{name:<16}{time:<12}{:<6}{:<6}{:<8}{length:<10}`\n",
            0, 0, "100644"
        );
        archive.extend_from_slice(header.as_bytes());
        archive.extend_from_slice(&content);
        if length % 2 == 1 {
            archive.push(b'\n');
        }
    }
    Ok(archive)
}

/// Returns the installed files.
pub(super) fn tree(parts: &PackageParts<'_>) -> Result<PackageTree, String> {
    let mut tree = PackageTree::default();
    contents::add(&mut tree, &DEBIAN, parts)?;
    let folder = "usr/share/doc/pronto";
    let copyright = parts.read("contrib/packages/copyright")?;
    tree.add(&format!("{folder}/copyright"), copyright);
    let readme = parts.read("contrib/packages/README.Debian")?;
    tree.add(&format!("{folder}/README.Debian"), readme);
    let overrides = parts.read("contrib/packages/lintian-overrides")?;
    tree.add("usr/share/lintian/overrides/pronto", overrides);
    let changes = gzip(changelog(parts)?.as_bytes())?;
    tree.add(&format!("{folder}/changelog.gz"), changes);
    Ok(tree)
}

/// Returns the text of the file `control`.
pub(super) fn control_file(tree: &PackageTree, parts: &PackageParts<'_>) -> String {
    let newest = [&parts.pronto, &parts.server];
    let newest = newest.map(|program| needed_glibc(program));
    let newest = newest.into_iter().flatten().max_by_key(|version| {
        let minor = version
            .split_once('.')
            .map(|(_, minor)| minor.parse::<u32>());
        minor.and_then(Result::ok)
    });
    let depends = newest.map(|version| format!("Depends: libc6 (>= {version})\n"));
    format!(
        "Package: pronto\nVersion: {}\nArchitecture: {}\nMaintainer: {}\nInstalled-Size: {}\n{}\
         Recommends: git, ca-certificates\nSuggests: bash-completion\nSection: vcs\nPriority: optional\n\
         Description: fast Git-compatible version control engine and server\n \
         pronto works on ordinary Git repositories, speaks Git's protocols and takes\n \
         Git's command lines. It is built for large repositories, slow file systems and\n \
         many processes in one repository. Commands that it lacks are handed to git.\n .\n \
         The package contains the server 'pronto serve' for HTTP, SSH and git://.\n",
        parts.version,
        parts.platform.debian,
        maintainer(),
        installed_kibibytes(tree),
        depends.unwrap_or_default(),
    )
}

/// Returns the name and the address of the maintainer, in the variables that Debian's tools use.
fn maintainer() -> String {
    let variable = |name, default: &str| std::env::var(name).unwrap_or_else(|_| default.to_owned());
    let name = variable("DEBFULLNAME", "The pronto contributors");
    let address = variable("DEBEMAIL", "pronto@localhost.invalid");
    format!("{name} <{address}>")
}

/// Returns the size as dpkg counts it: each file rounded up, and one for each directory or link.
fn installed_kibibytes(tree: &PackageTree) -> usize {
    let sizes = tree.entries().map(|(_, entry)| match entry {
        PackageEntry::File(content, _) => content.len().div_ceil(1024),
        PackageEntry::Link(_) => 1,
    });
    sizes.sum::<usize>() + tree.directories().len()
}

fn checksums(tree: &PackageTree) -> String {
    let mut text = String::new();
    for (path, entry) in tree.entries() {
        if let PackageEntry::File(content, _) = entry {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}  {path}", hex(&Md5::digest(content)));
        }
    }
    text
}

/// Returns the changelog in Debian's format, which refers to the changelog of pronto.
fn changelog(parts: &PackageParts<'_>) -> Result<String, String> {
    let seconds = i64::try_from(parts.time).map_err(|error| error.to_string())?;
    let time = Timestamp::from_second(seconds).map_err(|error| error.to_string())?;
    let time = time
        .to_zoned(TimeZone::UTC)
        .strftime("%a, %d %b %Y %H:%M:%S +0000");
    Ok(format!(
        "pronto ({}) unstable; urgency=medium\n\n  * The changes are in CHANGELOG.md.gz.\n\n -- {}  {time}\n",
        parts.version,
        maintainer()
    ))
}
