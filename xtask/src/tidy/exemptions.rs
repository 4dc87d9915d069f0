//! The list of code and text that breaks a rule and is allowed to. It only shrinks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `file PATH`, `function PATH NAME`, `message TEXT` or `words UNIT`.
    pub(crate) what: String,
    /// The number of lines or phrases; 1 for a message.
    pub(crate) size: usize,
    pub(crate) rule: String,
}

/// The committed list: names of violations, with their largest permitted sizes.
#[derive(Debug, Default)]
pub(crate) struct Exemptions(BTreeMap<String, usize>);

impl Exemptions {
    pub(crate) fn read(path: &Path, problems: &mut Vec<String>) -> Self {
        let page = std::fs::read_to_string(path).unwrap_or_default();
        let mut exemptions = BTreeMap::new();
        for line in page
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            match line
                .split_once(' ')
                .map(|(size, what)| (size.parse(), what))
            {
                Some((Ok(size), what)) => {
                    exemptions.insert(what.to_owned(), size);
                }
                _ => problems.push(format!("malformed exemption: {line}")),
            }
        }
        Exemptions(exemptions)
    }

    /// Reports violations that are not exempt, and exemptions that can be lowered.
    pub(crate) fn compare(&self, findings: &[Finding], problems: &mut Vec<String>) {
        for finding in findings {
            match self.0.get(&finding.what) {
                Some(&allowed) if allowed >= finding.size => {}
                Some(allowed) => problems.push(format!(
                    "{}: {} now, which its exemption of {allowed} does not cover ({})",
                    finding.what, finding.size, finding.rule
                )),
                None => {
                    problems.push(format!(
                        "{}: {} ({})",
                        finding.what, finding.size, finding.rule
                    ));
                }
            }
        }
        for (what, allowed) in &self.0 {
            let size = findings
                .iter()
                .find(|finding| finding.what == *what)
                .map(|found| found.size);
            if size.is_none_or(|size| size < *allowed) {
                problems.push(format!(
                    "{what}: the exemption of {allowed} can be lowered: cargo xtask tidy --ratchet"
                ));
            }
        }
    }

    /// Formats the list, with each exemption lowered to the current size, or dropped.
    pub(crate) fn lowered(&self, findings: &[Finding]) -> String {
        let mut page =
            "# What breaks a rule of `cargo xtask tidy` and is allowed to: size and name. Messages are here because git uses the same words. `words` counts phrases of xtask/words.txt.\n\
                        # The list only shrinks, except for messages: `cargo xtask tidy --ratchet` lowers it.\n"
                .to_owned();
        for (what, allowed) in &self.0 {
            if let Some(found) = findings.iter().find(|finding| finding.what == *what) {
                // Writing to a string does not fail.
                let _ = writeln!(page, "{} {what}", found.size.min(*allowed));
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_only_shrinks() {
        let exemptions = Exemptions(
            [("file a", 600), ("file b", 700), ("file c", 800)]
                .map(|(what, size)| (what.to_owned(), size))
                .into(),
        );
        let found = |what: &str, size| Finding {
            what: what.to_owned(),
            size,
            rule: String::new(),
        };
        let findings = [
            found("file a", 600),
            found("file b", 650),
            found("file d", 900),
        ];
        let mut problems = Vec::new();
        exemptions.compare(&findings, &mut problems);
        assert_eq!(problems.len(), 3, "{problems:?}");
        let lowered = exemptions.lowered(&findings);
        assert!(lowered.ends_with("600 file a\n650 file b\n"), "{lowered}");
    }
}
