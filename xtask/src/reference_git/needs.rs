//! The programs and libraries that a build of git needs.

use std::process::{Command, Stdio};

use test_support::{on_path, output_if_installed};

/// The Debian packages that are needed to build the reference git, besides a C compiler and `make`.
const PACKAGES: [&str; 6] = [
    "dpkg-dev",
    "gettext",
    "libcurl4-openssl-dev",
    "libexpat1-dev",
    "libssl-dev",
    "zlib1g-dev",
];

/// The programs that a build needs on every system.
const PROGRAMS: [&str; 4] = ["make", "cc", "msgfmt", "perl"];

/// Checks that the programs and packages are installed. `is_debian` is whether the source is from
/// Debian.
///
/// # Errors
/// Fails with the names of the missing programs or packages.
pub(super) fn check(is_debian: bool) -> Result<(), String> {
    let lacks = |name: &&&str| !on_path(name).is_absolute();
    if is_debian && lacks(&&"apt-get") {
        return Err(
            "there is no apt-get: '--source DIRECTORY' builds a source tree of git".to_owned(),
        );
    }
    let missing: Vec<&str> = PROGRAMS.iter().filter(lacks).copied().collect();
    if !missing.is_empty() {
        return Err(format!("these programs are missing: {}", missing.join(" ")));
    }
    let missing = missing_packages(&PACKAGES);
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "these packages are missing: {0}; 'apt-get install {0}' or '.ci/run install' installs them",
        missing.join(" ")
    ))
}

/// Returns the packages that are not installed; empty if there is no `dpkg-query`.
fn missing_packages<'a>(packages: &[&'a str]) -> Vec<&'a str> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["--show", "--showformat=${Package} ${db:Status-Status}\\n"])
        .args(packages)
        .stderr(Stdio::null());
    let Some(output) = output_if_installed(&mut query) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let is_installed = |package: &str| {
        text.lines()
            .any(|line| line.split_once(' ') == Some((package, "installed")))
    };
    let missing = packages.iter().filter(|package| !is_installed(package));
    missing.copied().collect()
}
