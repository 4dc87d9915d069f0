//! The exemptions: code and text that may break a rule. The list only shrinks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The violated rule and its place: `file PATH`, `function PATH NAME`, `message TEXT`, `words
    /// UNIT`, `tuples UNIT` or `knot PATH`.
    pub(crate) what: String,
    /// The number of lines, phrases or parameters; of modules for a `knot`; 1 for a `message`.
    pub(crate) size: usize,
    pub(crate) rule: String,
}

/// The committed list: violations and their largest permitted sizes.
#[derive(Debug, Default)]
pub(crate) struct Exemptions(BTreeMap<String, AllowedSize>);

/// The limit of an exemption.
#[derive(Debug, Default)]
struct AllowedSize {
    size: usize,
    /// The reason for the exemption; empty if the rule needs no reason.
    reason: String,
}

/// Returns whether an exemption of `what` needs a reason, which follows ` # `.
fn needs_reason(what: &str) -> bool {
    what.starts_with("crate ") || what.starts_with("knot ")
}

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
                    let (what, reason) = match needs_reason(what) {
                        true => what.split_once(" # ").unwrap_or((what, "")),
                        false => (what, ""),
                    };
                    if needs_reason(what) && reason.is_empty() {
                        problems.push(format!("exemption without a reason: {line}"));
                    }
                    let reason = reason.to_owned();
                    exemptions.insert(what.to_owned(), AllowedSize { size, reason });
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
                Some(allowed) if allowed.size >= finding.size => {}
                Some(allowed) => problems.push(format!(
                    "{}: {} now, which its exemption of {} does not cover ({})",
                    finding.what, finding.size, allowed.size, finding.rule
                )),
                None => {
                    problems.push(format!(
                        "{}: {} ({})",
                        finding.what, finding.size, finding.rule
                    ));
                }
            }
        }
        for (what, AllowedSize { size: allowed, .. }) in &self.0 {
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
            "# What breaks a rule of `cargo xtask tidy` and is allowed to: size and name. Messages are here because git uses the same words. `words` counts phrases of xtask/words.txt, `tuples` tuple parameters.\n\
                        # The list only shrinks, except for messages: `cargo xtask tidy --ratchet` lowers it.\n"
                .to_owned();
        for (what, allowed) in &self.0 {
            if let Some(found) = findings.iter().find(|finding| finding.what == *what) {
                let size = found.size.min(allowed.size);
                let reason = match allowed.reason.as_str() {
                    "" => String::new(),
                    reason => format!(" # {reason}"),
                };
                // Writing to a string does not fail.
                let _ = writeln!(page, "{size} {what}{reason}");
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
            [
                ("file a", 600, ""),
                ("file b", 700, ""),
                ("file c", 800, ""),
                ("knot d", 3, "why"),
            ]
            .map(|(what, size, reason)| {
                let reason = reason.to_owned();
                (what.to_owned(), AllowedSize { size, reason })
            })
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
            found("knot d", 2),
        ];
        let mut problems = Vec::new();
        exemptions.compare(&findings, &mut problems);
        assert_eq!(problems.len(), 4, "{problems:?}");
        let lowered = exemptions.lowered(&findings);
        assert!(
            lowered.ends_with("600 file a\n650 file b\n2 knot d # why\n"),
            "{lowered}"
        );
    }
}
