//! Compares the table of crates in `ARCHITECTURE.md` with cargo's metadata.

use std::collections::BTreeMap;
use std::path::Path;

use super::metadata::WorkspaceMetadata;

/// Programs with which pronto is compared or which it replaces. No crate may depend on them, even
/// indirectly.
const BANNED: &[&str] = &[
    "gix",
    "gix-pack",
    "gix-odb",
    "gix-index",
    "gix-status",
    "gix-worktree",
    "gix-worktree-state",
    "gix-worktree-stream",
    "git2",
    "libgit2-sys",
];

/// Crates that only front ends may use.
const FOR_FRONT_ENDS: &[&str] = &["pronto-trace"];

/// The crate of the library. Front ends are the crates on floors above its floor.
const LIBRARY: &str = "pronto";

/// Crates that only tests may use, in any layer.
const FOR_TESTS: &[&str] = &["test-support", "slowfs"];

pub(crate) fn check(root: &Path, metadata: &WorkspaceMetadata, problems: &mut Vec<String>) {
    for banned in BANNED {
        if metadata.packages.contains(*banned) {
            problems.push(format!(
                "banned crate '{banned}' is somewhere in the dependency tree"
            ));
        }
    }
    let page = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let floors = floors(&page);
    if floors.is_empty() {
        problems.push("ARCHITECTURE.md has no table of rooms".to_owned());
    }
    for name in floors
        .keys()
        .filter(|name| !metadata.members.contains_key(*name))
    {
        problems.push(format!(
            "ARCHITECTURE.md lists '{name}', which is not in the workspace"
        ));
    }
    problems.extend(edges(&floors, metadata));
}

fn edges(floors: &BTreeMap<String, u32>, metadata: &WorkspaceMetadata) -> Vec<String> {
    let mut problems = Vec::new();
    let library_floor = floors.get(LIBRARY).copied().unwrap_or(u32::MAX);
    for (name, dependencies) in &metadata.members {
        let Some(floor) = floors.get(name) else {
            if name.starts_with("pronto") {
                problems.push(format!(
                    "'{name}' has no row in the table of ARCHITECTURE.md"
                ));
            }
            continue;
        };
        let is_member = |below: &&String| metadata.members.contains_key(*below);
        let is_for_tests = |below: &&String| FOR_TESTS.contains(&below.as_str());
        let normal = dependencies.normal.iter();
        let development = dependencies
            .development
            .iter()
            .filter(|below| !is_for_tests(below));
        for below in normal.chain(development).filter(is_member) {
            match floors.get(below) {
                Some(lower) if lower < floor => {}
                Some(lower) => problems.push(format!(
                    "'{name}' (floor {floor}) depends on '{below}' (floor {lower}), which is not lower"
                )),
                None => problems.push(format!("'{name}' depends on '{below}', which is no room")),
            }
            if FOR_FRONT_ENDS.contains(&below.as_str()) && *floor <= library_floor {
                problems.push(format!(
                    "'{below}' is for front ends, but '{name}' depends on it"
                ));
            }
        }
    }
    problems
}

/// Parses the rows of the form `` | 1 | `name` | … ``.
fn floors(page: &str) -> BTreeMap<String, u32> {
    page.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let floor = cells.next()?.parse().ok()?;
            let name = cells.next()?.strip_prefix('`')?.split('`').next()?;
            Some((name.to_owned(), floor))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::Dependencies;
    use super::*;

    fn problems(edge: (&str, &str)) -> Vec<String> {
        let page = "| floor | crate |\n|---|---|\n| 0 | `pronto-io` | x |\n\
                    | 0 | `pronto-trace` | x |\n| 1 | `pronto-pack` | x |\n| – | `bench/` | x |\n";
        let mut metadata = WorkspaceMetadata::default();
        for name in ["pronto-io", "pronto-pack", "pronto-trace", "bench"] {
            metadata
                .members
                .insert(name.to_owned(), Dependencies::default());
        }
        if let Some(from) = metadata.members.get_mut(edge.0) {
            from.normal.insert(edge.1.to_owned());
        }
        edges(&floors(page), &metadata)
    }

    #[test]
    fn only_edges_that_run_down_are_allowed() {
        assert!(problems(("pronto-pack", "pronto-io")).is_empty());
        assert!(problems(("bench", "pronto-pack")).is_empty());
        assert_eq!(problems(("pronto-io", "pronto-pack")).len(), 1);
        assert_eq!(problems(("pronto-io", "pronto-trace")).len(), 2);
        assert_eq!(problems(("pronto-pack", "bench")).len(), 1);
    }

    #[test]
    fn tests_keep_to_the_floors() {
        let page = "| 0 | `pronto-io` |\n| 1 | `pronto-pack` |\n";
        let mut metadata = WorkspaceMetadata::default();
        for name in ["pronto-io", "pronto-pack", "test-support"] {
            let member = metadata.members.entry(name.to_owned()).or_default();
            let used = ["pronto-pack", "test-support"].map(str::to_owned);
            if name == "pronto-io" {
                member.development.extend(used);
            }
        }
        assert_eq!(edges(&floors(page), &metadata).len(), 1);
    }
}
