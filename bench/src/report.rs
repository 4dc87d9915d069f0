//! Writes results as a Markdown table and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use bench::plot::Bar;

use crate::measure::{MeasuredRuns, RunCost};
use crate::properties::MachineProperties;
use crate::{scenario, threshold};

/// Writes `NAME.md` and `NAME.json` into `directory`.
pub(crate) fn write(
    directory: &Path,
    name: &str,
    properties: &MachineProperties,
    results: &[MeasuredRuns],
) -> Result<(), String> {
    let save = |extension: &str, text: String| {
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(directory.join(format!("{name}.{extension}")), text))
            .map_err(|error| format!("cannot write results: {error}"))
    };
    save("md", table(properties, results))?;
    let text = serde_json::to_string_pretty(&document(properties, results));
    save("json", text.map_err(|error| error.to_string())? + "\n")
}

/// Reads the results of existing scenarios from `NAME.json` in `directory`; empty without such a
/// file.
pub(crate) fn read(directory: &Path, name: &str) -> Result<Vec<MeasuredRuns>, String> {
    let path = directory.join(format!("{name}.json"));
    let Ok(text) = std::fs::read_to_string(&path) else {
        return Ok(Vec::new());
    };
    let document: Value = serde_json::from_str(&text)
        .map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
    let results = document["results"].as_array();
    Ok(results.into_iter().flatten().filter_map(measured).collect())
}

fn measured(value: &Value) -> Option<MeasuredRuns> {
    let named = value["scenario"].as_str()?;
    let scenario = scenario::ALL.iter().find(|known| known.name == named)?;
    let peer = value["peer"].as_str()?.to_owned();
    let run = |run: &Value| {
        Some(RunCost {
            wall_seconds: run["wall_seconds"].as_f64()?,
            cpu_seconds: run["cpu_seconds"].as_f64()?,
            peak_bytes: run["peak_bytes"].as_u64()?,
            peak_anonymous_bytes: run["peak_anonymous_bytes"].as_u64()?,
            metadata_calls: run["metadata_calls"].as_u64(),
        })
    };
    let calls = value["system_calls"].as_object().map(|calls| {
        let count = |(name, count): (&String, &Value)| Some((name.clone(), count.as_u64()?));
        calls.iter().filter_map(count).collect()
    });
    Some(MeasuredRuns {
        scenario: scenario.name,
        what: scenario.what,
        is_pronto: peer == "pronto",
        peer,
        runs: value["runs"].as_array()?.iter().filter_map(run).collect(),
        syscalls: calls,
        failure: value["failure"].as_str().map(str::to_owned),
    })
}

/// Formats the properties of the machine, then a table for each scenario.
pub(crate) fn table(properties: &MachineProperties, results: &[MeasuredRuns]) -> String {
    let mut text = String::new();
    for (name, value) in properties {
        let _ = writeln!(text, "- {name}: {value}");
    }
    for group in results.chunk_by(|a, b| a.scenario == b.scenario) {
        if !threshold::is_one(&group[0]) {
            scenario_table(group, &mut text);
        }
    }
    text.push_str(&threshold::table(results));
    text
}

fn scenario_table(group: &[MeasuredRuns], text: &mut String) {
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

fn row(measured: &MeasuredRuns, ours: Option<f64>, text: &mut String) {
    let Some((least, median, most)) = measured.spread(|run| run.wall_seconds) else {
        return;
    };
    let of = |figure: fn(&RunCost) -> f64| measured.spread(figure).unwrap_or_default().1;
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
    // Four significant digits.
    let digits = if median < 0.1 { 5 } else { 3 };
    let _ = writeln!(
        text,
        "| {} | {median:.digits$} ({least:.digits$}–{most:.digits$}) | {ratio} | {cpu:.digits$} \
         | {peak:.0} | {anonymous:.0} | {calls} | {slow} |",
        measured.peer
    );
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

fn document(properties: &MachineProperties, results: &[MeasuredRuns]) -> Value {
    let properties: serde_json::Map<String, Value> = properties
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
    json!({ "facts": properties, "results": results })
}

/// Draws the wall times of each scenario into `NAME-SCENARIO.svg` in `directory`.
pub(crate) fn plot(directory: &Path, name: &str, results: &[MeasuredRuns]) -> Result<(), String> {
    let threshold = threshold::bars(results);
    if !threshold.is_empty() {
        let path = directory.join(format!("{name}-threshold.svg"));
        let title = "checkout -f of so many missing files, wall seconds";
        bench::plot::write(&path, title, &threshold)?;
    }
    let drawn = results.iter().filter(|one| !one.runs.is_empty());
    let drawn: Vec<&MeasuredRuns> = drawn.filter(|one| !threshold::is_one(one)).collect();
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
