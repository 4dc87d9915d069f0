//! Checks the structure of crates: groups of modules, import cycles, and the size of a crate.

use std::collections::BTreeMap;
use std::path::Path;

use super::exemptions::Finding;
use super::modules::{self, Crate};
use super::source::SourceFile;

/// The number of lines, without tests, above which a library crate is listed.
const LARGE_CRATE_LINES: usize = 20_000;
/// The crates that are programs and not libraries.
const PROGRAMS: &[&str] = &["pronto-cli"];

/// Reports modules that import from a higher group, and modules that are in no group of their
/// crate.
pub(crate) fn check(root: &Path, sources: &[SourceFile], problems: &mut Vec<String>) {
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let mut groups = groups(&page);
    for member in modules::crates(sources) {
        if let Some(order) = groups.remove(&member.name) {
            problems.extend(out_of_order(&member, &order));
        }
    }
    for name in groups.keys() {
        problems.push(format!(
            "ARCHITECTURE.md lists groups of '{name}', which is no crate"
        ));
    }
}

/// Lists large crates. Their size is a reason to look for separable parts, but not an error.
pub(crate) fn large_crates(sources: &[SourceFile]) -> Vec<String> {
    let crates = modules::crates(sources);
    let is_large = |member: &&Crate| {
        member.line_count > LARGE_CRATE_LINES && !PROGRAMS.contains(&member.name.as_str())
    };
    let large = crates.iter().filter(is_large);
    large
        .map(|member| {
            let Crate {
                name, line_count, ..
            } = member;
            format!("note: crate {name} has {line_count} lines: look for parts that stand alone")
        })
        .collect()
}

/// Returns the import cycles between modules.
pub(crate) fn findings(sources: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in modules::crates(sources) {
        let name = &member.name;
        for (parent, edges) in member.edges() {
            let knots = modules::knots(&edges);
            let Some(first) = knots.first() else {
                continue;
            };
            let names: Vec<&str> = first.iter().map(String::as_str).collect();
            let place: Vec<&str> = std::iter::once(name.as_str())
                .chain(parent.iter().map(String::as_str))
                .collect();
            findings.push(Finding {
                what: format!("knot {}", place.join("::")),
                size: knots.iter().map(|knot| knot.len()).sum(),
                rule: format!(
                    "modules do not import each other, directly or through others: {}",
                    names.join(", ")
                ),
            });
        }
    }
    findings
}

fn out_of_order(member: &Crate, order: &[String]) -> Vec<String> {
    let name = &member.name;
    let mut problems = Vec::new();
    let place = |group: &String| order.iter().position(|known| known == group);
    for group in member.top_modules() {
        if place(&group).is_none() {
            problems.push(format!(
                "'{name}': module '{group}' is in none of its groups"
            ));
        }
    }
    let edges = member.edges();
    for (user, used_groups) in edges.get(&Vec::new()).into_iter().flatten() {
        for used in used_groups {
            if let (Some(above), Some(below)) = (place(user), place(used))
                && above < below
            {
                problems.push(format!(
                    "'{name}': group '{user}' imports '{used}', which is above it"
                ));
            }
        }
    }
    problems
}

/// Parses the rows of the form `` | `crate` | `lowest`, `next`, … | `` below a table head that
/// names groups.
fn groups(page: &str) -> BTreeMap<String, Vec<String>> {
    let rows = page
        .lines()
        .skip_while(|line| !(line.starts_with('|') && line.contains("groups")))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.filter_map(|line| {
        let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
        let name = cells.next()?.trim_matches('`').to_owned();
        let names = cells.next()?.split('`').skip(1).step_by(2);
        Some((name, names.map(str::to_owned).collect()))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| floor | crate |\n|---|---|\n| 0 | `x` |\n\n| crate | groups |\n|---|---|\n| `x` | `low`, `high` |\n";

    fn sources(low: &str, high: &str) -> Vec<SourceFile> {
        [
            ("lib.rs", ""),
            ("low.rs", ""),
            ("high.rs", ""),
            ("low/a.rs", low),
            ("high/b.rs", high),
        ]
        .map(|(file, text)| SourceFile::new(format!("crates/x/src/{file}"), text))
        .into()
    }

    #[test]
    fn groups_import_only_what_is_below() {
        let order = &groups(PAGE)["x"];
        assert_eq!(order, &["low", "high"]);
        let problems = |low, high| {
            let member = &modules::crates(&sources(low, high))[0];
            out_of_order(member, order)
        };
        assert!(problems("", "use crate::low::a;\n").is_empty());
        assert_eq!(problems("use crate::high::b;\n", "").len(), 1);
        let stray = SourceFile::new("crates/x/src/stray.rs".to_owned(), "");
        let member = &modules::crates(&[stray])[0];
        assert_eq!(out_of_order(member, order).len(), 1);
    }

    #[test]
    fn knots_are_found() {
        let sources = [("a.rs", "use crate::b;\n"), ("b.rs", "use crate::a;\n")]
            .map(|(file, text)| SourceFile::new(format!("crates/x/src/{file}"), text));
        let found = findings(&sources);
        assert_eq!((found[0].what.as_str(), found[0].size), ("knot x", 2));
    }
}
