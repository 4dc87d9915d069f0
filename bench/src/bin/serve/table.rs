//! Formats results as tables: one for each scenario, with a row for each server.

use std::path::Path;

use serde_json::{Map, Value};

use bench::load::Result;

type ResultRow = Map<String, Value>;

/// Prints the tables.
pub(crate) fn print(results: &Path) -> Result<()> {
    let text = std::fs::read_to_string(results)
        .map_err(|error| format!("cannot read '{}': {error}", results.display()))?;
    let rows: Vec<ResultRow> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mut scenarios: Vec<&str> = Vec::new();
    for row in &rows {
        let name = text_of(row, "scenario");
        if !scenarios.contains(&name) {
            scenarios.push(name);
        }
    }
    for scenario in scenarios {
        let rows = rows
            .iter()
            .filter(|row| text_of(row, "scenario") == scenario);
        one(scenario, &rows.collect::<Vec<_>>());
    }
    Ok(())
}

fn text_of<'a>(row: &'a ResultRow, name: &str) -> &'a str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn one(scenario: &str, rows: &[&ResultRow]) {
    let mut columns: Vec<&str> = Vec::new();
    for row in rows {
        for (name, value) in *row {
            let is_key = name == "server" || name == "scenario";
            if !is_key && !value.is_null() && !columns.contains(&name.as_str()) {
                columns.push(name);
            }
        }
    }
    println!("## {scenario}\n");
    let heads: Vec<String> = columns.iter().map(|name| name.replace('_', " ")).collect();
    println!("| server | {} |", heads.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
    for row in rows {
        let cells: Vec<String> = columns.iter().map(|name| cell(row.get(*name))).collect();
        println!("| {} | {} |", text_of(row, "server"), cells.join(" | "));
    }
    println!();
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.replace('|', "\\|"),
        Some(value) => match value.as_f64() {
            Some(number) if value.is_f64() && number < 100.0 => format!("{number:.2}"),
            Some(number) => format!("{number:.0}"),
            None => value.to_string(),
        },
    }
}
