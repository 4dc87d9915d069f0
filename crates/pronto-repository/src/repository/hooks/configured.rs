//! Hooks in the configuration: `hook.NAME.event` and `hook.NAME.command` (`git-hook(1)`).

use std::collections::{BTreeMap, BTreeSet};

use bstr::{BStr, BString, ByteSlice as _};

use crate::config::{Config, ConfigKey, value};
use crate::{Error, ErrorKind, Result};

/// The hook events of Git. A hook in the configuration cannot have the name of an event:
/// `hook.NAME.enabled` would be ambiguous.
pub(super) const EVENTS: [&str; 28] = [
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
    /// The values of `hook.NAME.parallel`.
    parallel: BTreeMap<&'a BStr, bool>,
}

impl<'a> HookSection<'a> {
    fn of(config: &'a Config) -> Result<Self> {
        let mut section = HookSection::default();
        for entry in config.iter() {
            if !entry.key.starts_with(b"hook.") {
                continue;
            }
            let key = ConfigKey::split(entry.key);
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
            b"parallel" => {
                if let Some(is_parallel) = value::parse_bool(Some(text)) {
                    self.parallel.insert(name, is_parallel);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that each enabled hook has a command. As in Git, a hook without a command is an error for
    /// all events.
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

    /// Returns the names of the hooks that run at `event`, in order.
    fn running(&self, event: &'a BStr) -> impl Iterator<Item = &'a BStr> {
        let is_off = self.disabled.contains(event) && !self.is_hook(event);
        let hooks = self.events.iter().filter(move |hook| {
            !is_off && hook.event == event && !self.disabled.contains(hook.name)
        });
        hooks.map(|hook| hook.name)
    }

    /// Returns whether `name` is the name of a hook, so that `hook.NAME.enabled` does not refer to an
    /// event.
    fn is_hook(&self, name: &BStr) -> bool {
        self.commands.contains_key(name)
            || self.parallel.get(name) == Some(&true)
            || self.events.iter().any(|known| known.name == name)
    }
}

/// Returns the command lines that `config` has for hook `event`, in the order in which they run. A hook
/// that occurs several times runs at its last position.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a hook has no command or the name of an event, or if a key
/// has no value.
pub(super) fn commands(config: &Config, event: &str) -> Result<Vec<BString>> {
    let section = HookSection::of(config)?;
    let names = section.running(BStr::new(event));
    let lines = names.filter_map(|name| section.commands.get(name));
    Ok(lines.map(|line| (*line).to_owned()).collect())
}

/// Returns the number of programs of hook `event` that may run at the same time: `hook.EVENT.jobs`, or
/// else `hook.jobs`. As in Git, the number is one if a configured hook has no `hook.NAME.parallel`.
/// Malformed numbers are ignored.
///
/// # Errors
/// As for [`commands`].
pub(super) fn jobs(config: &Config, event: &str) -> Result<usize> {
    let section = HookSection::of(config)?;
    let mut names = section.running(BStr::new(event));
    if names.any(|name| section.parallel.get(name) != Some(&true)) {
        return Ok(1);
    }
    let count = |key: &str| {
        let mut counts = config.entries(key).filter_map(|entry| match entry.i32() {
            Ok(-1) => Some(pronto_io::pool::cores()),
            Ok(count) => usize::try_from(count).ok().filter(|count| *count > 0),
            Err(_) => None,
        });
        counts.next_back()
    };
    let of_event = count(&format!("hook.{event}.jobs"));
    Ok(of_event.or_else(|| count("hook.jobs")).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a configuration with these variables of section `hook`.
    fn configuration(variables: &[[&str; 2]]) -> Result<Config> {
        let mut environment = crate::Environment::empty("/");
        environment.set("GIT_CONFIG_NOSYSTEM", "1");
        environment.set("GIT_CONFIG_COUNT", variables.len().to_string());
        for (number, [key, value]) in variables.iter().enumerate() {
            environment.set(format!("GIT_CONFIG_KEY_{number}"), format!("hook.{key}"));
            environment.set(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        crate::config::without_repository(&environment)
    }

    /// Returns the command lines for `pre-receive` in a configuration with these variables of section `hook`.
    fn found(variables: &[[&str; 2]]) -> Result<Vec<String>> {
        let config = configuration(variables)?;
        let lines = commands(&config, "pre-receive")?;
        Ok(lines.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn only_parallel_hooks_run_at_once() {
        let hook = [["a.event", "update"], ["a.command", "x"]];
        for (more, expected) in [
            (&[["update.jobs", "3"]][..], 1),
            (&[["a.parallel", "true"], ["update.jobs", "3"]], 3),
            (&[["a.parallel", "true"], ["pre-receive.jobs", "3"]], 1),
            (
                &[
                    ["a.parallel", "true"],
                    ["a.parallel", "false"],
                    ["update.jobs", "3"],
                ],
                1,
            ),
            (
                &[
                    ["a.parallel", "true"],
                    ["update.jobs", "3"],
                    ["update.jobs", "0"],
                ],
                3,
            ),
            (&[["a.parallel", "true"], ["update.jobs", "many"]], 1),
        ] {
            let config = configuration(&[&hook[..], more].concat()).expect("a configuration");
            assert_eq!(
                jobs(&config, "update").expect("a count"),
                expected,
                "{more:?}"
            );
        }
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
            assert_eq!(error.kind(), ErrorKind::ConfigValue, "{error}");
        }
    }
}
