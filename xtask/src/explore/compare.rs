//! Finds the differences between two outcomes, and determines the cause of each.

use std::collections::BTreeSet;

use super::known::KnownDifferences;
use super::process::ProcessOutput;
use super::rules;
use super::run::Outcome;
use super::scenario::Scenario;

/// The number of characters of a line that are part of a cause.
const LINE_CHARACTERS: usize = 160;

/// The text for a side that has no objects which the other side lacks.
pub(super) const NO_OTHERS: &str = "(no others)";

/// The kind of a difference in messages if both programs fail with the same exit code.
pub(super) const FAILURE: &str = "failure";

/// A part of the outcome that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutcomeDifference {
    /// The kind of the part: `exit code`, `stdout`, `stderr`, [`FAILURE`] or the kind of a file.
    pub(super) kind: &'static str,
    /// The command that printed the output. For files, this is the first command of the scenario.
    pub(super) command: String,
    /// The first line that differs, preceded by the path if the part is a file.
    pub(super) git: String,
    pub(super) pronto: String,
}

impl OutcomeDifference {
    /// Returns whether only messages differ.
    pub(super) fn is_message(&self) -> bool {
        [FAILURE, "stderr"].contains(&self.kind)
    }

    /// Returns the text by which differences are grouped.
    ///
    /// If a program refuses a setting or variable, this is one cause for all commands.
    pub(super) fn cause(&self) -> String {
        if let Some(subject) = refused_setting(&self.git).or_else(|| refused_setting(&self.pronto))
        {
            let is_refused = [&self.git, &self.pronto].map(|line| refused_setting(line).is_some());
            return format!("{} | {subject} | {is_refused:?}", self.kind);
        }
        let lines = [&self.git, &self.pronto].map(|line| normalised(line));
        format!(
            "{} | {} | {} | {}",
            self.command, self.kind, lines[0], lines[1]
        )
    }
}

/// The result of comparing two outcomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ComparisonResult {
    Same,
    /// All differences are in the list of known differences. The text is the title of the first
    /// one.
    Known(String),
    Different(OutcomeDifference),
}

/// Compares two outcomes. If git crashes, its outcome is not an oracle, and the result is
/// [`ComparisonResult::Same`].
pub(super) fn judge(
    scenario: &Scenario,
    outcomes: &Outcomes<'_>,
    known: &KnownDifferences,
) -> ComparisonResult {
    let crashed = |output: &ProcessOutput| output.end.starts_with("signal");
    if outcomes.git.outputs.iter().any(crashed) {
        return ComparisonResult::Same;
    }
    let mut first_known = None;
    for difference in differences(scenario, outcomes.git, outcomes.pronto) {
        if rules::accepting(&difference).is_some() {
            continue;
        }
        let Some(title) = known.title(&difference.cause()) else {
            return ComparisonResult::Different(difference);
        };
        first_known.get_or_insert_with(|| title.to_owned());
        // After a difference of messages, later differences may have causes of their own. After a
        // different exit code, they are consequences.
        if !difference.is_message() {
            break;
        }
    }
    first_known.map_or(ComparisonResult::Same, ComparisonResult::Known)
}

/// The outcomes of a scenario with both programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcomes<'a> {
    pub(super) git: &'a Outcome,
    pub(super) pronto: &'a Outcome,
}

/// Returns all differences: those of outputs in the order of the calls, then those of files.
fn differences(scenario: &Scenario, git: &Outcome, pronto: &Outcome) -> Vec<OutcomeDifference> {
    let mut found = Vec::new();
    for ((call, git), pronto) in scenario.calls.iter().zip(&git.outputs).zip(&pronto.outputs) {
        let is_failure = git.end == pronto.end && git.end != "0";
        let messages = if is_failure { FAILURE } else { "stderr" };
        let parts = [
            ("exit code", &git.end, &pronto.end),
            (messages, &git.stderr, &pronto.stderr),
            ("stdout", &git.stdout, &pronto.stdout),
        ];
        for (kind, git_text, pronto_text) in parts {
            let Some((mut left, mut right)) = differing_lines(git_text, pronto_text) else {
                continue;
            };
            if kind == "exit code" {
                // The message describes the cause better than the exit code.
                let line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
                left = format!("{left}: {}", line(&git.stderr));
                right = format!("{right}: {}", line(&pronto.stderr));
            }
            let command = call.name();
            found.push(OutcomeDifference {
                kind,
                command,
                git: left,
                pronto: right,
            });
        }
    }
    let command = scenario
        .calls
        .first()
        .map(super::scenario::ProgramCall::name)
        .unwrap_or_default();
    let parts: BTreeSet<_> = git.state.keys().chain(pronto.state.keys()).collect();
    for part in parts {
        let texts =
            [git, pronto].map(|side| side.state.get(part).map_or("(absent)", String::as_str));
        let lines = match part.kind {
            "objects" => differing_sets(texts[0], texts[1]),
            _ => differing_lines(texts[0], texts[1]),
        };
        if let Some((left, right)) = lines {
            found.push(OutcomeDifference {
                kind: part.kind,
                command: command.clone(),
                git: format!("{}: {left}", part.path),
                pronto: format!("{}: {right}", part.path),
            });
        }
    }
    found
}

/// Returns the name of the setting or variable that a message refuses.
fn refused_setting(message: &str) -> Option<String> {
    let starts = [
        "config value '",
        "environment value '",
        "missing value for '",
        "invalid value for '",
    ];
    if let Some(variable) = message.find("GIT_CONFIG_") {
        return Some(message[variable..].to_lowercase());
    }
    let start = starts.into_iter().find(|start| message.contains(start))?;
    let rest = message.split_once(start)?.1;
    let name = match start.contains("for") {
        true => rest,
        false => rest.split_once("' for '")?.1,
    };
    Some(name.split('\'').next()?.to_lowercase())
}

/// Returns the first pair of lines that differ.
fn differing_lines(git: &str, pronto: &str) -> Option<(String, String)> {
    if git == pronto {
        return None;
    }
    let (mut left, mut right) = (git.lines(), pronto.lines());
    loop {
        match (left.next(), right.next()) {
            // Only the line end of the last line differs.
            (None, None) => return Some(("(end)".to_owned(), "(another end)".to_owned())),
            (left, right)
                if stable(left.unwrap_or("")) == stable(right.unwrap_or(""))
                    && left.is_some() == right.is_some() =>
            {
                if left != right && git.lines().map(stable).eq(pronto.lines().map(stable)) {
                    return None;
                }
            }
            (left, right) => {
                let line = |line: Option<&str>| line.unwrap_or("(end)").to_owned();
                return Some((line(left), line(right)));
            }
        }
    }
}

/// Returns the first line that only `git` has, and the first line that only `pronto` has, or `None`
/// if both have the same lines.
fn differing_sets(git: &str, pronto: &str) -> Option<(String, String)> {
    let [left, right] = [git, pronto].map(|text| text.lines().collect::<BTreeSet<_>>());
    let only = |one: &BTreeSet<&str>, other: &BTreeSet<&str>| {
        let first = one.difference(other).next();
        first.copied().unwrap_or(NO_OTHERS).to_owned()
    };
    (left != right).then(|| (only(&left, &right), only(&right, &left)))
}

/// Replaces text that differs between two runs of the same program: the pack checksums in file
/// names.
fn stable(line: &str) -> String {
    let Some((before, rest)) = line.split_once('-') else {
        return line.to_owned();
    };
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    match digits {
        40 | 64 if rest[digits..].starts_with('.') => format!("{before}-ID{}", &rest[digits..]),
        _ => line.to_owned(),
    }
}

/// Replaces names, numbers and ids, so that messages of the same kind are equal.
fn normalised(line: &str) -> String {
    let mut text = String::new();
    let mut quote = None;
    for word in line.split_inclusive([' ', '\t', ':', '\'', '"']) {
        let end = word
            .chars()
            .last()
            .filter(|end| [' ', '\t', ':', '\'', '"'].contains(end));
        let bare = end.map_or(word, |end| word.strip_suffix(end).unwrap_or(word));
        let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        let is_id = bare.len() >= 7 && bare.bytes().all(|byte| byte.is_ascii_hexdigit());
        match quote {
            Some(_) if end == quote => text.push('_'),
            Some(_) => continue,
            None if is_id => text.push_str("ID"),
            None if is_number && text.contains(' ') => text.push('N'),
            None if bare.contains('/') => text.push_str("PATH"),
            None => text.push_str(bare),
        }
        text.extend(end);
        quote = match (quote, end) {
            (None, Some('\'' | '"')) => end,
            _ => None,
        };
    }
    text.chars().take(LINE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ids_do_not_distinguish_causes() {
        let first = normalised("fatal: 'a b' does not exist in 'HEAD'");
        assert_eq!(first, "fatal: '_' does not exist in '_'");
        assert_eq!(
            normalised("bad object 0123456789 at 12"),
            "bad object ID at N"
        );
        assert_eq!(normalised("cannot read d/e/c: x"), "cannot read PATH: x");
    }

    #[test]
    fn a_refused_setting_is_one_cause_for_all_commands() {
        let cause = |command: &str, line: &str| {
            let difference = OutcomeDifference {
                kind: "exit code",
                command: command.to_owned(),
                git: line.to_owned(),
                pronto: "0: ".to_owned(),
            };
            difference.cause()
        };
        let line = "128: fatal: bad boolean config value 'x' for 'core.bare'";
        assert_eq!(
            cause("add", line),
            cause("status", &line.replace("'x'", "'y'"))
        );
        assert_ne!(
            cause("add", line),
            cause("add", &line.replace("bare", "eol"))
        );
        assert_ne!(cause("add", "1: failed"), cause("status", "1: failed"));
    }

    #[test]
    fn the_first_differing_lines_are_found() {
        let lines = |git, pronto| differing_lines(git, pronto);
        assert_eq!(
            lines("a\nb\n", "a\nc\n"),
            Some(("b".to_owned(), "c".to_owned()))
        );
        assert_eq!(
            lines("a\n", "a\nc\n"),
            Some(("(end)".to_owned(), "c".to_owned()))
        );
        assert_eq!(lines("a", "a"), None);
    }

    #[test]
    fn objects_are_compared_as_sets() {
        let sets = differing_sets("a\nb\nc", "a\nc");
        assert_eq!(sets, Some(("b".to_owned(), NO_OTHERS.to_owned())));
        assert_eq!(differing_sets("a\nb", "a\nb"), None);
    }

    #[test]
    fn checksums_of_packs_do_not_differ() {
        let line = |digit: &str| format!("x pack-{}.idx\n", digit.repeat(40));
        assert_eq!(differing_lines(&line("a"), &line("b")), None);
        assert!(differing_lines("pack-a", "pack-b").is_some());
    }
}
