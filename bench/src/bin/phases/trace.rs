//! Computes the phases of a run from its trace events.

use serde_json::Value;

/// The phases in the order of report 001.
pub(crate) const NAMES: [&str; 6] = [
    "setup",
    "read index",
    "look at files",
    "HEAD and index",
    "untracked",
    "rest",
];

/// The trace regions of each phase except the first and the last. pronto finds untracked files in
/// the same walk, so its phase of tracked files includes them.
const REGIONS: [&[&str]; 4] = [
    &["index/do_read_index"],
    &["index/preload", "index/refresh", "status/worktrees"],
    &["status/index"],
    &["status/untracked"],
];

/// The duration of each phase of a run and of the process, in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Phases {
    pub(crate) seconds: [f64; NAMES.len()],
    pub(crate) total: f64,
}

/// Adds up the regions of the main thread in `text`, which has one event on each line.
///
/// # Errors
/// Fails if `text` is not a trace.
pub(crate) fn read(text: &str, total: f64) -> Result<Phases, String> {
    let mut seconds = [0.0; NAMES.len()];
    let (mut begun, mut first) = (None, None);
    for line in text.lines() {
        let event: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text_of = |name: &str| event[name].as_str().unwrap_or_default();
        match text_of("event") {
            "start" => {
                let before = event["t_abs"].as_f64().unwrap_or(0.0);
                begun = Some(time(text_of("time")) - before);
            }
            "region_enter" if first.is_none() => first = Some(time(text_of("time"))),
            "region_leave" if text_of("thread") == "main" => {
                let region = format!("{}/{}", text_of("category"), text_of("label"));
                let phase = REGIONS
                    .iter()
                    .position(|all| all.contains(&region.as_str()));
                if let Some(phase) = phase {
                    seconds[phase + 1] += event["t_rel"].as_f64().unwrap_or(0.0);
                }
            }
            _ => {}
        }
    }
    let (Some(begun), Some(first)) = (begun, first) else {
        return Err("there is no region in the trace".to_owned());
    };
    seconds[0] = first - begun;
    let known: f64 = seconds.iter().sum();
    seconds[NAMES.len() - 1] = (total - known).max(0.0);
    Ok(Phases { seconds, total })
}

/// Parses the seconds of the day from a time such as `2026-11-22T14:05:06.123456Z`.
fn time(text: &str) -> f64 {
    let clock = text
        .split('T')
        .nth(1)
        .unwrap_or_default()
        .trim_end_matches('Z');
    clock.split(':').fold(0.0, |sum, part| {
        sum * 60.0 + part.parse::<f64>().unwrap_or(0.0)
    })
}
