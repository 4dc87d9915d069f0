//! The measured programs: pronto, and every other program found on the machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Args;

/// The kind of a program, which determines its command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramFamily {
    /// A program with Git's command lines.
    Git,
    /// The program `gix` of Gitoxide.
    Gix,
    /// JGit, called by the small Java program in `bench/jgit`.
    Jgit,
}

/// A program to measure, in one configuration.
#[derive(Clone, Debug)]
pub(crate) struct BenchPeer {
    pub(crate) name: String,
    pub(crate) family: ProgramFamily,
    pub(crate) is_pronto: bool,
    pub(crate) version: String,
    /// Whether the program differs from the previous one only in the number of checkout workers.
    pub(crate) differs_in_workers: bool,
    program: PathBuf,
    leading: Vec<String>,
}

impl BenchPeer {
    /// Returns the program with its configuration. The arguments of a command are appended to it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.leading);
        command
    }
}

/// Finds the programs. pronto is the first.
pub(crate) fn find(arguments: &Args) -> Result<Vec<BenchPeer>, String> {
    let pronto = arguments
        .pronto
        .clone()
        .unwrap_or_else(|| PathBuf::from("target/release/pronto"));
    let pronto = pronto.canonicalize().map_err(|error| {
        format!(
            "{}: {error} (build it with: cargo build --release)",
            pronto.display()
        )
    })?;
    let mut peers = vec![peer("pronto", ProgramFamily::Git, &pronto, &[])?];
    peers[0].is_pronto = true;
    let mut gits: Vec<PathBuf> = on_path("git").into_iter().collect();
    gits.extend(arguments.git.iter().cloned());
    for path in gits {
        let version = version_of(&path, &["version"]).unwrap_or_default();
        let short: String = version
            .trim_start_matches("git version ")
            .split('.')
            .take(2)
            .collect::<Vec<_>>()
            .join(".");
        for (at, workers) in arguments.workers.iter().enumerate() {
            let setting = format!("checkout.workers={workers}");
            let (name, leading) = match workers.as_str() {
                "default" => (format!("git {short} default"), vec![]),
                number => (
                    format!("git {short} workers={number}"),
                    vec!["-c", setting.as_str()],
                ),
            };
            let mut peer = peer(&name, ProgramFamily::Git, &path, &leading)?;
            peer.differs_in_workers = at > 0;
            peers.push(peer);
        }
    }
    if let Some(gix) = arguments.gix.clone().or_else(|| on_path("gix")) {
        peers.push(peer("gix", ProgramFamily::Gix, &gix, &[])?);
    }
    peers.extend(jgit());
    peers.retain(|peer| {
        !arguments
            .without
            .iter()
            .any(|part| peer.name.contains(part.as_str()))
    });
    Ok(peers)
}

/// Returns JGit if `mvn -q -f bench/jgit package` has built it.
fn jgit() -> Option<BenchPeer> {
    let archive = Path::new("bench/jgit/target/bench-jgit.jar")
        .canonicalize()
        .ok()?;
    let archive = archive.to_string_lossy().into_owned();
    peer(
        "jgit",
        ProgramFamily::Jgit,
        &on_path("java")?,
        &["-jar", &archive],
    )
    .ok()
}

fn peer(
    name: &str,
    family: ProgramFamily,
    program: &Path,
    leading: &[&str],
) -> Result<BenchPeer, String> {
    let question: Vec<&str> = match family {
        ProgramFamily::Git => vec!["version"],
        ProgramFamily::Gix => vec!["--version"],
        ProgramFamily::Jgit => leading.iter().copied().chain(["version"]).collect(),
    };
    Ok(BenchPeer {
        name: name.to_owned(),
        family,
        is_pronto: false,
        differs_in_workers: false,
        version: version_of(program, &question)?,
        program: program.to_owned(),
        leading: leading
            .iter()
            .map(|&argument| argument.to_owned())
            .collect(),
    })
}

fn version_of(program: &Path, question: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(question)
        .output()
        .map_err(|error| format!("cannot run '{}': {error}", program.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|p| p.is_file())
}
