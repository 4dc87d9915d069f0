//! The programs of measurements that compare only pronto and several versions of git.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A measured program.
#[derive(Clone, Debug)]
pub struct MeasuredProgram {
    /// `pronto`, or `git` with its version.
    pub name: String,
    /// The path of the program.
    pub program: PathBuf,
    /// Whether the program is pronto, with which the others are compared.
    pub is_pronto: bool,
}

/// Returns `pronto` (by default the program that was built beside this program), followed by each
/// of `gits`.
///
/// # Errors
/// Fails if a program does not exist, or if a git does not print its version.
pub fn peers(pronto: Option<&Path>, gits: &[PathBuf]) -> Result<Vec<MeasuredProgram>, String> {
    let ours = match pronto {
        Some(path) => path.to_owned(),
        None => built("pronto")?,
    };
    let mut peers = vec![MeasuredProgram {
        name: "pronto".to_owned(),
        program: ours
            .canonicalize()
            .map_err(|error| format!("{}: {error}", ours.display()))?,
        is_pronto: true,
    }];
    for git in gits {
        peers.push(MeasuredProgram {
            name: format!("git {}", version(git)?),
            program: git.clone(),
            is_pronto: false,
        });
    }
    Ok(peers)
}

/// Returns the path of a file that was built beside this program.
///
/// # Errors
/// Fails if there is no such file.
pub fn built(name: &str) -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let path = own.with_file_name(name);
    match path.exists() {
        true => Ok(path),
        false => Err(format!(
            "{} is missing: cargo build --release --workspace",
            path.display()
        )),
    }
}

fn version(git: &Path) -> Result<String, String> {
    let output = Command::new(git)
        .arg("version")
        .output()
        .map_err(|error| format!("{}: {error}", git.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.trim().rsplit(' ').next().unwrap_or_default();
    Ok(number.to_owned())
}
