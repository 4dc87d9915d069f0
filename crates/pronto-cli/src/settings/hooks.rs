//! Hooks in the configuration (`hook.NAME.command`). Native commands run only hooks that are files,
//! so git runs a call that would run a configured hook.

use bstr::ByteSlice;
use pronto::config::{Config, Key};

use super::table::{INDEX_WRITERS, REFERENCE_WRITERS};

/// The hook events that native commands trigger, with these commands.
pub static EVENTS: &[(&str, &[&str])] = &[
    ("commit-msg", &["commit"]),
    (
        "post-checkout",
        &["checkout", "clone", "switch", "worktree"],
    ),
    ("post-commit", &["commit"]),
    ("post-index-change", INDEX_WRITERS),
    ("post-receive", &["receive-pack"]),
    ("post-update", &["receive-pack"]),
    ("pre-commit", &["commit"]),
    ("pre-push", &["push"]),
    ("pre-receive", &["receive-pack"]),
    ("prepare-commit-msg", &["commit"]),
    ("proc-receive", &["receive-pack"]),
    ("push-to-checkout", &["receive-pack"]),
    ("reference-transaction", REFERENCE_WRITERS),
    ("update", &["receive-pack"]),
];

/// Returns whether `key` of section `hook` concerns a hook whose event `command` triggers.
pub(super) fn is_lacking(command: &str, config: &Config, key: &Key<'_>) -> bool {
    let Some(name) = key.subsection else {
        return false;
    };
    match key.variable.as_bytes() {
        b"command" => {
            let events = [b"hook.", name.as_bytes(), b".event"].concat();
            config.strings(events).any(|event| causes(command, event))
        }
        // The setting may disable a whole event, including hooks that are files.
        b"enabled" => causes(command, name),
        _ => false,
    }
}

fn causes(command: &str, event: &[u8]) -> bool {
    EVENTS
        .iter()
        .any(|(name, commands)| name.as_bytes() == event && commands.contains(&command))
}
