//! Groups the differences and refusals of a run, and formats the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::compare::OutcomeDifference;
use super::recipes;
use super::run::arguments;
use super::scenario::{HookKind, Scenario, SettingLevel, quoted};

/// Scenarios with differences of the same cause.
#[derive(Debug)]
pub(super) struct CauseGroup {
    pub(super) hits: u64,
    /// The number of the first scenario with this cause.
    pub(super) number: u64,
    pub(super) smallest: Scenario,
    pub(super) difference: OutcomeDifference,
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) scenarios: u64,
    /// The number of refusals by command and message.
    pub(super) refusals: BTreeMap<String, BTreeMap<String, u64>>,
    pub(super) groups: BTreeMap<String, CauseGroup>,
    /// The number of scenarios by the title of their known difference.
    pub(super) known: BTreeMap<String, u64>,
}

impl Report {
    /// Formats the refusals as a Markdown table, the most frequent first.
    pub(super) fn table(&self) -> String {
        let mut rows = Vec::new();
        for (command, messages) in &self.refusals {
            rows.extend(
                messages
                    .iter()
                    .map(|(message, count)| (count, command, message)),
            );
        }
        rows.sort_by_key(|(count, _, _)| std::cmp::Reverse(*count));
        let mut table = "| command | refused | scenarios |\n|---|---|---|\n".to_owned();
        for (count, command, message) in rows {
            let message = message.replace('|', "\\|");
            let _ = writeln!(table, "| `{command}` | {message} | {count} |");
        }
        table
    }

    /// Formats the groups of differences, the most frequent first.
    pub(super) fn differences(&self, seed: u64) -> String {
        let mut groups: Vec<&CauseGroup> = self.groups.values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.hits));
        groups
            .iter()
            .fold(String::new(), |text, group| text + &group.text(seed))
    }
}

impl CauseGroup {
    fn text(&self, seed: u64) -> String {
        let OutcomeDifference {
            kind,
            command,
            git,
            pronto,
        } = &self.difference;
        let (number, hits) = (self.number, self.hits);
        let title = format!("== {command}: {kind} ({hits} hits, --replay {seed}:{number})");
        format!(
            "{title}\n{}# git:    {git}\n# pronto: {pronto}\n# cause:  {}\n\n",
            script(&self.smallest),
            self.difference.cause()
        )
    }
}

/// Formats a scenario as the lines of a differential case.
pub(super) fn script(scenario: &Scenario) -> String {
    let name = &scenario.recipe;
    let recipe = recipes::all()
        .into_iter()
        .find(|recipe| recipe.name == *name);
    let mut text = format!(
        "# recipe {name}\n(\n{})\n",
        recipe.map_or("", |recipe| recipe.script)
    );
    text.push_str("ln -s r link\n");
    for setting in &scenario.settings {
        let (file, content) = match setting.level {
            SettingLevel::CommandLine => continue,
            SettingLevel::Global => ("home/.gitconfig", setting.text()),
            SettingLevel::Repository => ("r/.git/config", setting.text()),
            SettingLevel::Included | SettingLevel::Conditional => {
                let include = quoted(setting.level.include());
                let _ = writeln!(text, "printf '%s' {include} >>r/.git/config");
                ("r/.git/included", setting.text())
            }
        };
        let _ = writeln!(text, "printf '%s' {} >>{file}", quoted(&content));
    }
    for hook in &scenario.hooks {
        let path = hook.path();
        let script = quoted(&hook.script());
        let _ = writeln!(
            text,
            "mkdir -p {}\nprintf '%s' {script} >{path}",
            folder(&path)
        );
        if hook.kind != HookKind::NotExecutable {
            let _ = writeln!(text, "chmod +x {path}");
        }
    }
    if !scenario.place.directory.is_empty() {
        let _ = writeln!(text, "cd {}", scenario.place.directory);
    }
    for call in &scenario.calls {
        if !call.input.is_empty() {
            let _ = write!(text, "printf '%s' {} | ", quoted(&call.input));
        }
        for (name, value) in &scenario.place.environment {
            let _ = write!(text, "{name}={} ", quoted(value));
        }
        for (name, value) in &scenario.environment {
            match value {
                Some(value) => _ = write!(text, "{name}={} ", quoted(value)),
                None => _ = write!(text, "env -u {name} "),
            }
        }
        text.push_str(if call.is_git { "git" } else { "vcs" });
        for argument in arguments(scenario, call) {
            let _ = write!(text, " {}", quoted(&argument));
        }
        text.push('\n');
    }
    text
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(folder, _)| folder)
}
