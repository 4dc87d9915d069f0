//! The file of allowed failures: a line `SCRIPT CASE REASON` for each; `#` starts a comment line.

use std::collections::{BTreeMap, BTreeSet};

/// The failures that are allowed.
#[derive(Debug, Default)]
pub(super) struct Allowed {
    cases: BTreeMap<String, BTreeSet<u32>>,
}

impl Allowed {
    /// The failures that `text` lists.
    ///
    /// # Errors
    /// A line is not of this form, has no reason, or comes twice.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut allowed = Allowed::default();
        for (line, text) in (1..).zip(text.lines()) {
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let wrong = |what| format!("allowed failures, line {line}: {what}: '{text}'");
            let mut words = text.splitn(3, ' ');
            let script = words.next().unwrap_or_default();
            let number = words.next().and_then(|word| word.parse().ok());
            let number = number.ok_or_else(|| wrong("no number of a case"))?;
            if words.next().is_none_or(|reason| reason.trim().is_empty()) {
                return Err(wrong("no reason"));
            }
            if !allowed
                .cases
                .entry(script.to_owned())
                .or_default()
                .insert(number)
            {
                return Err(wrong("listed twice"));
            }
        }
        Ok(allowed)
    }

    /// Whether the case may fail.
    pub(super) fn contains(&self, script: &str, number: u32) -> bool {
        let cases = self.cases.get(script);
        cases.is_some_and(|cases| cases.contains(&number))
    }

    /// The scripts with cases that may fail.
    pub(super) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.cases.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_a_case_and_a_reason() {
        let allowed =
            Allowed::parse("# why\n\nt1 2 a reason\nt1 13 another\n").expect("well formed");
        assert!(allowed.contains("t1", 2) && allowed.contains("t1", 13));
        assert!(!allowed.contains("t1", 1) && !allowed.contains("t2", 2));
        for wrong in ["t1", "t1 x reason", "t1 2", "t1 2 ", "t1 2 a\nt1 2 b"] {
            assert!(Allowed::parse(wrong).is_err(), "{wrong}");
        }
    }
}
