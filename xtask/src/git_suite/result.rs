//! The output of a script: lines `ok N - TITLE` and `not ok N - TITLE`, then the plan `1..N`.

use super::LIMIT_SECONDS;

/// The exit code of `timeout` after the time limit.
const TIMED_OUT: i32 = 124;

/// The result of a script.
#[derive(Debug)]
pub(super) struct Script {
    /// The name of the script, without `.sh`.
    pub(super) name: String,
    pub(super) passed: Vec<u32>,
    /// The failed cases with their titles, except for cases that Git expects to fail.
    pub(super) failed: Vec<(u32, String)>,
    code: i32,
    has_plan: bool,
}

impl Script {
    /// Parses the output of the script `name`, which ended with `code`.
    pub(super) fn parse(name: &str, code: i32, text: &str) -> Self {
        let mut script = Script {
            name: name.to_owned(),
            passed: Vec::new(),
            failed: Vec::new(),
            code,
            has_plan: false,
        };
        for line in text.lines() {
            if line.starts_with("1..") {
                script.has_plan = true;
            } else if let Some((number, _)) = case(line, "ok ") {
                script.passed.push(number);
            } else if let Some((number, title)) = case(line, "not ok ")
                && !title.contains("# TODO known breakage")
            {
                script.failed.push((number, title.to_owned()));
            }
        }
        script
    }

    /// Returns the reason for which the script did not run to its end, if it did not.
    pub(super) fn unfinished(&self) -> Option<String> {
        match (self.code, self.has_plan) {
            (TIMED_OUT, _) => Some(format!("takes more than {LIMIT_SECONDS} s")),
            (_, true) => None,
            (code, false) => Some(format!("ends with exit code {code} and without its plan")),
        }
    }
}

/// Returns the number and the title of the case in a line that starts with `prefix`.
fn case<'a>(line: &'a str, prefix: &str) -> Option<(u32, &'a str)> {
    let rest = line.strip_prefix(prefix)?;
    let (number, title) = rest.split_once(' ').unwrap_or((rest, ""));
    let title = title.strip_prefix("- ").unwrap_or(title);
    Some((number.parse().ok()?, title))
}

/// Returns whether `word` has the form of a script's name: `t0001-init`.
pub(super) fn is_script_name(word: &str) -> bool {
    let digits = word.strip_prefix('t').and_then(|rest| rest.get(..4));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        && !word.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_read_from_lines() {
        let text = "ok 1 - a\nok 2 # skip b (missing X)\nnot ok 3 - c # TODO known breakage\n\
                    #\tnot ok 9 - x\nnot ok 4 - d - e\n# failed\n1..4\n";
        let script = Script::parse("t0001-x", 1, text);
        assert_eq!(script.passed, [1, 2]);
        assert_eq!(script.failed, [(4, "d - e".to_owned())]);
        assert_eq!(script.unfinished(), None);
    }

    #[test]
    fn names_of_scripts_have_a_number() {
        assert!(is_script_name("t0001-init"));
        assert!(!is_script_name("../t0001-init") && !is_script_name("tests"));
    }
}
