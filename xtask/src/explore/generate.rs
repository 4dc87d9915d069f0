//! Generates the scenario of a seed and a number.

use std::collections::BTreeMap;

use test_support::Random;

use super::scenario::{
    HookKind, ProgramCall, RepositorySelection, Scenario, ScenarioHook, ScenarioSetting,
    SettingLevel,
};
use super::{recipes, words};

/// The options and settings from which scenarios are generated, in addition to fixed words.
#[derive(Debug, Default)]
pub(super) struct Generator {
    /// The options of each command, as git lists them.
    pub(super) options: BTreeMap<String, Vec<String>>,
    /// The native settings, each with the note about its use.
    pub(super) settings: Vec<(String, String)>,
}

impl Generator {
    /// Reads the native settings from the table of settings.
    pub(super) fn read_settings(&mut self, table: &str) {
        let rows = table
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>());
        self.settings = rows
            .filter_map(|row| match row.as_slice() {
                ["config" | "config-unlisted", key, "native", _, place] if is_usable(key) => {
                    Some((concrete(key), (*place).to_owned()))
                }
                _ => None,
            })
            .collect();
    }

    /// Returns the commands whose options git lists.
    pub(super) fn commands() -> Vec<String> {
        let mut names: Vec<String> = rows().map(|row| row.command.to_owned()).collect();
        names.dedup();
        names
    }

    /// Returns the scenario of `number` in the sequence of `seed`.
    pub(super) fn scenario(&self, seed: u64, number: u64) -> Scenario {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        random.number();
        let recipes = recipes::all();
        let call = self.call(&mut random);
        let mut scenario = Scenario {
            recipe: random.one_of(&recipes).name.to_owned(),
            place: place(&mut random),
            calls: vec![call],
            ..Scenario::default()
        };
        if random.below(3) == 0 {
            let (name, values) = random.one_of(&words::VARIABLES);
            let value = random.one_of(values);
            let value = (*value != "-").then(|| (*value).to_owned());
            scenario.environment.push(((*name).to_owned(), value));
        }
        if random.below(2) == 0 && !self.settings.is_empty() {
            let setting = self.setting(&mut random, &scenario.calls[0]);
            scenario.settings.push(setting);
        }
        if random.below(5) == 0 {
            scenario.hooks.push(hook(&mut random));
        }
        if random.below(3) == 0 {
            scenario.calls.push(following(&mut random));
        }
        scenario
    }

    fn call(&self, random: &mut Random) -> ProgramCall {
        let rows: Vec<CommandRow> = rows().collect();
        let row = random.one_of(&rows);
        let forms: Vec<&str> = row.forms.split(';').collect();
        let form = random.one_of(&forms);
        let mut arguments: Vec<String> = form.split(' ').map(|word| filled(word, random)).collect();
        arguments.retain(|word| !word.is_empty() || form.contains('{'));
        let options = self.options.get(row.command).map_or(&[][..], Vec::as_slice);
        let count = [0, 0, 1, 1, 2, 3][random.index(6)];
        let options = match options {
            [] => Vec::new(),
            options => (0..count).map(|_| option(options, random)).collect(),
        };
        if random.below(25) == 0 {
            arguments.insert(
                random.index(arguments.len() + 1),
                "--end-of-options".to_owned(),
            );
        }
        let input = row.input.split("\\n").map(|line| filled(line, random));
        ProgramCall {
            command: row.command.split(' ').map(str::to_owned).collect(),
            options,
            arguments,
            input: input.collect::<Vec<_>>().join("\n"),
            is_git: false,
        }
    }

    fn setting(&self, random: &mut Random, call: &ProgramCall) -> ScenarioSetting {
        let command = call.command.first().map_or("", String::as_str);
        let of_command: Vec<_> = self
            .settings
            .iter()
            .filter(|(_, place)| place.contains(command) || place.contains("every command"))
            .collect();
        let key = match of_command.is_empty() || random.below(4) == 0 {
            true => &random.one_of(&self.settings).0,
            false => &random.one_of(&of_command).0,
        };
        let level = [
            SettingLevel::CommandLine,
            SettingLevel::Repository,
            SettingLevel::Global,
            SettingLevel::Included,
            SettingLevel::Conditional,
        ];
        let value = (random.below(8) != 0).then(|| (*random.one_of(&words::VALUES)).to_owned());
        ScenarioSetting {
            level: *random.one_of(&level),
            key: key.clone(),
            value,
        }
    }
}

/// A row of the table of commands.
#[derive(Clone, Copy, Debug)]
struct CommandRow {
    command: &'static str,
    forms: &'static str,
    input: &'static str,
}

fn rows() -> impl Iterator<Item = CommandRow> {
    words::COMMANDS.lines().filter_map(|line| {
        let mut columns = line.splitn(3, '|');
        Some(CommandRow {
            command: columns.next()?,
            forms: columns.next()?,
            input: columns.next()?,
        })
    })
}

/// Replaces the placeholders in `word`.
fn filled(word: &str, random: &mut Random) -> String {
    let mut text = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('{') {
        let (placeholder, after) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(before);
        let chosen: &&str = random.one_of(words::of(placeholder));
        text.push_str(chosen);
        rest = after;
    }
    text + rest
}

/// Returns a random option of `options`, with a value if the option needs one.
fn option(options: &[String], random: &mut Random) -> String {
    let option = random.one_of(options);
    match option.ends_with('=') {
        true => format!("{option}{}", random.one_of(&words::VALUES)),
        false => option.clone(),
    }
}

fn place(random: &mut Random) -> RepositorySelection {
    // Half of all scenarios run in the top directory of the worktree.
    let position = random.index(words::PLACES.len() * 2);
    let (directory, arguments, variables) =
        words::PLACES.get(position).unwrap_or(&words::PLACES[0]);
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    RepositorySelection {
        directory: (*directory).to_owned(),
        arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
        environment: variables.iter().map(owned).collect(),
    }
}

fn hook(random: &mut Random) -> ScenarioHook {
    let kinds = [
        HookKind::Plain,
        HookKind::ReadsInput,
        HookKind::Fails,
        HookKind::WithoutInterpreter,
        HookKind::NotExecutable,
    ];
    ScenarioHook {
        name: (*random.one_of(&words::HOOKS)).to_owned(),
        kind: *random.one_of(&kinds),
        is_relative: random.below(2) == 0,
    }
}

fn following(random: &mut Random) -> ProgramCall {
    let line = random.one_of(&words::FOLLOWING);
    let mut line = line.split(' ').map(str::to_owned);
    let command: Vec<String> = line.next().into_iter().collect();
    ProgramCall {
        is_git: command.iter().any(|name| name == "fsck"),
        command,
        arguments: line.collect(),
        ..ProgramCall::default()
    }
}

/// Returns whether a setting starts no program, daemon or connection.
fn is_usable(key: &str) -> bool {
    let excluded = [
        "alias.",
        "http.",
        "credential.",
        "trace2.",
        "gpg.",
        "fsmonitor.",
        "include",
        "hasconfig",
        "bundle.",
    ];
    let detaches = key.to_lowercase().contains("autodetach");
    !detaches && !key.ends_with('*') && !excluded.iter().any(|start| key.starts_with(start))
}

/// Replaces the placeholders in the name of a setting.
fn concrete(key: &str) -> String {
    let names = [
        ("remote.<name>", "remote.origin"),
        ("branch.<name>", "branch.main"),
        ("submodule.<name>", "submodule.sub"),
        ("<driver>", "up"),
        ("<base>", "x:"),
        ("remotes.<group>", "remotes.g"),
        ("protocol.<name>", "protocol.file"),
        ("<msg-id>", "badDate"),
        ("<event>", "pre-commit"),
        ("<task>", "gc"),
        ("<pattern>", "refs/heads/*"),
        ("<filter>", "blob:none"),
    ];
    names
        .iter()
        .fold(key.to_owned(), |key, (from, to)| key.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator() -> Generator {
        let mut generator = Generator::default();
        generator.read_settings(
            "config\tcore.bare\tnative\tno\tevery command\nconfig\tx.y\tgit\tno\tx\n\
             config\tremote.<name>.url\tnative\tno\tfetch\nconfig\thttp.proxy\tnative\tno\tfetch\n",
        );
        let options = vec!["--force".to_owned(), "--depth=".to_owned()];
        generator.options.insert("fetch".to_owned(), options);
        generator
    }

    #[test]
    fn a_seed_and_a_number_decide_everything() {
        let (first, second) = (generator(), generator());
        for number in 0..200 {
            assert_eq!(first.scenario(7, number), second.scenario(7, number));
        }
        assert_ne!(first.scenario(7, 1), first.scenario(8, 1));
        assert_ne!(first.scenario(7, 1), first.scenario(7, 2));
    }

    #[test]
    fn only_native_settings_without_connections_are_used() {
        let keys: Vec<String> = generator()
            .settings
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, ["core.bare", "remote.origin.url"]);
    }

    #[test]
    fn all_placeholders_of_a_word_are_replaced() {
        let mut random = Random::new(1);
        assert!(!filled("{rev}..{rev}", &mut random).contains("{rev"));
        assert_eq!(filled("--all", &mut random), "--all");
    }

    #[test]
    fn every_recipe_and_command_comes() {
        let generator = generator();
        let made: Vec<Scenario> = (0..5000)
            .map(|number| generator.scenario(1, number))
            .collect();
        for recipe in recipes::all() {
            assert!(made.iter().any(|scenario| scenario.recipe == recipe.name));
        }
        for command in Generator::commands() {
            assert!(
                made.iter()
                    .any(|scenario| scenario.calls[0].name() == command)
            );
        }
    }
}
