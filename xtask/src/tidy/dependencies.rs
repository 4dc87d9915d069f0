//! Checks that each direct dependency has a reason in `deny.toml`, and that each reason has a
//! dependency.

use std::collections::BTreeMap;
use std::path::Path;

use super::metadata::WorkspaceMetadata;

pub(crate) fn check(root: &Path, metadata: &WorkspaceMetadata, problems: &mut Vec<String>) {
    let page = std::fs::read_to_string(root.join("deny.toml")).unwrap_or_default();
    let reasons = reasons(&page);
    let used = metadata
        .members
        .values()
        .flat_map(|member| &member.external);
    let mut unknown: Vec<_> = used
        .filter(|name| !reasons.contains_key(name.as_str()))
        .collect();
    unknown.sort();
    unknown.dedup();
    for name in unknown {
        problems.push(format!("deny.toml does not say why '{name}' is used"));
    }
    for (name, reason) in reasons {
        if reason.is_empty() {
            problems.push(format!("deny.toml names '{name}' without a reason"));
        }
        if !metadata
            .members
            .values()
            .any(|member| member.external.contains(name))
        {
            problems.push(format!(
                "deny.toml gives a reason for '{name}', which nobody uses"
            ));
        }
    }
    for (name, member) in &metadata.members {
        let manifest = std::fs::read_to_string(&member.manifest).unwrap_or_default();
        if !manifest.contains("[lints]\nworkspace = true") {
            problems.push(format!(
                "'{name}' does not opt in to the lints of the workspace"
            ));
        }
    }
}

/// Parses the lines of the form `# name: reason` below the heading.
fn reasons(page: &str) -> BTreeMap<&str, &str> {
    page.lines()
        .skip_while(|line| !line.starts_with("# Why each direct dependency"))
        .skip(1)
        .take_while(|line| line.starts_with('#'))
        .filter_map(|line| {
            let (name, reason) = line.trim_start_matches(['#', ' ']).split_once(':')?;
            Some((name.trim(), reason.trim()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::reasons;

    #[test]
    fn reasons_end_with_the_comment() {
        let page = "# Why each direct dependency is here\n# a: b\n# c:\n\n# d: e\n";
        let found: Vec<_> = reasons(page).into_iter().collect();
        assert_eq!(found, [("a", "b"), ("c", "")]);
    }
}
