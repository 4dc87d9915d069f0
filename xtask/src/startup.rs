//! The cost of starting: compares the instructions of `pronto version` and `git version`.

use std::path::Path;
use std::process::Command;

/// `pronto version` may take this many percent of the instructions of `git version`.
const LIMIT_PERCENT: u64 = 150;

pub(crate) fn run(root: &Path) -> Vec<String> {
    match compare(root) {
        Ok((ours, theirs)) => {
            let percent = ours * 100 / theirs.max(1);
            println!("pronto version: {ours} instructions, git version: {theirs} ({percent} %)");
            if percent > LIMIT_PERCENT {
                return vec![format!(
                    "starting costs {percent} % of git, more than {LIMIT_PERCENT} %"
                )];
            }
            Vec::new()
        }
        Err(problem) => vec![problem],
    }
}

fn compare(root: &Path) -> Result<(u64, u64), String> {
    crate::build_released(root, &["--bin", "pronto"])?;
    let ours = instructions(&crate::released_pronto(root))?;
    Ok((ours, instructions(Path::new("git"))?))
}

fn instructions(program: &Path) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .arg("version")
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines()
        .find_map(|line| line.split("Collected : ").nth(1)?.trim().parse().ok())
        .ok_or_else(|| format!("valgrind did not count: {said}"))
}
