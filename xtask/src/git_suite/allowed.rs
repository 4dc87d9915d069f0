//! The list of allowed failures: a line `SCRIPT CASE REASON` for each; `#` starts a comment line. A
//! `?` after the number marks a case whose result depends on the clock, so that it may pass as
//! well.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The allowed failures.
#[derive(Debug, Default)]
pub(super) struct AllowedFailures {
    /// The path of the list, relative to the top of the workspace.
    file: String,
    cases: BTreeMap<String, BTreeSet<u32>>,
    /// The cases whose result depends on the clock, by script.
    uncertain: BTreeMap<String, BTreeSet<u32>>,
    /// A further list, whose cases may fail or pass.
    other: Option<Box<AllowedFailures>>,
}

impl AllowedFailures {
    /// Reads a list at a path relative to the top of the workspace.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is malformed.
    pub(super) fn read(root: &Path, file: &str) -> Result<Self, String> {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read '{}': {error}", path.display()))?;
        Self::parse(file, &text)
    }

    /// Adds a list whose cases may fail or pass.
    pub(super) fn or(mut self, other: AllowedFailures) -> Self {
        self.other = Some(Box::new(other));
        self
    }

    /// Returns the path of the list.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Parses `text`, the content of `file`.
    ///
    /// # Errors
    /// Fails if a line does not have this form, has no reason, or is a duplicate.
    pub(super) fn parse(file: &str, text: &str) -> Result<Self, String> {
        let mut allowed = AllowedFailures {
            file: file.to_owned(),
            ..AllowedFailures::default()
        };
        for (line, text) in (1..).zip(text.lines()) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |what| format!("{file}:{line}: {what}: '{text}'");
            let mut words = text.splitn(3, ' ');
            let script = words.next().unwrap_or_default();
            let word = words.next().unwrap_or_default();
            let (digits, cases) = match word.strip_suffix('?') {
                Some(digits) => (digits, &mut allowed.uncertain),
                None => (word, &mut allowed.cases),
            };
            let number = digits.parse().map_err(|_| wrong("no number of a case"))?;
            if words.next().is_none_or(|reason| reason.trim().is_empty()) {
                return Err(wrong("no reason"));
            }
            if !cases.entry(script.to_owned()).or_default().insert(number) {
                return Err(wrong("listed twice"));
            }
        }
        Ok(allowed)
    }

    /// Returns whether the case may fail.
    pub(super) fn contains(&self, script: &str, number: u32) -> bool {
        let other = self.other.as_ref();
        let uncertain = self.uncertain.get(script);
        self.must_fail(script, number)
            || uncertain.is_some_and(|cases| cases.contains(&number))
            || other.is_some_and(|list| list.contains(script, number))
    }

    /// Returns whether the case is in this list itself, in which cases must fail.
    pub(super) fn must_fail(&self, script: &str, number: u32) -> bool {
        let cases = self.cases.get(script);
        cases.is_some_and(|cases| cases.contains(&number))
    }

    /// Returns the scripts with cases that may fail.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &str> {
        let all = self.cases.keys().chain(self.uncertain.keys());
        all.map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_a_case_and_a_reason() {
        let allowed = AllowedFailures::parse("list", "# why\n\nt1 2 a reason\nt1 13 another\n")
            .expect("well formed");
        assert!(allowed.contains("t1", 2) && allowed.contains("t1", 13));
        assert!(!allowed.contains("t1", 1) && !allowed.contains("t2", 2));
        let other = AllowedFailures::parse("other", "t2 2 a reason").expect("well formed");
        let both = allowed.or(other);
        assert!(both.contains("t1", 2) && both.contains("t2", 2) && !both.must_fail("t2", 2));
        let clock = AllowedFailures::parse("clock", "t3 4? a reason").expect("well formed");
        assert!(clock.contains("t3", 4) && !clock.must_fail("t3", 4));
        for wrong in ["t1", "t1 x reason", "t1 2", "t1 2 ", "t1 2 a\nt1 2 b"] {
            assert!(AllowedFailures::parse("list", wrong).is_err(), "{wrong}");
        }
    }
}
