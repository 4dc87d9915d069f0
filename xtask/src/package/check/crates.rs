//! The packages for crates.io: all can be made, and none needs a file from outside of its crate.

use std::path::Path;

use super::super::roots::output;

/// Files that the crate of the programs needs, besides its sources.
const NEEDED: &[&str] = &[
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "build.rs",
    "man/pronto-clone.1",
    "man/pronto.1",
    "settings.tsv",
    "start-order.txt",
];

/// Makes the packages, without building them.
///
/// # Errors
/// Fails if cargo fails, or if a file is missing.
pub(super) fn check(root: &Path) -> Result<(), String> {
    let package = |arguments: &[&str]| {
        let mut cargo = crate::cargo();
        let cargo = cargo
            .args(["package", "--locked", "--allow-dirty"])
            .args(arguments);
        output(cargo.current_dir(root))
    };
    let names = published(root)?;
    let mut arguments = vec!["--no-verify", "--quiet"];
    for name in &names {
        arguments.extend(["--package", name]);
    }
    package(&arguments)?;
    let listed = package(&["--list", "--package", "pronto-cli"])?;
    let missing = NEEDED
        .iter()
        .find(|name| !listed.lines().any(|line| line == **name));
    match missing {
        Some(name) => Err(format!("pronto-cli lacks {name}")),
        None => Ok(()),
    }
}

/// Returns the names of the crates that are published.
fn published(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("crates");
    let failed = |error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let name = entry
            .map_err(failed)?
            .file_name()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("pronto") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
