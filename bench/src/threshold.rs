//! Measures the number of files from which on several workers are faster: checks out a worktree in
//! which that many files are missing.

use std::fs;
use std::path::Path;

use std::fmt::Write as _;

use bench::plot::Bar;

use crate::data::{Xorshift, git};
use crate::measure::MeasuredRuns;
use crate::peer::{BenchPeer, ProgramFamily};
use crate::place::ScenarioPaths;
use crate::scenario::{BenchScenario, READING};

/// The scenario with `FILES` missing files.
pub(crate) const fn of<const FILES: u32>(name: &'static str) -> BenchScenario {
    BenchScenario {
        name,
        what: "checkout -f where so many files are missing",
        checks_out: true,
        prepare: remove::<FILES>,
        command: |peer, place, _| restore(peer, place),
        ..READING
    }
}

/// Removes files. A number always selects the same files, which include those of each smaller
/// number. Thus the files that were written last, whose entries are racily clean, are missing.
fn remove<const FILES: u32>(place: &ScenarioPaths, _fresh: &Path) -> Result<(), String> {
    let worktree = place.volume_worktree()?;
    let listed = worktree.join(".git/shuffled-files");
    if !listed.exists() {
        let files = git(&worktree, &["ls-files", "-s"])?;
        let regular = files.lines().filter(|line| line.starts_with("100"));
        let mut paths: Vec<&str> = regular
            .filter_map(|line| Some(line.split_once('\t')?.1))
            .filter(|path| !path.starts_with('"'))
            .collect();
        let mut random = Xorshift::new(1);
        for at in (1..paths.len()).rev() {
            paths.swap(at, random.below(at as u64 + 1) as usize);
        }
        fs::write(&listed, paths.join("\n")).map_err(|error| error.to_string())?;
    }
    let paths = fs::read_to_string(&listed).map_err(|error| error.to_string())?;
    for path in paths.lines().take(FILES as usize) {
        // The file may be missing because a program has failed.
        let _ = fs::remove_file(worktree.join(path));
    }
    Ok(())
}

fn restore(peer: &BenchPeer, place: &ScenarioPaths) -> Option<std::process::Command> {
    let mut command = (peer.family == ProgramFamily::Git).then(|| peer.command())?;
    if !peer.is_pronto {
        // Parallel checkout starts with the first file.
        command.args(["-c", "checkout.thresholdForParallelism=1"]);
    }
    command.args(["checkout", "-q", "-f"]);
    command.current_dir(place.volume_worktree().ok()?);
    Some(command)
}

const PREFIX: &str = "threshold-";

/// Returns whether the result belongs to a scenario of this module.
pub(crate) fn is_one(measured: &MeasuredRuns) -> bool {
    measured.scenario.starts_with(PREFIX)
}

/// Formats the table of report 000 for all numbers of files; empty if no number was measured.
pub(crate) fn table(results: &[MeasuredRuns]) -> String {
    let measured: Vec<&MeasuredRuns> = results.iter().filter(|one| is_one(one)).collect();
    let mut text = String::new();
    let rows: Vec<&[&MeasuredRuns]> = measured
        .chunk_by(|one, other| one.scenario == other.scenario)
        .collect();
    let Some(first) = rows.first() else {
        return text;
    };
    let names: Vec<&str> = first.iter().map(|one| one.peer.as_str()).collect();
    let _ = writeln!(
        text,
        "\n### threshold: {}, wall ms (min–max)\n",
        first[0].what
    );
    let _ = writeln!(
        text,
        "| files | {} | pronto / best git |",
        names.join(" | ")
    );
    let _ = writeln!(text, "|---|{}---|", "---|".repeat(names.len()));
    for row in rows {
        let files = row[0].scenario.trim_start_matches(PREFIX);
        let cells = names.iter().map(|name| {
            let found = row.iter().find(|one| one.peer == *name);
            let spread = found.and_then(|one| one.spread(|run| run.wall_seconds * 1000.0));
            spread.map_or(String::new(), |(least, median, most)| {
                format!("{median:.1} ({least:.1}–{most:.1})")
            })
        });
        let cells: Vec<String> = cells.collect();
        let ratio = best(row).map_or(String::new(), |(ours, git, _)| {
            format!("{:.2}", ours.1 / git.1)
        });
        let _ = writeln!(text, "| {files} | {} | {ratio} |", cells.join(" | "));
    }
    text
}

type FigureSpread = (f64, f64, f64);

/// Returns the figures of pronto and of the fastest git, with the name of that git.
fn best<'a>(row: &[&'a MeasuredRuns]) -> Option<(FigureSpread, FigureSpread, &'a str)> {
    let seconds = |one: &MeasuredRuns| one.spread(|run| run.wall_seconds);
    let ours = row.iter().find(|one| one.is_pronto)?;
    let gits = row.iter().filter(|one| one.peer.starts_with("git"));
    let gits = gits.filter_map(|one| Some((seconds(one)?, one.peer.as_str())));
    let (git, name) = gits.min_by(|one, other| one.0.1.total_cmp(&other.0.1))?;
    Some((seconds(ours)?, git, name))
}

/// Returns the figures of pronto and of the fastest git for each number of files.
pub(crate) fn bars(results: &[MeasuredRuns]) -> Vec<Bar> {
    let measured: Vec<&MeasuredRuns> = results.iter().filter(|one| is_one(one)).collect();
    let rows = measured.chunk_by(|one, other| one.scenario == other.scenario);
    let bars = rows.filter_map(|row| {
        let files = row[0].scenario.trim_start_matches(PREFIX);
        let (ours, git, name) = best(row)?;
        let bar = |name: &str, is_pronto, spread| Bar {
            label: format!("{files}: {name}"),
            is_pronto,
            spread,
        };
        Some([bar("pronto", true, ours), bar(name, false, git)])
    });
    bars.flatten().collect()
}
