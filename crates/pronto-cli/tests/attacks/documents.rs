//! Checks that the rows named in tables of `docs/security.md` exist.

use std::path::Path;

use crate::rows;

/// Checks that every row exists that a table of `docs/security.md` names as `class/name`, with `*`
/// for any end of a name. `start` is the start of the lines of the table, whose names are in the
/// column `column`. Lines begin with a bar.
///
/// # Errors
/// Fails with the names that have no row.
pub(crate) fn check(start: &str, column: usize) -> Result<(), String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
    let rows: Vec<String> = rows::all()
        .iter()
        .map(|row| format!("{}/{}", row.class, row.name))
        .collect();
    let named: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with(start))
        .filter_map(|line| line.split('|').nth(column))
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .collect();
    if named.is_empty() {
        return Err("no row is named".to_owned());
    }
    let is_missing = |name: &&str| match name.strip_suffix('*') {
        Some(start) => !rows.iter().any(|row| row.starts_with(start)),
        None => !rows.iter().any(|row| row == name),
    };
    let missing: Vec<&str> = named.into_iter().filter(is_missing).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("there are no such rows: {}", missing.join(", "))),
    }
}
