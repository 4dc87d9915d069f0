//! The programs to compare where only pronto and some gits take part, by path and name.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that is measured.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `pronto`, or `git` with its version.
    pub name: String,
    /// The program.
    pub program: PathBuf,
    /// Whether it is the one that the others are compared with.
    pub is_pronto: bool,
}

/// `pronto`, or the one that was built beside this program, and then each of `gits`.
///
/// # Errors
/// If there is no such program, or a git does not tell its version.
pub fn peers(pronto: Option<&Path>, gits: &[PathBuf]) -> Result<Vec<Peer>, String> {
    let ours = match pronto {
        Some(path) => path.to_owned(),
        None => built("pronto")?,
    };
    let mut peers = vec![Peer {
        name: "pronto".to_owned(),
        program: ours
            .canonicalize()
            .map_err(|error| format!("{}: {error}", ours.display()))?,
        is_pronto: true,
    }];
    for git in gits {
        peers.push(Peer {
            name: format!("git {}", version(git)?),
            program: git.clone(),
            is_pronto: false,
        });
    }
    Ok(peers)
}

/// A file that was built beside this program.
///
/// # Errors
/// If it was not.
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
