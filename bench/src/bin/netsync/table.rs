//! Formats results as the table of report 004, with the target of each row.

use std::fmt::Write as _;
use std::path::Path;

use bench::plot::{self, Bar};

use crate::operation::OperationRow;
use crate::{Args, MeasuredProgram, process};

const MIB: f64 = 1048576.0;

/// Writes `report-004.md` and its plots.
pub(crate) fn write(
    arguments: &Args,
    data: &Path,
    peers: &[MeasuredProgram],
    rows: &[OperationRow],
) -> Result<(), String> {
    let results = &arguments.results;
    std::fs::create_dir_all(results).map_err(|error| error.to_string())?;
    let text = text(arguments, data, peers, rows);
    std::fs::write(results.join("report-004.md"), text).map_err(|error| error.to_string())?;
    for operation in ["add files", "commit", "checkout", "serve", "pull"] {
        let wanted = rows.iter().filter(|row| row.operation == operation);
        let bars: Vec<Bar> = wanted
            .map(|row| Bar {
                label: format!("{}, {}", row.workload, row.peer),
                is_pronto: row.is_pronto,
                spread: row.spread(|used| used.cpu_seconds.max(0.0001)),
            })
            .collect();
        let path = results.join(format!("report-004-{}.svg", operation.replace(' ', "-")));
        plot::write(
            &path,
            &format!("{operation}: processor time in seconds"),
            &bars,
        )?;
    }
    Ok(())
}

/// Formats the properties of the machine and the table.
pub(crate) fn text(
    arguments: &Args,
    data: &Path,
    peers: &[MeasuredProgram],
    rows: &[OperationRow],
) -> String {
    let mut text = String::new();
    for (name, value) in bench::machine::properties(data) {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for peer in peers {
        let version = process::output(peer.program.as_os_str(), &["version"], None);
        let _ = writeln!(
            text,
            "- {}: {}",
            peer.name,
            version.unwrap_or_default().trim()
        );
    }
    let releases = match arguments.monotone {
        Some(_) => "from its history, the commits nearest to the dates of 0.10 to 0.22",
        None => "made-up files of about their number and size",
    };
    let _ = writeln!(text, "- monotone's releases: {releases}");
    let _ = writeln!(
        text,
        "- runs of each: {}, medians; one more in which copies are counted",
        arguments.runs
    );
    text.push_str(
        "- serve and pull are one conversation through pipes: `upload-pack` and `fetch` with git, \
         `serve --netsync` and `sync --pull` with pronto\n\
         - asked: of `add` and `commit` half of git's processor time, of the others no more than \
         git's; serve and pull copy at most 3 W + 2 R + 8 MiB (W bytes on the wire, R of objects), and \
         take at most 64 MiB of anonymous memory\n\n",
    );
    text.push_str(
        "| workload | operation | who | CPU s (min–max) | of git's | size MiB | resident MiB | anonymous MiB | \
         copied MiB | allowed MiB | allocated MiB | wire MiB |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        line(row, rows, &mut text);
    }
    text
}

fn line(row: &OperationRow, rows: &[OperationRow], text: &mut String) {
    let (least, median, most) = row.spread(|used| used.cpu_seconds);
    let same =
        |other: &&OperationRow| other.workload == row.workload && other.operation == row.operation;
    let best = rows
        .iter()
        .filter(same)
        .filter(|other| !other.is_pronto)
        .map(|other| other.spread(|used| used.cpu_seconds).1)
        .fold(f64::INFINITY, f64::min);
    let ratio = match row.is_pronto && best > 0.0 {
        true => format!("{:.2}", median / best),
        false => String::new(),
    };
    let mib = |bytes: u64| bytes as f64 / MIB;
    let memory = |figure: fn(&bench::sampler::Sampled) -> u64| {
        row.spread(|used| mib(figure(&used.memory))).1
    };
    let (wire, allowed) = match row.wire_bytes {
        0 => (String::new(), String::new()),
        wire => {
            let allowed = 3.0 * mib(wire) + 2.0 * mib(row.raw_bytes) + 8.0;
            (format!("{:.2}", mib(wire)), format!("{allowed:.0}"))
        }
    };
    let _ = writeln!(
        text,
        "| {} | {} | {} | {median:.3} ({least:.3}–{most:.3}) | {ratio} | {:.0} | {:.1} | {:.1} | {:.1} | {allowed} | {:.1} | {wire} |",
        row.workload,
        row.operation,
        row.peer,
        memory(|sampled| sampled.size),
        memory(|sampled| sampled.resident),
        memory(|sampled| sampled.anonymous),
        mib(row.counted.copied),
        mib(row.counted.allocated),
    );
}
