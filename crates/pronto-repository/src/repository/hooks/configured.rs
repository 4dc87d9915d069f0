//! Hooks in the configuration: `hook.NAME.event` and `hook.NAME.command` (`git-hook(1)`).

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice as _};

use crate::config::{Config, Key, value};
use crate::{Error, ErrorKind, Result};

/// The events of Git. A hook in the configuration cannot have the name of one: `hook.NAME.enabled` would have two
/// meanings.
const EVENTS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// A value of `hook.NAME.event`.
struct EventOfHook<'a> {
    name: &'a BStr,
    event: &'a BStr,
}

/// The section `hook` of a configuration.
#[derive(Default)]
struct HookSection<'a> {
    /// The events of all hooks, in the order in which the hooks run.
    events: Vec<EventOfHook<'a>>,
    commands: BTreeMap<&'a BStr, &'a BStr>,
    /// The names of hooks, and of events, with `hook.NAME.enabled` set to false.
    disabled: BTreeSet<&'a BStr>,
    /// The names of hooks with `hook.NAME.parallel` set to true.
    parallel: BTreeSet<&'a BStr>,
}

impl<'a> HookSection<'a> {
    fn of(config: &'a Config) -> Result<Self> {
        let mut section = HookSection::default();
        for entry in config.iter() {
            if !entry.key.starts_with(b"hook.") {
                continue;
            }
            let key = Key::split(entry.key);
            let Some(name) = key.subsection else {
                continue;
            };
            let Some(text) = entry.value else {
                let message = format!("missing value for '{}'", entry.key);
                return Err(Error::new(ErrorKind::ConfigValue, message));
            };
            section.take(name, key.variable, text)?;
        }
        section.check_commands()?;
        Ok(section)
    }

    /// Takes the value of `hook.NAME.VARIABLE`.
    fn take(&mut self, name: &'a BStr, variable: &BStr, text: &'a BStr) -> Result<()> {
        match variable.as_bytes() {
            // An empty value resets the events of the hook.
            b"event" if text.is_empty() => self.events.retain(|known| known.name != name),
            b"event" => {
                if EVENTS
                    .iter()
                    .any(|event| event.as_bytes() == name.as_bytes())
                {
                    let message = format!(
                        "hook friendly-name '{name}' collides with a known event name; please choose a different \
                         friendly-name"
                    );
                    return Err(Error::new(ErrorKind::ConfigValue, message));
                }
                self.events
                    .retain(|known| known.name != name || known.event != text);
                self.events.push(EventOfHook { name, event: text });
            }
            b"command" => {
                self.commands.insert(name, text);
            }
            b"enabled" => match value::parse_bool(Some(text)) {
                Some(false) => _ = self.disabled.insert(name),
                Some(true) => _ = self.disabled.remove(name),
                None => {}
            },
            b"parallel" if value::parse_bool(Some(text)) == Some(true) => {
                self.parallel.insert(name);
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that each hook that is not disabled has a command. As in Git, one without a command is an error for all
    /// events.
    fn check_commands(&self) -> Result<()> {
        let lacks = |hook: &&EventOfHook<'_>| {
            !self.commands.contains_key(hook.name) && !self.disabled.contains(hook.name)
        };
        match self.events.iter().find(lacks) {
            None => Ok(()),
            Some(EventOfHook { name, .. }) => {
                let message = format!(
                    "'hook.{name}.command' must be configured or 'hook.{name}.event' must be removed; aborting."
                );
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        }
    }

    /// Returns whether `name` is that of a hook, so that `hook.NAME.enabled` is not about an event.
    fn is_hook(&self, name: &BStr) -> bool {
        self.commands.contains_key(name)
            || self.parallel.contains(name)
            || self.events.iter().any(|known| known.name == name)
    }
}

/// Returns the command lines that `config` has for hook `event`, in the order in which they run. A hook that occurs
/// several times runs at its last place.
///
/// # Errors
/// [`ErrorKind::ConfigValue`]: a hook has no command or the name of an event, or a key has no value.
pub(super) fn commands(config: &Config, event: &str) -> Result<Vec<BString>> {
    let section = HookSection::of(config)?;
    let event = BStr::new(event);
    if section.disabled.contains(event) && !section.is_hook(event) {
        return Ok(Vec::new());
    }
    let running = section
        .events
        .iter()
        .filter(|hook| hook.event == event && !section.disabled.contains(hook.name));
    let lines = running.filter_map(|hook| section.commands.get(hook.name));
    Ok(lines.map(|line| (*line).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command lines for `pre-receive` in a configuration with these variables of section `hook`.
    fn found(variables: &[[&str; 2]]) -> Result<Vec<String>> {
        let mut environment = crate::Environment::empty("/");
        environment.set("GIT_CONFIG_NOSYSTEM", "1");
        environment.set("GIT_CONFIG_COUNT", variables.len().to_string());
        for (number, [key, value]) in variables.iter().enumerate() {
            environment.set(format!("GIT_CONFIG_KEY_{number}"), format!("hook.{key}"));
            environment.set(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        let config = crate::config::without_repository(&environment)?;
        let lines = commands(&config, "pre-receive")?;
        Ok(lines.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn hooks_run_in_the_order_of_their_last_events() {
        let all = [
            ["a.event", "pre-receive"],
            ["a.command", "one"],
            ["b.event", "pre-receive"],
            ["b.event", "update"],
            ["b.command", "two"],
            ["c.event", "update"],
            ["c.command", "three"],
            ["a.event", "pre-receive"],
            ["a.command", "one more"],
        ];
        assert_eq!(found(&all).expect("commands"), ["two", "one more"]);
        let reset = [&all[..], &[["a.event", ""]]].concat();
        assert_eq!(found(&reset).expect("commands"), ["two"]);
    }

    #[test]
    fn hooks_and_events_are_disabled() {
        let hook = [["a.event", "pre-receive"], ["a.command", "one"]];
        for (more, expected) in [
            (&[["a.enabled", "false"]][..], false),
            (&[["a.enabled", "false"], ["a.enabled", "true"]], true),
            (&[["pre-receive.enabled", "no"]], false),
            (&[["update.enabled", "no"]], true),
            (&[["a.enabled", "perhaps"]], true),
        ] {
            let found = found(&[&hook[..], more].concat()).expect("commands");
            assert_eq!(!found.is_empty(), expected, "{more:?}");
        }
        let bare = [["a.event", "pre-receive"], ["a.enabled", "false"]];
        assert!(found(&bare).expect("nothing is lacking").is_empty());
    }

    #[test]
    fn what_git_dies_of_is_an_error_for_every_event() {
        for wrong in [
            &[["a.event", "pre-receive"]][..],
            &[["a.event", "update"]],
            &[["update.event", "pre-receive"], ["update.command", "x"]],
        ] {
            let error = found(wrong).expect_err("it is wrong");
            assert_eq!(*error.kind(), ErrorKind::ConfigValue, "{error}");
        }
    }
}
