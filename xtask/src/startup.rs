//! The costs of small calls: counts the instructions, page faults and system calls of the release
//! build, and fails if a count exceeds its bound.
//!
//! The counts do not depend on the load of the machine. A bound is slightly above the count at the
//! time when the bound was set.

mod counts;

use std::fs;
use std::path::Path;
use std::process::Command;

use self::counts::StartupCost;

/// The calls and the bounds of their costs: instructions, page faults and system calls.
const BOUNDS: [(&str, StartupCost); 8] = [
    ("version", StartupCost::new(205_000, 104, 20)),
    ("rev-parse HEAD", StartupCost::new(334_000, 116, 62)),
    (
        "rev-parse --show-toplevel",
        StartupCost::new(311_000, 114, 49),
    ),
    ("config --get user.name", StartupCost::new(309_000, 114, 54)),
    ("symbolic-ref HEAD", StartupCost::new(355_000, 117, 60)),
    ("status --porcelain", StartupCost::new(668_000, 152, 170)),
    ("ls-files", StartupCost::new(580_000, 143, 57)),
    ("show-ref", StartupCost::new(405_000, 135, 85)),
];

/// The largest number of relocations of the program.
const RELOCATIONS: u64 = 12_500;

const FILES: usize = 50;

pub(crate) fn run(root: &Path) -> Vec<String> {
    count_all(root).unwrap_or_else(|problem| vec![problem])
}

fn count_all(root: &Path) -> Result<Vec<String>, String> {
    crate::build_released(root, &["--bin", "pronto"])?;
    let program = crate::released_pronto(root);
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let repository = directory.path().join("repository");
    make_repository(&repository)?;

    let mut problems = Vec::new();
    let relocations = counts::relocations(&program)?;
    println!("relocations: {relocations}, at most {RELOCATIONS}");
    if relocations > RELOCATIONS {
        problems.push(format!(
            "the program has {relocations} relocations, more than {RELOCATIONS}"
        ));
    }
    println!("call: instructions, page faults, system calls (at most)");
    for (call, bound) in BOUNDS {
        let counted = counts::of_call(&program, &repository, call)
            .map_err(|problem| format!("pronto {call}: {problem}"))?;
        println!("{call}: {counted} ({bound})");
        problems.extend(
            counted
                .above(&bound)
                .map(|excess| format!("pronto {call} takes {excess}")),
        );
    }
    Ok(problems)
}

fn make_repository(repository: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| format!("cannot make a repository: {error}");
    fs::create_dir_all(repository.join("d1")).map_err(io)?;
    for number in 0..FILES {
        fs::write(repository.join(format!("d1/f{number}")), "x\n").map_err(io)?;
    }
    let steps: [&[&str]; 5] = [
        &["init", "-q", "-b", "main"],
        &["config", "user.name", "A U Thor"],
        &["config", "user.email", "author@example.com"],
        &["add", "."],
        &["commit", "-q", "-m", "one"],
    ];
    for words in steps {
        let done = Command::new("git")
            .args(words)
            .current_dir(repository)
            .status()
            .map_err(io)?;
        if !done.success() {
            return Err(format!("git {} fails", words.join(" ")));
        }
    }
    // The index must be newer than the second in which the files were written, so that the entries
    // are not racily clean.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let refreshed = Command::new("git")
        .args(["update-index", "--refresh", "--force-write-index"])
        .current_dir(repository)
        .status()
        .map_err(io)?;
    match refreshed.success() {
        true => Ok(()),
        false => Err("git update-index fails".to_owned()),
    }
}
