//! Formats the table of results.

use std::fmt::Write as _;

use crate::stage::Stage;

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub(crate) client: String,
    pub(crate) version: String,
    pub(crate) transport: String,
    pub(crate) operation: String,
    pub(crate) result: String,
    pub(crate) remark: String,
}

/// The largest length of a remark.
const REMARK: usize = 300;

/// Writes the table to the file that `PRONTO_TEST_CLIENTS_REPORT` names, with `suffix` after its
/// name.
pub(crate) fn write(stage: &Stage, suffix: &str) {
    let Some(mut path) = std::env::var_os("PRONTO_TEST_CLIENTS_REPORT") else {
        return;
    };
    path.push(suffix);
    let mut rows = stage.rows.lock().expect("no panic").clone();
    // The sort is stable, so operations keep their order.
    rows.sort_by(|a, b| (&a.client, &a.transport).cmp(&(&b.client, &b.transport)));
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            row.client, row.version, row.transport, row.operation, row.result, row.remark
        );
    }
    std::fs::write(path, text).expect("a file");
}

/// Shortens the output of a client to a table cell: one line, with the last lines that are not
/// about progress.
pub(crate) fn shorten(text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(str::trim);
    let mut lines: Vec<&str> = lines
        .filter(|line| !line.is_empty() && !line.contains('%'))
        .collect();
    lines.dedup();
    let last = lines.len().saturating_sub(4);
    let mut cell: String = lines[last..].join(" / ").replace('|', "\\|");
    if let Some((end, _)) = cell.char_indices().nth(REMARK) {
        cell.truncate(end);
        cell.push('…');
    }
    cell
}
