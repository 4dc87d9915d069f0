//! Checks the grammar of messages: a message starts in lower case and ends without a full stop.
//!
//! The check covers only literals that are passed directly to an error. Messages that start with a
//! capital because Git's do are in the exemptions.

use super::exemptions::Finding;
use super::source::SourceFile;

/// Calls whose text is printed as `fatal: …`, `error: …` or `warning: …`.
const CALLS: &[&str] = &[
    "Error::new(",
    "CliError::fatal(",
    "CliError::error(",
    "CliError::usage(",
    ".context(",
    ".warn(",
];

pub(crate) fn findings(source: &SourceFile) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for at in (0..source.lines.len()).filter(|&at| !source.is_test[at]) {
        let line = &source.lines[at];
        if line.trim_start().starts_with("//") {
            continue;
        }
        let Some(call) = CALLS
            .iter()
            .find_map(|call| Some(line.find(call)? + call.len()))
        else {
            continue;
        };
        let Some(message) = literal_after(&source.lines, at, call) else {
            continue;
        };
        if is_well_put(&message) {
            continue;
        }
        findings.push(Finding {
            what: format!("message {message}"),
            size: 1,
            rule: format!(
                "messages start in lower case and have no full stop: {}:{}",
                source.path,
                at + 1
            ),
        });
    }
    findings
}

/// Returns the first literal after `column` on the line, or on the next three lines.
fn literal_after(lines: &[String], at: usize, column: usize) -> Option<String> {
    let mut start = column;
    for line in lines.iter().skip(at).take(4) {
        let rest = line.get(start..).unwrap_or_default();
        if let Some(open) = rest.find('"') {
            let literal = &rest[open + 1..];
            let close = literal.find('"').unwrap_or(literal.len());
            return Some(literal[..close].to_owned());
        }
        if rest.contains(';') {
            return None;
        }
        start = 0;
    }
    None
}

fn is_well_put(message: &str) -> bool {
    let mut characters = message.chars();
    let first = characters.next().unwrap_or('a');
    let second = characters.next().unwrap_or('a');
    // Names written in capitals (HEAD, GIT_DIR) are permitted at the start.
    let starts_well = !first.is_uppercase() || second.is_uppercase() || second == '_';
    starts_well && (!message.ends_with('.') || message.ends_with("..."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_and_full_stops_are_found() {
        let text = "//! x\nfn a() {\n    Error::new(\n        Kind::Io,\n        \"Cannot open\",\n    );\n    \
                    CliError::fatal(\"it broke.\");\n    CliError::fatal(\"HEAD is odd\");\n}\n";
        let found = findings(&SourceFile::new("a.rs".to_owned(), text));
        let what: Vec<&str> = found.iter().map(|finding| finding.what.as_str()).collect();
        assert_eq!(what, ["message Cannot open", "message it broke."]);
    }
}
