//! A scenario: one repository, one place, one environment and the calls that are made there.
//!
//! Texts may contain `@ROOT@`, the directory that holds the repository and all that belongs to it.

use std::fmt::Write as _;

/// The text that stands for the directory of the scenario.
pub(super) const ROOT: &str = "@ROOT@";

/// All that decides what a run does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Scenario {
    /// The name of the recipe that makes the repository.
    pub(super) recipe: String,
    pub(super) place: Place,
    /// Variables, each with its value; `None` removes it.
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) settings: Vec<Setting>,
    pub(super) hooks: Vec<Hook>,
    /// The call under test, and perhaps one that uses its result.
    pub(super) calls: Vec<Call>,
}

/// The way in which a call finds its repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The current directory, relative to the root; the root if it does not exist.
    pub(super) directory: String,
    /// Arguments before the command: `-C`, `--git-dir`, `--work-tree`.
    pub(super) arguments: Vec<String>,
    /// Variables that belong to the place: `GIT_DIR`, `GIT_WORK_TREE`, `PWD`.
    pub(super) environment: Vec<(String, String)>,
}

/// The file or argument that holds a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Repository,
    Global,
    CommandLine,
    /// A file that the repository's configuration includes.
    Included,
    /// A file that is included if the user came through a symbolic link.
    Conditional,
}

impl Level {
    /// Returns the text that includes the file of the setting.
    pub(super) fn include(self) -> &'static str {
        match self {
            Level::Conditional => "[includeIf \"gitdir:@ROOT@/link/\"]\n\tpath = included\n",
            _ => "[include]\n\tpath = included\n",
        }
    }
}

/// A setting; `None` is a key without a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) level: Level,
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// The behaviour of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookKind {
    /// Records its arguments, directory and variables.
    Plain,
    /// Records the same and its standard input.
    ReadsInput,
    /// Records the same as `Plain` and fails.
    Fails,
    /// As `Plain`, without a line `#!`.
    WithoutInterpreter,
    /// As `Plain`, without the permission to execute it.
    NotExecutable,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hook {
    pub(super) name: String,
    pub(super) kind: HookKind,
    /// In `.githooks`, which `core.hooksPath` names as a relative path.
    pub(super) is_relative: bool,
}

/// One call of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Call {
    /// The command and its subcommand.
    pub(super) command: Vec<String>,
    /// Options, each of one or more arguments.
    pub(super) options: Vec<String>,
    /// The other arguments.
    pub(super) arguments: Vec<String>,
    /// Standard input; empty if none.
    pub(super) input: String,
    /// Git itself makes the call on both sides.
    pub(super) is_git: bool,
}

impl Call {
    /// Returns the arguments from the command on.
    pub(super) fn line(&self) -> Vec<String> {
        let mut line = self.command.clone();
        line.extend(self.options.iter().cloned());
        line.extend(self.arguments.iter().cloned());
        line
    }

    /// Returns the command as one text.
    pub(super) fn name(&self) -> String {
        self.command.join(" ")
    }
}

impl Setting {
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

impl Hook {
    /// Returns the path of the hook from the root.
    pub(super) fn path(&self) -> String {
        match self.is_relative {
            true => format!("r/.githooks/{}", self.name),
            false => format!("r/.git/hooks/{}", self.name),
        }
    }

    /// Returns the program. It appends what it sees to `@ROOT@/hooks.log`.
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

/// Quotes `text` for a shell if it needs that.
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
        let setting = |key: &str, value: Option<&str>| Setting {
            level: Level::Global,
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
