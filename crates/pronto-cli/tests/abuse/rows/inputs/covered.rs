//! The bounds that manually written rows cover, and the features that the server may advertise.

use crate::stage::{Stage, Verdict, require};
use crate::wire::{FETCH, PUSH, V2, get, refs_of};

use super::arguments::{ARGUMENTS, CAPABILITIES};
use super::catalogue::Input;

/// Bounds on the combined effect of many requests, with the rows that reach them.
const COVERED: &[(&str, &[&str])] = &[
    ("connections", &["overload/connections-in-all"]),
    (
        "connections of an address",
        &[
            "overload/connections-of-one-address",
            "overload/git-connections-of-one-address",
            "shell/connections-of-one-address",
        ],
    ),
    (
        "wait for the head of a request, or a handshake",
        &["slow/head-byte-by-byte", "shell/stop-in-the-handshake"],
    ),
    (
        "wait for a login over SSH and its first request",
        &["shell/login-without-a-request"],
    ),
    (
        "wait for the next request of a connection",
        &["slow/idle-between-requests"],
    ),
    (
        "refused logins of a connection of SSH",
        &["inputs/keys-of-a-login"],
    ),
    (
        "time of a request",
        &["archives/a-program-that-does-not-end"],
    ),
    ("requests at once", &["overload/all-slots"]),
    (
        "of these, those of a user, or of an address without a user",
        &["overload/slots-of-one-user", "overload/slots-of-nobody"],
    ),
    (
        "of these, those without a user",
        &["budgets/idle-bodies-of-two-addresses"],
    ),
    (
        "of these, those of users who do not manage the server",
        &["budgets/a-queue-of-strangers"],
    ),
    (
        "requests that wait, with the same parts",
        &["overload/queue", "budgets/a-queue-of-strangers"],
    ),
    ("wait for a slot", &["overload/all-slots"]),
    (
        "wait for a client without progress",
        &["slow/body-does-not-come", "slow/answer-is-not-read"],
    ),
    (
        "the same, while others wait for a slot",
        &["budgets/idle-bodies-of-two-addresses"],
    ),
    (
        "memory for arguments, commands and certificates of all requests",
        &["budgets/prefixes-that-are-not-finished"],
    ),
    (
        "of this, that of a user, or of an address without a user",
        &["budgets/commands-beyond-the-memory-of-a-user"],
    ),
    (
        "of this, that of clients without a user",
        &["budgets/prefixes-that-are-not-finished"],
    ),
    (
        "requests at once of a connection of HTTP/2",
        &["streams/more-streams-than-allowed"],
    ),
    ("channels of a connection of SSH", &["shell/many-channels"]),
    (
        "wants, haves and other ids of a fetch, each",
        // The body of a fetch ends before.
        &["inputs/fetch"],
    ),
    ("tokens of a user", &["accounts/tokens-without-end"]),
    ("public keys of a user", &["accounts/keys-without-end"]),
    ("users", &["inputs/users"]),
    // `users::text` has the exact bound.
    (
        "text about a user in the file of users",
        &["accounts/keys-without-end", "accounts/tokens-without-end"],
    ),
    (
        "memory of all sessions of netsync",
        &["inputs/netsync-memory"],
    ),
    // `users::tests` has the exact bound.
    ("file of users", &["accounts/keys-with-long-comments"]),
    (
        "wrong tokens and failed logins of an address in a minute",
        &["roles/guesses"],
    ),
];

/// Returns the rows that reach a bound.
pub(super) fn rows_of(bound: &str) -> &'static [&'static str] {
    let found = COVERED.iter().find(|(name, _)| *name == bound);
    found.map_or(&[], |(_, rows)| rows)
}

/// Returns the bounds that have such rows.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    COVERED.iter().map(|(name, _)| *name)
}

/// The capabilities of versions 0 and 1 that have no argument.
const OLD_FEATURES: &str = "multi_ack thin-pack side-band side-band-64k ofs-delta shallow deepen-since deepen-not \
     deepen-relative no-progress include-tag multi_ack_detailed allow-tip-sha1-in-want \
     allow-reachable-sha1-in-want no-done symref filter object-format agent session-id";
const PUSH_FEATURES: &str = "report-status report-status-v2 delete-refs side-band-64k quiet atomic ofs-delta \
     object-format agent session-id push-options push-cert";

/// Requires that inputs cover each command and feature that the server advertises.
pub(super) fn features(stage: &mut Stage, inputs: &[Input]) -> Verdict {
    stage.alone();
    let settings = inputs.iter().map(|input| input.settings);
    for (key, value) in settings
        .max_by_key(|settings| settings.len())
        .unwrap_or(&[])
    {
        stage.configure("team/a", key, value);
    }
    let token = stage.token("root");
    let mut ask = |service: &str, version: &str| {
        let path = refs_of("team/a", service);
        let answer = stage.ask(get(&path, &format!("{version}{token}")))?;
        require(answer.status == 200, || format!("{answer:?}"))?;
        Ok::<_, String>(answer.text())
    };
    let text = ask(FETCH, V2)?;
    for line in lines(&text).skip(1) {
        let (name, values) = line.split_once('=').unwrap_or((line, ""));
        let has_command = ARGUMENTS.iter().any(|argument| argument.command == name);
        let has_capability = CAPABILITIES
            .iter()
            .any(|line| line.split('=').next() == Some(name));
        require(has_command || has_capability, || {
            format!("no row sends '{name}', which the server advertises")
        })?;
        for value in values.split(' ').filter(|_| has_command) {
            require(is_argument(name, value), || {
                format!("no row sends '{value}' of '{name}', which the server advertises")
            })?;
        }
    }
    for (service, known) in [(FETCH, OLD_FEATURES), (PUSH, PUSH_FEATURES)] {
        let text = ask(service, "")?;
        let line = lines(&text).find_map(|line| line.split_once('\0'));
        let (_, features) = line.ok_or("there are no features")?;
        for feature in features.split_ascii_whitespace() {
            let name = feature.split('=').next().unwrap_or_default();
            require(
                known.split_ascii_whitespace().any(|word| word == name),
                || format!("no row knows the feature '{name}' of {service}"),
            )?;
        }
    }
    Ok(())
}

/// Returns whether an argument belongs to a feature of a command.
fn is_argument(command: &str, feature: &str) -> bool {
    let word = match feature {
        "" => return true,
        "ref-in-want" => "want-ref",
        word => word,
    };
    let mut arguments = ARGUMENTS
        .iter()
        .filter(|argument| argument.command == command);
    arguments.any(|argument| argument.line.split(' ').next() == Some(word))
}

/// Returns the packets of an advertisement.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let digits = rest.get(..4)?;
            let length = usize::from_str_radix(digits, 16).ok()?.max(4);
            let line = rest.get(4..length)?;
            rest = rest.get(length..)?;
            let line = line.trim_end_matches('\n');
            if !line.is_empty() && !line.starts_with('#') {
                return Some(line);
            }
        }
    })
}
