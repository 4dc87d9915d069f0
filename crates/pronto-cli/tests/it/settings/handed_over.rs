//! Settings that a native command does not support: the command hands the call to git, or fails
//! with a clear message if handing over is disabled.

use std::path::{Path, PathBuf};
use std::process::Output;

use pronto::support::{
    self, GUARDED, KeyForm, LackingRow, Operation, Operations, SETTINGS, ValueCondition,
};
use pronto_cli::settings::{CommandSetting, KEYS, VARIABLES, operations_of};

use super::super::support::{Scratch, git, pronto, stderr, stdout};
use super::source::{normal, texts};
use super::table;

/// A call of each command that lacks a setting.
const CALLS: &[(&str, &[&str])] = &[
    ("add", &["file"]),
    ("archive", &["HEAD"]),
    ("bundle", &["verify", "file"]),
    ("cat-file", &["-t", "HEAD"]),
    ("check-attr", &["--all", "file"]),
    ("check-ignore", &["file"]),
    ("checkout", &["main"]),
    ("checkout-index", &["--all"]),
    ("clone", &[".", "copy"]),
    ("commit", &["-q", "--allow-empty", "-m", "message"]),
    ("commit-graph", &["write"]),
    ("diff-files", &[]),
    ("diff-index", &["HEAD"]),
    ("diff-tree", &["HEAD"]),
    ("fetch", &["."]),
    ("fetch-pack", &[".", "HEAD"]),
    ("gc", &[]),
    ("hash-object", &["file"]),
    ("index-pack", &["some.pack"]),
    ("init", &["new"]),
    ("ls-files", &[]),
    ("ls-remote", &["."]),
    ("ls-tree", &["HEAD"]),
    ("maintenance", &["run"]),
    ("multi-pack-index", &["write"]),
    ("pack-objects", &["--stdout"]),
    ("pack-refs", &["--all"]),
    ("push", &[".", "main:copy"]),
    ("read-tree", &["HEAD"]),
    ("receive-pack", &["."]),
    ("reflog", &["expire", "--all"]),
    ("refs", &["optimize", "--all"]),
    ("remote", &["show", "-n", "."]),
    ("repack", &[]),
    ("reset", &[]),
    ("restore", &["file"]),
    ("rev-parse", &["HEAD"]),
    ("show-ref", &[]),
    ("send-pack", &[".", "main:copy"]),
    ("serve", &["--netsync", "--stdio", "--peer", "other"]),
    ("sparse-checkout", &["list"]),
    ("status", &[]),
    ("switch", &["main"]),
    ("symbolic-ref", &["HEAD"]),
    ("sync", &["ssh://localhost/nowhere"]),
    ("unpack-objects", &[]),
    ("update-index", &["--refresh"]),
    ("upload-archive", &["."]),
    ("upload-pack", &["."]),
    ("verify-pack", &["some.pack"]),
    ("worktree", &["list"]),
    ("write-tree", &[]),
];

/// Settings that the code of a command hands over, each with a call that reaches the code.
const IN_CODE: &[(&str, &str, &[&str])] = &[
    ("pack.packSizeLimit", "1m", &["repack", "-a"]),
    ("repack.useDeltaIslands", "true", &["repack", "-a"]),
    ("status.submoduleSummary", "true", &["status"]),
    ("submodule.recurse", "true", &["checkout", "main"]),
];

const COMMIT: &[&str] = &["commit", "-q", "--allow-empty", "-m", "message"];

/// Settings that the transport hands over if they apply to the URL: the setting, its value, and
/// other required settings.
const BY_URL: &[(&str, &str, &[&str])] = &[
    ("GIT_HTTP_PROXY_AUTHMETHOD", "digest", PROXY),
    ("GIT_PROXY_SSL_CAINFO", "file", PROXY),
    ("GIT_PROXY_SSL_CERT", "file", PROXY),
    ("GIT_PROXY_SSL_CERT_PASSWORD_PROTECTED", "1", PROXY),
    ("GIT_PROXY_SSL_KEY", "file", PROXY),
    ("GIT_SSL_CERT_PASSWORD_PROTECTED", "1", CERTIFICATE),
    ("GIT_SSL_CERT_TYPE", "DER", CERTIFICATE),
    ("GIT_SSL_CIPHER_LIST", "ECDHE-ECDSA-AES256-GCM-SHA384", &[]),
    ("GIT_SSL_KEY_TYPE", "DER", CERTIFICATE),
    ("GIT_SSL_VERSION", "tlsv1.3", &[]),
    ("http.cookieFile", "file", &[]),
    ("http.curloptResolve", "localhost:1:127.0.0.1", &[]),
    ("http.delegation", "always", &[]),
    ("http.emptyAuth", "true", &[]),
    ("http.pinnedPubkey", "sha256//AAAA", &[]),
    ("http.proactiveAuth", "basic", &[]),
    ("http.proxyAuthMethod", "digest", PROXY),
    ("http.proxySSLCAInfo", "file", PROXY),
    ("http.proxySSLCert", "file", PROXY),
    ("http.proxySSLCertPasswordProtected", "true", PROXY),
    ("http.proxySSLKey", "file", PROXY),
    ("http.sslBackend", "openssl", &[]),
    ("http.sslCertPasswordProtected", "true", CERTIFICATE),
    ("http.sslCertType", "DER", CERTIFICATE),
    ("http.sslCipherList", "ECDHE-ECDSA-AES256-GCM-SHA384", &[]),
    ("http.sslKeyType", "DER", CERTIFICATE),
    ("http.sslVersion", "tlsv1.3", &[]),
    ("remote.origin.proxyAuthMethod", "digest", PROXY),
];

const PROXY: &[&str] = &["http.proxy=https://127.0.0.1:1"];
const CERTIFICATE: &[&str] = &["http.sslCert=file"];

/// Settings that are handed over only under further conditions, with the reason.
const SEEN_ELSEWHERE: &[(&str, &str)] = &[
    ("GIT_PAGER", "needs a terminal"),
    ("PAGER", "needs a terminal"),
    ("core.pager", "needs a terminal"),
    ("pager.<cmd>", "needs a terminal"),
    ("sideband.<url>.*", "the section is guarded: below"),
    ("diff.algorithm", "needs a merge: below"),
    ("merge.default", "needs a merge: below"),
    ("merge.renormalize", "needs a merge: below"),
    ("merge.<driver>.driver", "needs a merge: below"),
    (
        "extensions.compatObjectFormat",
        "stands in the repository: below",
    ),
    ("extensions.refStorage", "stands in the repository: below"),
    (
        "extensions.submodulePathConfig",
        "stands in the repository: below",
    ),
    (
        "extensions.preciousObjects",
        "stands in the repository: below",
    ),
];

fn repository(scratch: &Scratch) -> PathBuf {
    let top = scratch.path().join("repository");
    std::fs::create_dir(&top).expect("a directory");
    git(&top, &["init", "-q", "-b", "main"]);
    std::fs::write(top.join("file"), "one\n").expect("a file");
    git(&top, &["add", "."]);
    git(&top, &["commit", "-q", "-m", "first"]);
    top
}

/// Runs pronto in `top` with the settings `configured` and the environment `variables`.
fn run(
    top: &Path,
    configured: &[(&str, &str)],
    variables: &[(&str, &str)],
    arguments: &[&str],
) -> Output {
    let mut command = pronto();
    command
        .current_dir(top)
        .env("PRONTO_NO_FALLBACK", "1")
        .envs(variables.iter().copied())
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com"]);
    for (key, value) in configured {
        command.arg("-c").arg(format!("{key}={value}"));
    }
    command.args(arguments).output().expect("it runs")
}

/// Asserts that a call failed because of the setting `name`.
fn check(output: &Output, name: &str, arguments: &[&str]) {
    let said = stderr(output);
    let is_named = said.contains(&format!("'{name}' is not implemented natively"));
    assert!(
        output.status.code() == Some(128) && is_named,
        "{name}, {arguments:?}: {:?} {said}",
        output.status
    );
}

/// Returns a value that enables a setting.
fn value(when: ValueCondition) -> &'static str {
    match when {
        ValueCondition::True => "true",
        ValueCondition::False => "false",
        ValueCondition::Set | ValueCondition::NotEmpty | ValueCondition::Not(_) => "0660",
    }
}

/// Returns the calls of the commands that do not implement `setting`.
fn calls_of(setting: &CommandSetting) -> Vec<Vec<&'static str>> {
    for command in setting.commands {
        assert!(CALLS.iter().any(|(name, _)| name == command), "{command}");
    }
    calls(|command| setting.concerns(command))
}

/// Returns the calls of the commands that call one of `operations`.
fn calls_of_operations(operations: Operations) -> Vec<Vec<&'static str>> {
    let calls = calls(|command| {
        let mut called = operations_of(command).iter();
        called.any(|operation| operations.intersects(operation.with_implied()))
    });
    assert!(!calls.is_empty(), "{operations:?}");
    calls
}

/// Returns the calls of the commands for which `is_meant` is true.
fn calls(is_meant: impl Fn(&str) -> bool) -> Vec<Vec<&'static str>> {
    let calls = CALLS.iter().filter(|(name, _)| is_meant(name));
    calls
        .map(|(name, arguments)| [&[*name], *arguments].concat())
        .collect()
}

fn keys(lacking: &LackingRow) -> Vec<String> {
    let (section, variable) = lacking.name.split_once('.').expect("a key");
    let plain = lacking.name.to_owned();
    let inner = format!("{section}.https://example.com/.{variable}");
    match lacking.place {
        KeyForm::Section => vec![plain],
        KeyForm::Subsection => vec![inner],
        KeyForm::Either => vec![plain, inner],
    }
}

#[test]
fn every_unsupported_configuration_variable_is_refused() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for lacking in SETTINGS {
        for key in keys(lacking) {
            for arguments in calls_of_operations(lacking.operations) {
                let output = run(&top, &[(&key, value(lacking.when))], &[], &arguments);
                check(&output, &key, &arguments);
            }
        }
    }
    for lacking in KEYS {
        for arguments in calls_of(lacking) {
            let output = run(
                &top,
                &[(lacking.name, value(lacking.when))],
                &[],
                &arguments,
            );
            check(&output, lacking.name, &arguments);
        }
    }
}

#[test]
fn every_unsupported_environment_variable_is_refused() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for lacking in support::VARIABLES {
        for arguments in calls_of_operations(lacking.operations) {
            let variables = [(lacking.name, value(lacking.when))];
            let output = run(&top, &[], &variables, &arguments);
            check(&output, lacking.name, &arguments);
        }
    }
    for lacking in VARIABLES {
        for arguments in calls_of(lacking) {
            let variables = [(lacking.name, value(lacking.when))];
            let output = run(&top, &[], &variables, &arguments);
            check(&output, lacking.name, &arguments);
        }
    }
}

#[test]
fn unknown_settings_of_guarded_sections_are_refused() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for guarded in GUARDED {
        let plain = format!("{}.invented", guarded.section);
        let inner = format!("{}.https://example.com/.invented", guarded.section);
        for key in [&plain, &inner] {
            for arguments in calls_of_operations(guarded.operations) {
                let output = run(&top, &[(key, "true")], &[], &arguments);
                check(&output, key, &arguments);
            }
        }
    }
}

#[test]
fn a_pull_from_a_peer_obeys_what_a_sync_does() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let arguments = ["pull", "--netsync", "ssh://localhost/nowhere"];
    for name in ["GIT_QUARANTINE_PATH", "GIT_REFERENCE_BACKEND"] {
        let output = run(&top, &[], &[(name, "0660")], &arguments);
        check(&output, name, &arguments);
    }
}

#[test]
fn disabled_settings_change_nothing() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let configured = [
        ("attr.tree", ""),
        ("core.ignoreStat", "false"),
        ("core.sharedRepository", "umask"),
        ("fetch.negotiationAlgorithm", "default"),
        ("hook.mine.command", "false"),
        ("hook.mine.event", "pre-push"),
        ("trace2.eventTarget", "0"),
        ("transfer.credentialsInUrl", "allow"),
    ];
    let variables = [
        ("GIT_NO_LAZY_FETCH", "0"),
        ("GIT_REF_PARANOIA", "1"),
        ("GIT_TRACE_SETUP", "0"),
    ];
    for arguments in [
        &["status"][..],
        &["add", "file"],
        &["checkout", "main"],
        COMMIT,
        &["fetch", "."],
        &["clone", ".", "copy"],
    ] {
        let output = run(&top, &configured, &variables, arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn the_hook_of_the_index_is_refused_where_it_would_run() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let event = "post-index-change";
    let configured = [("hook.mine.command", "true"), ("hook.mine.event", event)];
    for arguments in calls(|command| {
        let mut called = operations_of(command).iter();
        called.any(|operation| operation.with_implied().contains(Operation::RefreshIndex))
    }) {
        let output = run(&top, &configured, &[], &arguments);
        check(&output, event, &arguments);
        let enabled = [&configured[..], &[("hook.mine.enabled", "false")]].concat();
        let output = run(&top, &enabled, &[], &arguments);
        assert!(!stderr(&output).contains(event), "{}", stderr(&output));
    }
}

#[test]
fn settings_handed_over_in_code_are_refused() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    for (key, value, arguments) in IN_CODE {
        let output = run(&top, &[(key, value)], &[], arguments);
        let said = stderr(&output);
        let is_refused =
            said.contains("not implemented natively") || said.contains("not supported");
        assert!(
            output.status.code() == Some(128) && is_refused,
            "{key}: {:?} {said}",
            output.status
        );
    }
}

#[test]
fn unsupported_settings_of_a_url_are_refused_before_a_request() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    // No server listens there, so a call that connected would report that.
    let remote = "remote.origin.url=https://127.0.0.1:1/x";
    for (name, value, beside) in BY_URL {
        let mut configured: Vec<(&str, &str)> = [&[remote], *beside]
            .concat()
            .iter()
            .map(|setting| setting.split_once('=').expect("a key and a value"))
            .collect();
        let mut variables = Vec::new();
        match name.contains('.') {
            true => configured.push((name, value)),
            false => variables.push((*name, *value)),
        }
        for arguments in [
            &["fetch", "origin"][..],
            &["clone", "https://127.0.0.1:1/x"],
        ] {
            if arguments[0] == "clone" && name.starts_with("remote.") {
                continue;
            }
            let output = run(&top, &configured, &variables, arguments);
            let said = stderr(&output);
            assert!(
                output.status.code() == Some(128) && said.contains("is not implemented natively"),
                "{name}, {arguments:?}: {said}"
            );
        }
    }
}

#[test]
fn unsupported_formats_are_refused_where_they_are_set() {
    for (key, value, arguments) in [
        ("extensions.compatObjectFormat", "sha256", &["status"][..]),
        ("extensions.refStorage", "reftable", &["status"]),
        ("extensions.submodulePathConfig", "true", &["status"]),
        ("extensions.preciousObjects", "true", &["repack", "-a"]),
        ("extensions.invented", "true", &["status"]),
    ] {
        let scratch = Scratch::new();
        let top = repository(&scratch);
        git(&top, &["config", "core.repositoryFormatVersion", "1"]);
        git(&top, &["config", key, value]);
        let output = run(&top, &[], &[], arguments);
        assert_eq!(
            output.status.code(),
            Some(128),
            "{key}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn merges_that_are_configured_are_refused() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    git(&top, &["checkout", "-q", "-b", "other"]);
    std::fs::write(top.join("file"), "one\ntwo\n").expect("a file");
    git(&top, &["commit", "-q", "-a", "-m", "second"]);
    git(&top, &["checkout", "-q", "main"]);
    std::fs::write(top.join("file"), "zero\none\n").expect("a file");
    for configured in [
        &[("diff.algorithm", "patience")][..],
        &[("merge.renormalize", "true")],
        &[("merge.default", "mine"), ("merge.mine.driver", "true")],
    ] {
        let output = run(&top, configured, &[], &["checkout", "-m", "other"]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(128), "{configured:?}: {said}");
    }
    std::fs::write(top.join(".git/info/attributes"), "file merge=mine\n").expect("attributes");
    let driver = [("merge.mine.driver", "true")];
    let output = run(&top, &driver, &[], &["checkout", "-m", "other"]);
    assert_eq!(output.status.code(), Some(128), "{}", stderr(&output));
}

#[test]
fn every_handed_over_setting_is_tested() {
    let texts = texts();
    for row in table().iter().filter(|row| row.status == "handed over") {
        let name = normal(&row.name);
        let rows = SETTINGS.iter().chain(support::VARIABLES);
        let own = KEYS.iter().chain(VARIABLES);
        let mut tables = (rows.map(|row| row.name)).chain(own.map(|row| row.name));
        let in_code = IN_CODE.iter().any(|(key, ..)| *key == row.name);
        let by_url = BY_URL
            .iter()
            .any(|(key, ..)| key.replace("remote.origin", "remote.<name>") == row.name);
        let elsewhere = SEEN_ELSEWHERE.iter().any(|(key, _)| *key == row.name);
        assert!(
            tables.any(|lacking| lacking == name) || in_code || by_url || elsewhere,
            "nothing shows that '{}' is handed over",
            row.name
        );
        let is_read = |key: &str| texts.keys().any(|text| text.eq_ignore_ascii_case(key));
        assert!(
            !in_code || is_read(&row.name),
            "nothing reads '{}'",
            row.name
        );
    }
}

#[test]
fn git_gets_the_call() {
    let scratch = Scratch::new();
    let top = repository(&scratch);
    let stand_in = scratch.script("bin", "git", "#!/bin/sh\necho \"git got $*\"\n");
    let output = pronto()
        .current_dir(&top)
        .env("PRONTO_GIT", &stand_in)
        .args(["-c", "attr.tree=HEAD", "check-attr", "--all", "file"])
        .output()
        .expect("it runs");
    let expected = "git got -c attr.tree=HEAD check-attr --all file\n";
    assert_eq!(stdout(&output), expected, "{}", stderr(&output));
}
