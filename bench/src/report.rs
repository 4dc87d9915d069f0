//! Results as a table for people and JSON for programs.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use bench::plot::Bar;

use crate::facts::Facts;
use crate::measure::{Measured, Run};

/// Writes `NAME.md` and `NAME.json` into `directory`.
pub(crate) fn write(
    directory: &Path,
    name: &str,
    facts: &Facts,
    results: &[Measured],
) -> Result<(), String> {
    let save = |extension: &str, text: String| {
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(directory.join(format!("{name}.{extension}")), text))
            .map_err(|error| format!("cannot write results: {error}"))
    };
    save("md", table(facts, results))?;
    let text = serde_json::to_string_pretty(&document(facts, results));
    save("json", text.map_err(|error| error.to_string())? + "\n")
}

/// The facts, then a table for each scenario.
pub(crate) fn table(facts: &Facts, results: &[Measured]) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for group in results.chunk_by(|a, b| a.scenario == b.scenario) {
        scenario_table(group, &mut text);
    }
    text
}

fn scenario_table(group: &[Measured], text: &mut String) {
    let _ = writeln!(text, "\n### {}: {}\n", group[0].scenario, group[0].what);
    text.push_str(
        "| peer | wall s (min–max) | pronto / peer | CPU s | peak MiB | anonymous MiB | system calls | metadata calls, slow |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    let ours = group.iter().find(|measured| measured.is_pronto);
    let ours = ours.and_then(|measured| measured.spread(|run| run.wall_seconds));
    for measured in group {
        if let Some(why) = &measured.failure {
            let _ = writeln!(text, "| {} | {why} | | | | | | |", measured.peer);
        }
        row(measured, ours.map(|ours| ours.1), text);
    }
}

fn row(measured: &Measured, ours: Option<f64>, text: &mut String) {
    let Some((least, median, most)) = measured.spread(|run| run.wall_seconds) else {
        return;
    };
    let of = |figure: fn(&Run) -> f64| measured.spread(figure).unwrap_or_default().1;
    let ratio = ours.map_or(String::new(), |ours| format!("{:.2}", ours / median));
    let cpu = of(|run| run.cpu_seconds);
    let peak = of(|run| run.peak_bytes as f64) / MEBIBYTE;
    let anonymous = of(|run| run.peak_anonymous_bytes as f64) / MEBIBYTE;
    let calls = measured.syscalls.as_ref();
    let calls = calls.map_or(String::new(), |calls| {
        calls.values().sum::<u64>().to_string()
    });
    let slow = match measured.runs.first().and_then(|run| run.metadata_calls) {
        Some(_) => format!("{:.0}", of(|run| run.metadata_calls.unwrap_or(0) as f64)),
        None => String::new(),
    };
    // Four digits that mean something, whatever the size.
    let digits = if median < 0.1 { 5 } else { 3 };
    let _ = writeln!(
        text,
        "| {} | {median:.digits$} ({least:.digits$}–{most:.digits$}) | {ratio} | {cpu:.digits$} \
         | {peak:.0} | {anonymous:.0} | {calls} | {slow} |",
        measured.peer
    );
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn document(facts: &Facts, results: &[Measured]) -> Value {
    let facts: serde_json::Map<String, Value> = facts
        .iter()
        .map(|(name, value)| (name.clone(), json!(value)))
        .collect();
    let results: Vec<Value> = results
        .iter()
        .map(|measured| {
            let runs: Vec<Value> = measured
                .runs
                .iter()
                .map(|run| {
                    json!({
                        "wall_seconds": run.wall_seconds,
                        "cpu_seconds": run.cpu_seconds,
                        "peak_bytes": run.peak_bytes,
                        "peak_anonymous_bytes": run.peak_anonymous_bytes,
                        "metadata_calls": run.metadata_calls,
                    })
                })
                .collect();
            json!({
                "scenario": measured.scenario,
                "peer": measured.peer,
                "runs": runs,
                "system_calls": measured.syscalls,
                "failure": measured.failure,
            })
        })
        .collect();
    json!({ "facts": facts, "results": results })
}

/// Draws `NAME-SCENARIO.svg` into `directory` for each scenario: wall times.
pub(crate) fn plot(directory: &Path, name: &str, results: &[Measured]) -> Result<(), String> {
    let drawn: Vec<&Measured> = results.iter().filter(|m| !m.runs.is_empty()).collect();
    for group in drawn.chunk_by(|a, b| a.scenario == b.scenario) {
        let path = directory.join(format!("{name}-{}.svg", group[0].scenario));
        let title = format!("{}: {}, wall seconds", group[0].scenario, group[0].what);
        let bars: Vec<Bar> = group
            .iter()
            .map(|measured| Bar {
                label: measured.peer.clone(),
                is_pronto: measured.is_pronto,
                spread: measured.spread(|run| run.wall_seconds).unwrap_or_default(),
            })
            .collect();
        bench::plot::write(&path, &title, &bars)?;
    }
    Ok(())
}
