//! The list of known differences, which are not fixed yet.

use std::collections::BTreeMap;

/// The known differences: titles, each with the causes that belong to the title.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownDifferences {
    kinds: Vec<Kind>,
}

#[derive(Clone, Debug, Default)]
struct Kind {
    title: String,
    /// The patterns for causes, in which `*` matches any text.
    patterns: Vec<String>,
}

impl KnownDifferences {
    /// Parses the list. A line `== TITLE` begins a kind, and each other line is a pattern for
    /// causes. Empty lines, lines that start with `#`, and lines that start with a space (examples)
    /// are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let mut kinds: Vec<Kind> = Vec::new();
        for line in text.lines() {
            if let Some(title) = line.strip_prefix("== ") {
                kinds.push(Kind {
                    title: title.to_owned(),
                    patterns: Vec::new(),
                });
            } else if !line.is_empty()
                && !line.starts_with(['#', ' '])
                && let Some(kind) = kinds.last_mut()
            {
                kind.patterns.push(line.to_owned());
            }
        }
        KnownDifferences { kinds }
    }

    /// Returns the title of the kind to which a cause belongs.
    pub(super) fn title(&self, cause: &str) -> Option<&str> {
        let kind = self.kinds.iter().find(|kind| {
            let mut patterns = kind.patterns.iter();
            patterns.any(|pattern| matches(pattern, cause))
        });
        kind.map(|kind| kind.title.as_str())
    }
}

/// Formats the counts of known differences, the most frequent first.
pub(super) fn summary(counts: &BTreeMap<String, u64>) -> String {
    let mut rows: Vec<_> = counts.iter().map(|(title, count)| (count, title)).collect();
    rows.sort_by_key(|(count, title)| (std::cmp::Reverse(**count), (*title).clone()));
    let lines = rows
        .iter()
        .map(|(count, title)| format!("known: {count:6} {title}\n"));
    lines.collect()
}

/// Returns whether `text` matches `pattern`.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(position) => text = &text[position + part.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        assert!(matches("a | * | c", "a | b | c"));
        assert!(matches("a*", "a"));
        assert!(matches("a*b*", "a x b"));
        assert!(!matches("a*b", "a b c"));
        assert!(!matches("ab*ba", "aba"));
        assert!(matches("plain", "plain") && !matches("plain", "plain "));
    }

    #[test]
    fn a_list_has_titles_and_examples() {
        let known =
            KnownDifferences::parse("# about\n== First\n  cd r\nadd | *\n\n== Second\ninit | x\n");
        assert_eq!(known.title("add | anything"), Some("First"));
        assert_eq!(known.title("init | x"), Some("Second"));
        assert_eq!(known.title("cd r"), None);
    }

    #[test]
    fn no_kind_of_the_list_holds_everything() {
        let known = KnownDifferences::parse(include_str!("known.txt"));
        for kind in &known.kinds {
            assert!(!kind.patterns.is_empty(), "{}", kind.title);
        }
        for cause in ["", "add | exit code | 0: | 1:", "add | index | x | y"] {
            assert_eq!(known.title(cause), None);
        }
    }
}
