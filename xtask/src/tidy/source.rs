//! Source files, parsed by the indentation that rustfmt guarantees.

use std::path::Path;

use super::exemptions::Finding;

const FILE_LIMIT: usize = 500;
const FUNCTION_LIMIT: usize = 70;

/// A Rust source file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The path relative to the top of the workspace.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    /// Whether each line is part of a test.
    pub(crate) is_test: Vec<bool>,
}

/// Returns all Rust files of the workspace, sorted by path.
pub(crate) fn all(root: &Path) -> Vec<SourceFile> {
    let mut paths = Vec::new();
    for folder in ["crates", "bench", "xtask", "fuzz"] {
        collect(&root.join(folder), &mut paths);
    }
    paths.sort();
    paths
        .iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(path).ok()?;
            let relative = path.strip_prefix(root).ok()?.to_string_lossy().into_owned();
            Some(SourceFile::new(relative, &text))
        })
        .collect()
}

fn collect(folder: &Path, paths: &mut Vec<std::path::PathBuf>) {
    const SKIPPED: &[&str] = &["target", "data", "corpus", "artifacts"];
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

impl SourceFile {
    pub(crate) fn new(path: String, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let is_all_test =
            path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/");
        let mut is_test = vec![is_all_test; lines.len()];
        let mut at = 0;
        while at < lines.len() {
            if lines[at].trim() == "#[cfg(test)]" {
                let end = end_of_item(&lines, at);
                is_test[at..=end].fill(true);
                at = end;
            }
            at += 1;
        }
        SourceFile {
            path,
            lines,
            is_test,
        }
    }

    /// Returns the file if it is too long, and its functions that are too long.
    pub(crate) fn long_parts(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let length = self.is_test.iter().filter(|is_test| !**is_test).count();
        if length > FILE_LIMIT {
            findings.push(Finding {
                what: format!("file {}", self.path),
                size: length,
                rule: format!("files have up to {FILE_LIMIT} lines, tests apart"),
            });
        }
        for at in (0..self.lines.len()).filter(|&at| !self.is_test[at]) {
            let Some(name) = function_name(&self.lines[at]) else {
                continue;
            };
            let size = end_of_item(&self.lines, at) + 1 - at;
            if size > FUNCTION_LIMIT {
                findings.push(Finding {
                    what: format!("function {} {name}", self.path),
                    size,
                    rule: format!("functions have up to {FUNCTION_LIMIT} lines"),
                });
            }
        }
        findings
    }
}

/// Returns the crate of a source file, or its top directory.
pub(crate) fn unit_of(path: &str) -> String {
    let parts = if path.starts_with("crates/") { 2 } else { 1 };
    path.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// Returns the last line of the item that starts at `at`: the next line that closes at the same
/// indentation.
fn end_of_item(lines: &[String], at: usize) -> usize {
    let indent = indentation(&lines[at]);
    for (end, line) in lines.iter().enumerate().skip(at) {
        if line.trim().is_empty() || indentation(line) != indent {
            continue;
        }
        let is_closing = line.trim_start().starts_with('}');
        let is_whole = line.ends_with(';') || (line.ends_with('}') && line.contains('{'));
        if is_closing || is_whole {
            return end;
        }
    }
    lines.len().saturating_sub(1)
}

/// Counts the spaces at the start of a line.
pub(crate) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the name of the function whose head begins on the line.
pub(crate) fn function_name(line: &str) -> Option<&str> {
    const BEFORE: &[&str] = &["pub", "const", "unsafe", "async", "default", "extern", "fn"];
    let text = line.trim_start();
    let at = text.find("fn ")?;
    let is_head = text[..at].split_whitespace().all(|word| {
        let word = word.split('(').next().unwrap_or_default();
        BEFORE.contains(&word) || word.starts_with('"') || word.ends_with(')')
    });
    let name = text[at + 3..].split(['(', '<', ' ']).next()?;
    (is_head && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_their_ends() {
        let mut text = "//! x\nimpl A {\n    pub(crate) fn long(\n    ) {\n".to_owned();
        text.push_str(&"        work();\n".repeat(70));
        text.push_str("    }\n    fn short() {}\n}\n#[cfg(test)]\nmod tests {\n    fn x() {\n");
        text.push_str(&"        work();\n".repeat(600));
        text.push_str("    }\n}\n");
        let findings = SourceFile::new("a.rs".to_owned(), &text).long_parts();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(
            (findings[0].what.as_str(), findings[0].size),
            ("function a.rs long", 73)
        );
    }

    #[test]
    fn only_heads_of_functions_count() {
        assert_eq!(function_name("    pub const fn a<T>() {"), Some("a"));
        assert_eq!(function_name("// the fn b"), None);
        assert_eq!(function_name("    run: fn(Definition) -> X,"), None);
    }
}
