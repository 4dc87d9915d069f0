//! Reads the table of inputs and their bounds in `docs/serve.md`.

use std::time::Duration;

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) input: String,
    /// The number in the bound. The input defines its unit.
    pub(crate) count: usize,
    /// The largest memory of one request, if the row states a limit.
    pub(crate) memory_bytes: Option<u64>,
    /// The largest processor time of one request, if the row states a limit.
    pub(crate) time: Option<Duration>,
}

/// Returns the rows of the table.
pub(crate) fn bounds() -> Vec<Bound> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let document = std::fs::read_to_string(path).expect("it is there");
    let start = "| input | bound | setting |";
    let table = document.lines().skip_while(|line| !line.starts_with(start));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    rows.map(row).collect()
}

fn row(line: &str) -> Bound {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let cell = |at: usize| cells.get(at).copied().unwrap_or_default();
    let number = |text: &str| text.split(' ').next().and_then(|text| text.parse().ok());
    Bound {
        input: cell(0).to_owned(),
        count: number(cell(1)).expect("a bound is a number"),
        memory_bytes: number(cell(3)).map(|mebibytes| (mebibytes as u64) << 20),
        time: number(cell(4)).map(|seconds| Duration::from_secs(seconds as u64)),
    }
}
