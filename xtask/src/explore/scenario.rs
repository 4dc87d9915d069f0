//! A scenario: a repository, a current directory, an environment, and the calls to run.
//!
//! Texts may contain `@ROOT@`, the directory that contains the repository and all other files of
//! the scenario.

use std::fmt::Write as _;

/// The placeholder for the directory of the scenario.
pub(super) const ROOT: &str = "@ROOT@";

/// The complete input of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scenario {
    /// The name of the recipe that creates the repository.
    pub(super) recipe: String,
    pub(super) place: RepositorySelection,
    /// Environment variables and their values; `None` removes a variable.
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) settings: Vec<ScenarioSetting>,
    pub(super) hooks: Vec<ScenarioHook>,
    /// The call under test, and optionally a call that uses its result.
    pub(super) calls: Vec<ProgramCall>,
}

/// The current directory, arguments and variables by which a call finds its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RepositorySelection {
    /// The current directory, relative to the root of the scenario. If it does not exist, the root
    /// is used.
    pub(super) directory: String,
    /// The options before the command: `-C`, `--git-dir`, `--work-tree`.
    pub(super) arguments: Vec<String>,
    /// The environment variables of the repository: `GIT_DIR`, `GIT_WORK_TREE`, `PWD`.
    pub(super) environment: Vec<(String, String)>,
}

/// The file or argument that contains a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingLevel {
    Repository,
    Global,
    CommandLine,
    /// A file that the repository's configuration includes (`include.path`).
    Included,
    /// A file that is included only if the current directory was entered through a symbolic link
    /// (`includeIf`).
    Conditional,
}

impl SettingLevel {
    /// Returns the configuration that includes the file of the setting.
    pub(super) fn include(self) -> &'static str {
        match self {
            SettingLevel::Conditional => "[includeIf \"gitdir:@ROOT@/link/\"]\n\tpath = included\n",
            _ => "[include]\n\tpath = included\n",
        }
    }
}

/// A setting and its value; `None` is a key without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScenarioSetting {
    pub(super) level: SettingLevel,
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// The behaviour of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKind {
    /// A hook that records its arguments, directory and variables.
    Plain,
    /// A hook that also records its standard input.
    ReadsInput,
    /// A hook like `Plain` that fails.
    Fails,
    /// A hook like `Plain` without a `#!` line.
    WithoutInterpreter,
    /// A hook like `Plain` that is not executable.
    NotExecutable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScenarioHook {
    pub(super) name: String,
    pub(super) kind: HookKind,
    /// Whether the hook is in `.githooks`, which `core.hooksPath` names as a relative path.
    pub(super) is_relative: bool,
}

/// One call of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramCall {
    /// The command and its subcommand, if any.
    pub(super) command: Vec<String>,
    /// The options, each with its value, if any.
    pub(super) options: Vec<String>,
    /// The remaining arguments.
    pub(super) arguments: Vec<String>,
    /// The standard input; empty for none.
    pub(super) input: String,
    /// Whether git runs the call on both sides.
    pub(super) is_git: bool,
}

impl ProgramCall {
    /// Returns the arguments, beginning with the command.
    pub(super) fn line(&self) -> Vec<String> {
        let mut line = self.command.clone();
        line.extend(self.options.iter().cloned());
        line.extend(self.arguments.iter().cloned());
        line
    }

    /// Returns the command and subcommand as one text.
    pub(super) fn name(&self) -> String {
        self.command.join(" ")
    }
}

impl ScenarioSetting {
    /// Returns the text of a configuration file with this setting.
    pub(super) fn text(&self) -> String {
        let (section, name) = self.key.rsplit_once('.').unwrap_or(("x", &self.key));
        let header = match section.split_once('.') {
            Some((section, subsection)) => format!("[{section} \"{subsection}\"]"),
            None => format!("[{section}]"),
        };
        match &self.value {
            Some(value) => format!("{header}\n\t{name} = {}\n", quoted_value(value)),
            None => format!("{header}\n\t{name}\n"),
        }
    }

    /// Returns the argument of `-c`.
    pub(super) fn argument(&self) -> String {
        match &self.value {
            Some(value) => format!("{}={value}", self.key),
            None => self.key.clone(),
        }
    }
}

/// Quotes a value for a configuration file.
fn quoted_value(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

impl ScenarioHook {
    /// Returns the path of the hook, relative to the root of the scenario.
    pub(super) fn path(&self) -> String {
        match self.is_relative {
            true => format!("r/.githooks/{}", self.name),
            false => format!("r/.git/hooks/{}", self.name),
        }
    }

    /// Returns the hook script. It appends its observations to `@ROOT@/hooks.log`.
    pub(super) fn script(&self) -> String {
        let mut script = String::new();
        if self.kind != HookKind::WithoutInterpreter {
            script.push_str("#!/bin/sh\n");
        }
        let _ = writeln!(
            script,
            "exec 9>>{ROOT}/hooks.log\necho \"{} $* in $(pwd)\" >&9",
            self.name
        );
        script.push_str("env | grep '^GIT_[DIWPRC][INROE]' | grep -v _DATE | sort >&9\n");
        match self.kind {
            HookKind::ReadsInput => script.push_str("cat >&9\n"),
            HookKind::Fails => script.push_str("echo refused >&2\nexit 1\n"),
            _ => {}
        }
        script
    }

    pub(super) fn mode(&self) -> u32 {
        match self.kind {
            HookKind::NotExecutable => 0o644,
            _ => 0o755,
        }
    }
}

/// Quotes `text` for a shell if necessary.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:@%+,".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_becomes_text_of_a_file() {
        let setting = |key: &str, value: Option<&str>| ScenarioSetting {
            level: SettingLevel::Global,
            key: key.to_owned(),
            value: value.map(str::to_owned),
        };
        let written = setting("remote.a.b.url", Some("x\"y")).text();
        assert_eq!(written, "[remote \"a.b\"]\n\turl = \"x\\\"y\"\n");
        assert_eq!(setting("core.bare", None).text(), "[core]\n\tbare\n");
    }

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        assert_eq!(quoted("--all"), "--all");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
