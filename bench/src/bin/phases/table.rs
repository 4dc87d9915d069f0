//! Formats results as the tables of report 001.

use std::fmt::Write as _;

use bench::plot::{self, Bar};

use crate::trace::{NAMES, Phases};
use crate::{Args, MeasuredProgram, PhaseRow, ReportTable};

/// Formats the properties of the machine and the tables.
pub(crate) fn text(
    arguments: &Args,
    peers: &[MeasuredProgram],
    tables: &[(&ReportTable, Vec<PhaseRow>)],
) -> String {
    let mut text = String::new();
    for (name, value) in bench::machine::properties(&arguments.worktree) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let names: Vec<&str> = peers.iter().map(|peer| peer.name.as_str()).collect();
    let _ = writeln!(text, "- beside one another: {}", names.join(", "));
    let _ = writeln!(
        text,
        "- worktree: {}, {} files",
        arguments.worktree.display(),
        entries(arguments)
    );
    let _ = writeln!(
        text,
        "- medians of {} runs, milliseconds; least and most of the whole process",
        arguments.runs
    );
    text.push_str(
        "- phases as each program tells them (`GIT_TRACE2_EVENT`): git looks at files while it \
         preloads and refreshes the index, pronto in one walk, which finds untracked files, too\n",
    );
    for (setting, rows) in tables {
        let _ = writeln!(
            text,
            "\n## {}: {}\n\n`{}`\n",
            setting.letter,
            setting.what,
            setting.arguments.join(" ")
        );
        let _ = writeln!(text, "| phase | {} |", names.join(" | "));
        let _ = writeln!(text, "|---|{}", "---|".repeat(rows.len()));
        for (at, name) in NAMES.iter().enumerate() {
            let figure = |row: &PhaseRow| format!("{:.1}", spread(row, |run| run.seconds[at]).1);
            line(&mut text, name, rows, figure);
        }
        line(&mut text, "**whole process**", rows, |row| {
            let (least, median, most) = spread(row, |run| run.total);
            format!("**{median:.1}** ({least:.1}–{most:.1})")
        });
    }
    text
}

fn line(text: &mut String, name: &str, rows: &[PhaseRow], figure: impl Fn(&PhaseRow) -> String) {
    let figures: Vec<String> = rows.iter().map(figure).collect();
    let _ = writeln!(text, "| {name} | {} |", figures.join(" | "));
}

/// Minimum, median and maximum of a figure, in milliseconds.
fn spread(row: &PhaseRow, figure: impl Fn(&Phases) -> f64) -> (f64, f64, f64) {
    let mut all: Vec<f64> = row.runs.iter().map(|run| figure(run) * 1000.0).collect();
    all.sort_by(f64::total_cmp);
    match (all.first(), all.last()) {
        (Some(&least), Some(&most)) => (least, all[all.len() / 2], most),
        _ => (0.0, 0.0, 0.0),
    }
}

fn entries(arguments: &Args) -> usize {
    let listed = std::process::Command::new("git")
        .arg("ls-files")
        .current_dir(&arguments.worktree)
        .output();
    let count = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'\n').count();
    listed.map_or(0, |output| count(&output.stdout))
}

/// Writes the results with a plot of each setting.
pub(crate) fn write(
    arguments: &Args,
    text: &str,
    tables: &[(&ReportTable, Vec<PhaseRow>)],
) -> Result<(), String> {
    let results = &arguments.results;
    let failed = |error: std::io::Error| error.to_string();
    std::fs::create_dir_all(results).map_err(failed)?;
    std::fs::write(results.join(format!("{}.md", arguments.name)), text).map_err(failed)?;
    for (setting, rows) in tables {
        let mut bars = Vec::new();
        for row in rows {
            bars.push(bar(row, "all", |run| run.total));
            for (at, name) in NAMES.iter().enumerate().skip(1).take(NAMES.len() - 2) {
                bars.push(bar(row, name, |run| run.seconds[at].max(0.00001)));
            }
        }
        let letters: String = setting.letter.replace(", ", "-");
        let path = results.join(format!("{}-{letters}.svg", arguments.name));
        plot::write(&path, &format!("{}: milliseconds", setting.what), &bars)?;
    }
    Ok(())
}

fn bar(row: &PhaseRow, phase: &str, figure: impl Fn(&Phases) -> f64) -> Bar {
    Bar {
        label: format!("{}, {phase}", row.peer),
        is_pronto: row.is_pronto,
        spread: spread(row, figure),
    }
}
