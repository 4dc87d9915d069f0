//! The nine workloads of report 004: files generated from fixed seeds, and the trees of monotone's
//! releases.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::git;

/// The names of the workloads, in the order of the report.
pub(crate) const NAMES: [&str; 9] = [
    "zero_small",
    "zero_large",
    "random_medium",
    "halfzero_large",
    "random_large",
    "monotone",
    "mt_multiple",
    "mt_bigfiles",
    "everything",
];

/// The commits that are nearest to the dates of monotone's releases 0.10 to 0.22.
const RELEASES: [&str; 13] = [
    "7156ed079",
    "7c02373de",
    "4bc4f627e",
    "3a497f953",
    "b2e36864f",
    "df3a62ff5",
    "03c125bda",
    "5d92f5e72",
    "48e574d8d",
    "99686d0dd",
    "485f5bdfe",
    "d839baef6",
    "99047ad12",
];

/// The index of release 0.19.
const RELEASE_0_19: usize = 9;

const MIB: u64 = 1 << 20;

/// A directory of files, and a repository that has them as one commit.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// The directory that contains both.
    pub(crate) place: PathBuf,
    /// The directory of the files.
    pub(crate) tree: PathBuf,
    /// A bare repository with one commit on `main`, in one pack.
    pub(crate) origin: PathBuf,
    /// The size of all objects, inflated.
    pub(crate) raw_bytes: u64,
}

impl Workload {
    /// Removes the workload.
    pub(crate) fn remove(&self) -> Result<(), String> {
        std::fs::remove_dir_all(&self.place).map_err(|error| error.to_string())
    }
}

/// Creates the workload `name` below `data`.
pub(crate) fn make(
    name: &'static str,
    data: &Path,
    monotone: Option<&Path>,
) -> Result<Workload, String> {
    let place = data.join(name);
    let _ = std::fs::remove_dir_all(&place);
    let (tree, origin) = (place.join("tree"), place.join("origin.git"));
    std::fs::create_dir_all(&tree).map_err(|error| error.to_string())?;
    fill(name, &tree, monotone)?;
    // The index is outside of the directory, so that it is not among the files.
    git(
        &place,
        &["init", "-q", "--bare", "-b", "main", "origin.git"],
    )?;
    let from = ["-C", "../tree", "--git-dir=../origin.git", "--work-tree=."];
    let here = |arguments: &[&str]| git(&origin, &[&from, arguments].concat());
    here(&["-c", "core.bare=false", "add", "-A", "-f", "."])?;
    let id = here(&["write-tree"])?;
    let commit = here(&["commit-tree", "-m", name, id.trim()])?;
    here(&["update-ref", "refs/heads/main", commit.trim()])?;
    git(&origin, &["repack", "-adq"])?;
    let _ = std::fs::remove_file(origin.join("index"));
    let sizes = [
        "cat-file",
        "--batch-all-objects",
        "--batch-check=%(objectsize)",
    ];
    let sizes = git(&origin, &sizes)?;
    let raw_bytes = sizes
        .lines()
        .filter_map(|line| line.parse::<u64>().ok())
        .sum();
    Ok(Workload {
        name,
        place,
        tree,
        origin,
        raw_bytes,
    })
}

fn fill(name: &str, tree: &Path, monotone: Option<&Path>) -> Result<(), String> {
    let file = |name: &str, zeros: u64, random: u64| mixed(&tree.join(name), zeros, random);
    match name {
        "zero_small" => file("zeros", 10 << 10, 0),
        "zero_large" => file("zeros", 100 * MIB, 0),
        "random_medium" => file("random", 0, 10 * MIB),
        "halfzero_large" => file("half", 50 * MIB, 50 * MIB),
        "random_large" => file("random", 0, 100 * MIB),
        "monotone" => release(RELEASE_0_19, tree, monotone),
        "mt_multiple" => releases(tree, monotone),
        "mt_bigfiles" => {
            releases(tree, monotone)?;
            (0..RELEASES.len()).try_for_each(|number| concatenate(tree, number))
        }
        _ => NAMES[..8]
            .iter()
            .filter(|part| **part != "monotone")
            .try_for_each(|part| {
                let below = tree.join(part);
                std::fs::create_dir_all(&below).map_err(|error| error.to_string())?;
                fill(part, &below, monotone)
            }),
    }
}

fn releases(tree: &Path, monotone: Option<&Path>) -> Result<(), String> {
    (0..RELEASES.len()).try_for_each(|number| {
        let below = tree.join(format!("0.{}", number + 10));
        std::fs::create_dir_all(&below).map_err(|error| error.to_string())?;
        release(number, &below, monotone)
    })
}

fn release(number: usize, below: &Path, monotone: Option<&Path>) -> Result<(), String> {
    let Some(repository) = monotone else {
        return stand_in(number, below);
    };
    let script = r#"git -C "$1" archive "$2" | tar x -C "$3""#;
    let status = Command::new("sh")
        .args(["-c", script, "sh"])
        .args([
            repository.as_os_str(),
            RELEASES[number].as_ref(),
            below.as_os_str(),
        ])
        .status()
        .map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(()),
        false => Err(format!(
            "'{}' lacks {}",
            repository.display(),
            RELEASES[number]
        )),
    }
}

/// Generates files in the number and size of a release. Most of them equal those of the previous
/// release.
fn stand_in(number: usize, below: &Path) -> Result<(), String> {
    for file in 0..570_u64 {
        let changed = (0..=number as u64)
            .rev()
            .find(|release| (file + release * 7) % 3 == 0);
        let mut random = WorkloadRandom(file * 1000 + changed.unwrap_or(0) + 1);
        let path = below.join(format!("d{}/f{file}", file % 23));
        std::fs::create_dir_all(below.join(format!("d{}", file % 23)))
            .map_err(|e| e.to_string())?;
        let lines = 20 + random.next() % 500;
        let text: String = (0..lines)
            .map(|_| {
                format!(
                    "{:x} of {:x} is {}\n",
                    random.next() % 900,
                    random.next() % 99,
                    random.next()
                )
            })
            .collect();
        std::fs::write(path, text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Concatenates all files of one release in the order of their paths.
fn concatenate(tree: &Path, number: usize) -> Result<(), String> {
    let release = tree.join(format!("0.{}", number + 10));
    let mut files = Vec::new();
    gather(&release, &mut files)?;
    files.sort();
    let path = tree.join(format!("all-0.{}", number + 10));
    let mut out = BufWriter::new(File::create(path).map_err(|error| error.to_string())?);
    for file in files {
        let bytes = std::fs::read(&file).map_err(|error| error.to_string())?;
        out.write_all(&bytes).map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())?;
    std::fs::remove_dir_all(release).map_err(|error| error.to_string())
}

fn gather(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(directory).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        match entry.file_type().map_err(|error| error.to_string())? {
            kind if kind.is_dir() => gather(&entry.path(), files)?,
            kind if kind.is_file() => files.push(entry.path()),
            _ => {}
        }
    }
    Ok(())
}

fn mixed(path: &Path, zeros: u64, random: u64) -> Result<(), String> {
    let file = File::create(path).map_err(|error| error.to_string())?;
    let mut out = BufWriter::new(file);
    let mut numbers = WorkloadRandom(zeros + random);
    for _ in 0..zeros / 1024 {
        out.write_all(&[0; 1024])
            .map_err(|error| error.to_string())?;
    }
    for _ in 0..random / 8 {
        out.write_all(&numbers.next().to_le_bytes())
            .map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())
}

/// The SplitMix64 generator: a seed gives the same numbers on every machine.
struct WorkloadRandom(u64);

impl WorkloadRandom {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
