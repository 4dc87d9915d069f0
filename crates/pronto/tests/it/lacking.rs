//! Checks that each operation of the library refuses the settings, variables and hooks that the
//! operation does not implement, before any change.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bstr::{BStr, ByteSlice as _};
use pronto::remote::Remote;
use pronto::support::{
    self, GUARDED, KeyForm, LackingSource, Operation, Operations, SETTINGS, ValueCondition,
};
use pronto::{
    Environment, ErrorKind, Repository, Result, Watch, add, archive, attributes, bundle,
    checkout_index, checkout_paths, clone, commit, commit_graph, configured_remotes, diff, fetch,
    hash_object, init, ls_remote, push, read_tree, receive_pack, refresh, repack, reset,
    sparse_checkout, status, switch, update_index, upload_archive, upload_pack, worktrees,
    write_tree,
};

use crate::support::Sandbox;

/// The environment variable that contains the first configured key.
const FIRST_KEY: &str = "GIT_CONFIG_KEY_0";

/// A call of the library.
struct Call {
    operation: Operation,
    run: fn(&Repository, &Sandbox) -> Result<()>,
}

const fn call(operation: Operation, run: fn(&Repository, &Sandbox) -> Result<()>) -> Call {
    Call { operation, run }
}

fn watch() -> Watch<'static> {
    Watch::none()
}

fn origin(repository: &Repository) -> Remote {
    Remote::find(repository, BStr::new("origin")).expect("it is configured")
}

/// Calls that change or send something, and calls that read attributes.
const CALLS: &[Call] = &[
    call(Operation::Add, |repository, _| {
        _ = add::add(repository, &add::Options::default(), &watch())?;
        Ok(())
    }),
    call(Operation::Archive, |repository, _| {
        let options = archive::Options::default();
        archive::prepare(repository, "HEAD".into(), options, &watch()).map(drop)
    }),
    call(Operation::CheckIgnore, |repository, _| {
        status::check_ignored(repository, true, |_| ())
    }),
    call(Operation::CheckoutFiles, |repository, _| {
        let mut options = checkout_index::Options::default();
        options.all_below = Some("".into());
        _ = checkout_index::checkout_index(repository, &options, &watch())?;
        Ok(())
    }),
    call(Operation::CheckoutFiles, |repository, _| {
        let options = checkout_paths::Options::new(repository.pathspec([BStr::new("a")])?);
        checkout_paths::checkout_paths(repository, &options, &watch()).map(drop)
    }),
    call(Operation::Clone, |repository, sandbox| {
        let (url, target) = (sandbox.root.join("r"), sandbox.root.join("new"));
        let (url, options) = (url.to_string_lossy(), clone::Options::default());
        let environment = repository.environment();
        clone::clone(
            url.as_bytes().into(),
            &target,
            &options,
            environment,
            &watch(),
        )
        .map(drop)
    }),
    call(Operation::Commit, |repository, _| {
        let mut options = commit::Options::default();
        options.message = "two".into();
        options.allow_empty = true;
        commit::commit(repository, &options, &watch()).map(drop)
    }),
    call(Operation::CreateBundle, |repository, _| {
        let mut options = bundle::CreateOptions::default();
        options.revisions = bundle::parse_revisions(repository, &["main".into()])?;
        bundle::create(repository, &options, &watch()).map(drop)
    }),
    call(Operation::Fetch, |repository, _| {
        let options = fetch::Options::default();
        fetch::fetch(repository, &origin(repository), &options, &watch()).map(drop)
    }),
    call(Operation::Init, |repository, sandbox| {
        let target = sandbox.root.join("new.git");
        let options = init::Options::default();
        Repository::init(&target, &options, repository.environment()).map(drop)
    }),
    call(Operation::ListRemote, |repository, _| {
        let (config, environment) = (repository.config(), repository.environment());
        let options = ls_remote::Options::default();
        ls_remote::ls_remote(&origin(repository), &options, config, environment, &watch()).map(drop)
    }),
    call(Operation::ManageRemotes, |repository, _| {
        configured_remotes::set_head(repository, &origin(repository), "other".into()).map(drop)
    }),
    call(Operation::Push, |repository, _| {
        let destination = push::PushRemote::of(repository, origin(repository))?;
        let url = destination.urls.first().expect("it has an address").clone();
        let mut options = push::Options::default();
        options.specs = vec![push::PushSpec::parse("main:refs/heads/pushed".into())?];
        push::push(repository, &destination, url.as_ref(), &options, &watch()).map(drop)
    }),
    call(Operation::ReadAttributes, |repository, _| {
        attributes::check(repository, attributes::AttributeSelection::All, false).map(drop)
    }),
    call(Operation::ReadAttributes, |repository, _| {
        let options = diff::Options::default();
        diff::files(repository, 0, &options, &watch()).map(drop)
    }),
    call(Operation::ReadAttributes, |repository, _| {
        hash_object::content_hasher(repository, pronto::ObjectKind::Blob, true).map(drop)
    }),
    call(Operation::ReadTree, |repository, _| {
        let options = read_tree::Options::default();
        read_tree::read_trees(repository, &[], &options, &watch()).map(drop)
    }),
    call(Operation::ReceivePack, |repository, _| {
        let (mut input, mut output) = (&b"0000"[..], Vec::new());
        let streams = receive_pack::ReceiveStreams {
            input: &mut input,
            output: &mut output,
        };
        let options = receive_pack::Options::new("git");
        let served = receive_pack::serve(repository, &options, streams, &watch()).map(drop);
        assert_eq!(served.is_err(), output.is_empty(), "nothing is advertised");
        served
    }),
    call(Operation::Repack, |repository, _| {
        repack::repack(repository, &repack::Options::default(), &watch()).map(drop)
    }),
    call(Operation::Reset, |repository, _| {
        let target = reset::target(repository, "HEAD".into(), false)?;
        let mut options = reset::Options::new(target);
        options.mode = reset::Mode::Hard;
        _ = reset::reset(repository, &options, &watch())?;
        Ok(())
    }),
    call(Operation::SparseCheckout, |repository, _| {
        sparse_checkout::reapply(repository, &watch()).map(drop)
    }),
    call(Operation::Status, |repository, _| {
        status::status(repository, &status::Options::default(), &watch()).map(drop)
    }),
    call(Operation::Switch, |repository, _| {
        let mut options = switch::Options::default();
        options.to = switch::start_at(repository, "other")?;
        _ = switch::switch(repository, &options, &watch())?;
        Ok(())
    }),
    call(
        Operation::UpdateIndex,
        |repository, _| match update_index::update_index(
            repository,
            &update_index::Options::default(),
            &watch(),
        ) {
            Ok(_) => Ok(()),
            Err(failure) => match failure.error {
                update_index::UpdateStop::Operation(error) => Err(error),
                stop => panic!("{stop}"),
            },
        },
    ),
    call(Operation::UploadArchive, |repository, _| {
        let (mut input, mut output) = (&b"0012argument HEAD\n0000"[..], Vec::new());
        let streams = upload_archive::ArchiveStreams {
            input: &mut input,
            output: &mut output,
        };
        let options = upload_archive::Options::default();
        match upload_archive::serve(Ok(repository), &options, streams, &watch())? {
            upload_archive::ArchiveRequestEnd::Failed { reason, .. } => Err(pronto::Error::new(
                ErrorKind::Unsupported,
                reason.to_str_lossy(),
            )),
            _ => Ok(()),
        }
    }),
    call(Operation::UploadPack, |repository, _| {
        let mut output = Vec::new();
        let options = upload_pack::Options::default();
        let advertised = upload_pack::advertise(repository, &options, &mut output);
        assert_eq!(advertised.is_err(), output.is_empty());
        advertised
    }),
    call(Operation::WriteIndex, |repository, _| {
        refresh::refresh_index(repository, &refresh::Options::default(), &watch()).map(drop)
    }),
    call(Operation::Worktrees, |repository, _| {
        let mut options = worktrees::AddWorktreeOptions::default();
        options.place = "../linked".into();
        worktrees::plan(repository, options).map(drop)
    }),
    call(Operation::WriteCommitGraph, |repository, _| {
        let options = commit_graph::GraphWriteOptions::default();
        commit_graph::write(repository, &options, &watch())
    }),
    call(Operation::WriteTree, |repository, _| {
        write_tree::write_tree(repository, None, false, &watch()).map(drop)
    }),
];

/// Creates a repository with two branches, a remote and an up-to-date index.
fn prepared() -> Sandbox {
    let sandbox = Sandbox::with_files();
    sandbox.git("", &["clone", "-q", "--bare", "r", "remote"]);
    sandbox.git("r", &["remote", "add", "origin", "../remote"]);
    sandbox.git("r", &["branch", "other"]);
    sandbox.write("a", "changed");
    sandbox
}

fn environment(sandbox: &Sandbox) -> Environment {
    let mut environment = sandbox.environment("r");
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    environment.set("GIT_AUTHOR_NAME", "A U Thor");
    environment.set("GIT_AUTHOR_EMAIL", "author@example.com");
    environment
}

/// Adds the setting `key` to `environment`.
fn configure(environment: &mut Environment, key: &str, value: &str) {
    environment.set("GIT_CONFIG_COUNT", "1");
    environment.set(FIRST_KEY, key);
    environment.set("GIT_CONFIG_VALUE_0", value);
}

/// Returns a value that puts a setting in effect.
fn value(when: ValueCondition) -> &'static str {
    match when {
        ValueCondition::True => "true",
        ValueCondition::False => "false",
        ValueCondition::Set | ValueCondition::NotEmpty | ValueCondition::Not(_) => "0660",
    }
}

/// Returns all files below `directory` with their content.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
            all.insert(path, Vec::new());
        } else {
            let content = std::fs::read(&path).expect("a file");
            all.insert(path, content);
        }
    }
    all
}

/// Checks that each call of an operation in `operations` is refused because of `name`, and that
/// nothing changes. Returns the number of these calls.
fn refused(
    sandbox: &Sandbox,
    environment: &Environment,
    operations: Operations,
    name: &str,
) -> usize {
    let before = contents(&sandbox.root);
    let concerned = |call: &&Call| operations.intersects(call.operation.with_implied());
    let calls = CALLS.iter().filter(concerned);
    calls
        .map(|call| {
            let context = format!("{name}: {:?}", call.operation);
            let repository = Repository::discover(Path::new("."), environment);
            let repository = repository.expect("it can be opened");
            let lacking = support::check(&repository, call.operation);
            let named = lacking.iter().find(|lacking| lacking.name == name);
            assert!(named.is_some(), "{context}: {lacking:?}");
            let error = (call.run)(&repository, sandbox).expect_err(&context);
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{context}: {error}");
            let wanted = format!("'{name}' is not implemented natively");
            assert!(error.message().contains(&wanted), "{context}: {error}");
            let changed = contents(&sandbox.root) != before;
            assert!(!changed, "{context}: something was changed");
        })
        .count()
}

#[test]
fn every_unsupported_setting_is_refused() {
    let sandbox = prepared();
    for row in SETTINGS {
        let (section, variable) = row.name.split_once('.').expect("two parts");
        let key = match row.place {
            KeyForm::Section => row.name.to_owned(),
            KeyForm::Subsection | KeyForm::Either => format!("{section}.https://x/.{variable}"),
        };
        let mut environment = environment(&sandbox);
        configure(&mut environment, &key, value(row.when));
        let calls = refused(&sandbox, &environment, row.operations, &key);
        // Another crate serves peers.
        let is_elsewhere = row.name == "receive.maxinputsize";
        assert_eq!(calls == 0, is_elsewhere, "{key}");
    }
}

#[test]
fn every_unsupported_variable_is_refused() {
    let sandbox = prepared();
    for row in support::VARIABLES {
        let mut environment = environment(&sandbox);
        environment.set(row.name, value(row.when));
        let calls = refused(&sandbox, &environment, row.operations, row.name);
        assert!(calls > 0, "{}", row.name);
    }
}

#[test]
fn unknown_settings_of_guarded_sections_are_refused() {
    let sandbox = prepared();
    for guarded in GUARDED {
        let key = format!("{}.https://x/.invented", guarded.section);
        let mut environment = environment(&sandbox);
        configure(&mut environment, &key, "1");
        let calls = refused(&sandbox, &environment, guarded.operations, &key);
        assert!(calls > 0, "{key}");
    }
}

#[test]
fn the_hook_of_the_index_is_refused_by_its_writers() {
    let sandbox = prepared();
    let hook = sandbox.root.join("r/.git/hooks/post-index-change");
    std::fs::create_dir_all(hook.parent().expect("it is below")).expect("a directory");
    std::fs::write(&hook, "#!/bin/sh\n").expect("a file");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("it is ours");
    let environment = environment(&sandbox);
    let writers = Operation::RefreshIndex;
    let before = contents(&sandbox.root);
    for call in CALLS {
        if !call.operation.with_implied().contains(writers) {
            continue;
        }
        let repository = Repository::discover(Path::new("."), &environment).expect("it is there");
        let lacking = support::check(&repository, call.operation);
        assert_eq!(lacking.len(), 1, "{lacking:?}");
        assert_eq!(lacking[0].source, LackingSource::Hook);
        assert_eq!(lacking[0].to_string(), "hook 'post-index-change'");
        let error = (call.run)(&repository, &sandbox).expect_err("it is refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(
            contents(&sandbox.root) == before,
            "something was changed: {:?}",
            call.operation
        );
    }
}

#[test]
fn all_settings_of_an_operation_are_returned_without_their_values_in_the_text() {
    let sandbox = prepared();
    sandbox.git("r", &["config", "http.extraSecret", "sesame"]);
    sandbox.git("r", &["config", "credential.sanitizePrompt", "false"]);
    sandbox.git("r", &["config", "core.ignoreStat", "true"]);
    let mut environment = environment(&sandbox);
    environment.set("GIT_SMART_HTTP", "0");
    let repository = Repository::discover(Path::new("."), &environment).expect("it is there");
    let texts = |operation| -> Vec<String> {
        let all = support::check(&repository, operation);
        all.iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        texts(Operation::Fetch),
        [
            "variable 'GIT_SMART_HTTP'",
            "setting 'http.extrasecret'",
            "setting 'credential.sanitizeprompt'",
        ]
    );
    let all = support::check(&repository, Operation::Fetch);
    assert!(all[1].value.as_ref().is_some_and(|value| value == "sesame"));
    let error = support::require(&repository, Operation::Push).expect_err("it is lacking");
    assert!(error.hint().is_some() && !error.message().contains("sesame"));
    assert_eq!(texts(Operation::Status), ["setting 'core.ignorestat'"]);
    assert!(support::check(&repository, Operation::WriteRefs).is_empty());
    support::require(&repository, Operation::UploadPack).expect("nothing concerns it");
}

#[test]
fn the_last_value_counts_and_an_edited_configuration_is_compared_again() {
    let sandbox = prepared();
    sandbox.git("r", &["config", "--add", "core.sharedRepository", "group"]);
    sandbox.git("r", &["config", "--add", "core.sharedRepository", "umask"]);
    let mut repository = sandbox.open("r");
    assert!(support::check(&repository, Operation::WriteRefs).is_empty());
    sandbox.git("r", &["config", "--add", "core.sharedRepository", "all"]);
    repository.reload_config().expect("it can be read");
    assert_eq!(support::check(&repository, Operation::WriteRefs).len(), 1);
}
