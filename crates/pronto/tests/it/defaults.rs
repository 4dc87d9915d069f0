//! Compares default options of the library with the commands without options.

use std::collections::BTreeMap;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use pronto::push::PushRemote;
use pronto::remote::Remote;
use pronto::{Repository, Watch};
use pronto::{
    add, archive, checkout_index, checkout_paths, clean, clone, commit, commit_graph, diff, fetch,
    ls_remote, multi_pack_index, prune, push, read_tree, reflog, refresh, refs, repack, reset,
    status, switch,
};

use crate::support::Sandbox;

/// The hooks whose runs are compared. Operations with other hooks are left to git.
const HOOKS: &[&str] = &["post-checkout", "pre-push", "reference-transaction"];

/// Returns a clone `r` of `o.git` with local changes, a second branch on both sides and hooks.
fn scene() -> Sandbox {
    let sandbox = Sandbox::with_files();
    sandbox.git("r", &["branch", "side"]);
    sandbox.git("r", &["tag", "-a", "-m", "v1", "v1"]);
    sandbox.git("", &["clone", "-q", "--bare", "r", "o.git"]);
    let origin = sandbox.root.join("o.git").display().to_string();
    sandbox.git("r", &["remote", "add", "origin", &origin]);
    sandbox.git("r", &["fetch", "-q"]);
    sandbox.git("r", &["branch", "-q", "--set-upstream-to=origin/main"]);
    sandbox.write("a", "second");
    sandbox.git("r", &["commit", "-q", "-a", "-m", "two"]);
    sandbox.git("r", &["tag", "-a", "-m", "v2", "v2"]);
    // The other side has news.
    sandbox.git("", &["clone", "-q", "-b", "side", "o.git", "other"]);
    sandbox.git("other", &["commit", "-q", "--allow-empty", "-m", "news"]);
    sandbox.git(
        "other",
        &["push", "-q", "origin", "side", "HEAD:refs/heads/new"],
    );
    for hook in HOOKS {
        let path = sandbox.root.join("r/.git/hooks").join(hook);
        let log = sandbox.root.join("hooks.log").display().to_string();
        let text = format!("#!/bin/sh\ntest -t 0 || cat >/dev/null\necho {hook} >>{log}\n");
        test_support::write_program(&path, &text);
    }
    sandbox.write("a", "changed");
    sandbox.write("new", "new");
    std::fs::remove_file(sandbox.root.join("r/b")).expect("it exists");
    sandbox
}

/// Describes everything that an operation may change: refs, reflogs, the index, files, hooks that ran,
/// and the refs of the other side.
fn describe(sandbox: &Sandbox, ran: &str) -> String {
    // The first look refreshes no index: what the operation left is shown.
    let files = sandbox.git(
        "r",
        &["--no-optional-locks", "diff-files", "--raw", "--abbrev=4"],
    );
    let index = sandbox.git("r", &["ls-files", "-s", "-t"]);
    let untracked = sandbox.git("r", &["ls-files", "-o"]);
    let refs = sandbox.git("r", &["for-each-ref"]);
    let head = sandbox.git_or_nothing("r", &["symbolic-ref", "HEAD"]);
    let reflog = sandbox.git_or_nothing("r", &["reflog", "--format=%H %gs"]);
    let there = sandbox.git("o.git", &["for-each-ref"]);
    let log = std::fs::read_to_string(sandbox.root.join("hooks.log")).unwrap_or_default();
    let fetched =
        std::fs::read_to_string(sandbox.root.join("r/.git/FETCH_HEAD")).unwrap_or_default();
    let root = sandbox.root.display().to_string();
    [
        ran, &files, &index, &untracked, &refs, &head, &reflog, &there, &log, &fetched,
    ]
    .join("\n--\n")
    .replace(&root, "ROOT")
}

/// Describes the stored objects and refs: the kinds of files below `objects` and their number, every
/// object, the packed refs and the reflogs.
fn describe_storage(sandbox: &Sandbox, ran: &str) -> String {
    let top = sandbox.root.join("r/.git");
    let mut files = BTreeMap::new();
    let mut directories = vec![top.join("objects")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            // Names contain checksums of contents that may differ, such as those of packs.
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let kind = match (name.split_once('.'), name.split_once('-')) {
                (Some((start, end)), _) if start.len() > 40 => format!("*.{end}"),
                (_, Some(_)) => name.to_string(),
                _ if name.len() == 38 => "loose".to_owned(),
                _ => name.to_string(),
            };
            *files.entry(kind).or_insert(0) += 1;
        }
    }
    let objects = sandbox.git(
        "r",
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check",
            "--unordered",
        ],
    );
    let mut objects: Vec<&str> = objects.lines().collect();
    objects.sort_unstable();
    let packed = std::fs::read_to_string(top.join("packed-refs")).unwrap_or_default();
    let loose = sandbox.run(Path::new("find"), "r", &[".git/refs", "-type", "f"]);
    let mut loose: Vec<_> = loose.stdout.lines().map(<[u8]>::as_bstr).collect();
    loose.sort_unstable();
    let reflogs = sandbox.git("r", &["reflog", "--all", "--format=%H %gs"]);
    sandbox.git("r", &["fsck", "--full", "--strict"]);
    format!("{ran}\n{files:?}\n{objects:#?}\n{packed}\n{loose:?}\n{reflogs}")
}

/// Runs `git` with `arguments` in one scene and `operation` in another one, and compares the results.
fn compare(arguments: &[&str], prepare: &[&[&str]], operation: impl Fn(&Repository, &Watch<'_>)) {
    compare_as(describe, arguments, prepare, operation);
}

/// Like [`compare`], and compares the descriptions that `describe` returns.
fn compare_as(
    describe: fn(&Sandbox, &str) -> String,
    arguments: &[&str],
    prepare: &[&[&str]],
    operation: impl Fn(&Repository, &Watch<'_>),
) {
    let (theirs, ours) = (scene(), scene());
    for sandbox in [&theirs, &ours] {
        for arguments in prepare {
            sandbox.git("r", arguments);
        }
        _ = std::fs::remove_file(sandbox.root.join("hooks.log"));
    }
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let output = theirs.run(git, "r", arguments);
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    operation(&open(&ours), &Watch::none());
    let ran = arguments.join(" ");
    similar(&describe(&theirs, &ran), &describe(&ours, &ran));
}

/// Opens the repository `r` with the environment of a user.
fn open(sandbox: &Sandbox) -> Repository {
    let mut environment = sandbox.environment("r");
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    environment.set("GIT_AUTHOR_NAME", "A U Thor");
    environment.set("GIT_AUTHOR_EMAIL", "author@example.com");
    environment.set("GIT_AUTHOR_DATE", "1112911993 -0700");
    Repository::discover(Path::new("."), &environment).expect("a repository")
}

/// Compares the output of `git` with the text that `query` returns, in one scene.
fn compare_output(arguments: &[&str], query: impl Fn(&Repository, &Watch<'_>) -> Vec<u8>) {
    let sandbox = scene();
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let output = sandbox.run(git, "r", arguments);
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    let ours = query(&open(&sandbox), &Watch::none());
    let equal = output.stdout == ours;
    let (theirs, ours) = (output.stdout.as_bstr(), ours.as_bstr());
    assert!(equal, "git {arguments:?}:\n{theirs}\n\npronto:\n{ours}");
}

fn similar(theirs: &str, ours: &str) {
    assert!(theirs == ours, "git:\n{theirs}\n\npronto:\n{ours}");
}

#[test]
fn default_options_of_staging_are_those_of_git() {
    compare(&["add", "."], &[], |repository, watch| {
        let mut options = add::Options::default();
        options.pathspec = repository.pathspec([BStr::new(".")]).expect("a pathspec");
        assert!(!add::add(repository, &options, watch).expect("added").failed);
    });
    compare(
        &["update-index", "-q", "--refresh", "--unmerged"],
        &[&["add", "."]],
        |repository, watch| {
            let options = refresh::Options::default();
            let refreshed = refresh::refresh_index(repository, &options, watch).expect("refreshed");
            assert_eq!(refreshed.outdated, []);
        },
    );
    compare(&["read-tree", "HEAD"], &[], |repository, watch| {
        let tree = repository.resolve_tree("HEAD").expect("a tree");
        let options = read_tree::Options::default();
        read_tree::read_trees(repository, &[tree], &options, watch).expect("read");
    });
    compare(&["status"], &[], |repository, watch| {
        let report = status::status(repository, &status::Options::default(), watch);
        assert_eq!(report.expect("a status").untracked, ["new"]);
    });
}

#[test]
fn default_options_of_moving_are_those_of_git() {
    compare(
        &["reset", "HEAD~1"],
        &[&["add", "."]],
        |repository, watch| {
            let to = reset::target(repository, "HEAD~1".into(), false).expect("a commit");
            let outcome = reset::reset(repository, &reset::Options::new(to), watch);
            assert!(matches!(outcome, Ok(reset::Outcome::Done(_))));
        },
    );
    compare(
        &["switch", "-q", "side"],
        &[&["checkout", "-q", "."]],
        |repository, watch| {
            let mut options = switch::Options::default();
            options.to = switch::start_at(repository, "side").expect("a branch");
            let outcome = switch::switch(repository, &options, watch);
            assert!(matches!(outcome, Ok(switch::Outcome::Done(_))));
        },
    );
    compare(&["restore", "."], &[], |repository, watch| {
        let pathspec = repository.pathspec([BStr::new(".")]).expect("a pathspec");
        let mut options = checkout_paths::Options::new(pathspec);
        // `restore` leaves the index alone, as the documentation of the options says.
        options.index = false;
        _ = checkout_paths::checkout_paths(repository, &options, watch).expect("restored");
    });
    compare(&["clean", "-f"], &[], |repository, watch| {
        clean::clean(repository, &clean::Options::default(), watch).expect("cleaned");
    });
}

#[test]
fn default_options_of_commit_and_exchange_are_those_of_git() {
    compare(
        &["commit", "-q", "-m", "three"],
        &[&["add", "."]],
        |repository, watch| {
            let mut options = commit::Options::default();
            options.message = "three\n".into();
            let outcome = commit::commit(repository, &options, watch);
            assert!(matches!(outcome, Ok(commit::Outcome::Done(_))));
        },
    );
    compare(&["fetch", "-q"], &[], |repository, watch| {
        let origin = Remote::find(repository, "origin".into()).expect("a remote");
        let outcome = fetch::fetch(repository, &origin, &fetch::Options::default(), watch);
        assert!(!outcome.expect("fetched").failed);
    });
    for settings in [
        &[][..],
        &["push.followTags=true"],
        &["push.default=current"],
    ] {
        let prepare: Vec<Vec<&str>> = settings
            .iter()
            .map(|setting| {
                let (key, value) = setting.split_once('=').expect("key=value");
                vec!["config", key, value]
            })
            .collect();
        let prepare: Vec<&[&str]> = prepare.iter().map(Vec::as_slice).collect();
        compare(&["push", "-q"], &prepare, |repository, watch| {
            let destination = PushRemote::default_of(repository).expect("origin");
            let mut options = push::Options::configured(repository.config()).expect("settings");
            let defaults = push::default_specs(repository, &destination, false).expect("specs");
            options.specs = defaults.specs;
            options.set_upstream = defaults.set_upstream;
            let url = destination.urls[0].as_bstr();
            let outcome = push::push(repository, &destination, url, &options, watch);
            assert!(!outcome.expect("pushed").has_errors());
        });
    }
}

#[test]
fn default_options_of_a_clone_are_those_of_git() {
    let sandbox = scene();
    let origin = sandbox.root.join("o.git").display().to_string();
    sandbox.git("", &["clone", "-q", &origin, "theirs"]);
    let mut environment = sandbox.environment("");
    environment.set("PATH", std::env::var_os("PATH").unwrap_or_default());
    let options = clone::Options::default();
    let place = sandbox.root.join("ours");
    _ = clone::clone(
        origin.as_bytes().as_bstr(),
        &place,
        &options,
        &environment,
        &Watch::none(),
    )
    .expect("cloned");
    let look = |directory: &str| {
        [
            &["for-each-ref"][..],
            &["ls-files", "-s"],
            &["config", "--local", "--list"],
        ]
        .map(|arguments| sandbox.git(directory, arguments))
    };
    assert_eq!(look("theirs"), look("ours"));
}

/// Renders differences like `--name-status` with all other options off.
fn names_of(result: &diff::DiffResult) -> Vec<u8> {
    let lines = result.differences.iter().map(|difference| {
        let letter = match (&difference.old, &difference.new) {
            (None, _) => 'A',
            (_, None) => 'D',
            _ => 'M',
        };
        format!("{letter}\t{}\n", difference.path)
    });
    lines.collect::<String>().into_bytes()
}

#[test]
fn default_options_of_queries_are_those_of_git() {
    compare_output(&["archive", "HEAD"], |repository, watch| {
        let options = archive::Options::default();
        let archive = archive::prepare(repository, "HEAD".into(), options, watch);
        let mut output = Vec::new();
        let written = archive.expect("a tree").write(&mut output, &|_| (), watch);
        written.expect("written");
        output
    });
    compare_output(&["diff-files", "--name-status"], |repository, watch| {
        let options = diff::Options::default();
        names_of(&diff::files(repository, 0, &options, watch).expect("compared"))
    });
    compare_output(
        &["diff-index", "--name-status", "HEAD~1"],
        |repository, watch| {
            let tree = repository.resolve_tree("HEAD~1").expect("a tree");
            let options = diff::Options::default();
            let result = diff::index(repository, tree, diff::Against::Files, &options, watch);
            names_of(&result.expect("compared"))
        },
    );
    compare_output(&["ls-remote", "-q"], |repository, watch| {
        let origin = Remote::find(repository, "origin".into()).expect("a remote");
        let options = ls_remote::Options::default();
        let (config, environment) = (repository.config(), repository.environment());
        let listed = ls_remote::ls_remote(&origin, &options, config, environment, watch);
        let lines = listed.expect("listed");
        let lines = lines
            .iter()
            .map(|found| format!("{}\t{}\n", found.id, found.name));
        lines.collect::<String>().into_bytes()
    });
}

#[test]
fn default_options_of_storage_are_those_of_git() {
    let packed: &[&[&str]] = &[&["repack", "-q"], &["tag", "-a", "-m", "v3", "v3"]];
    compare_as(
        describe_storage,
        &["repack", "-q"],
        packed,
        |repository, watch| {
            _ = repack::repack(repository, &repack::Options::default(), watch).expect("packed");
        },
    );
    let unreachable: &[&[&str]] = &[
        &["repack", "-q", "-a"],
        &["stash"],
        &["stash", "drop", "-q"],
        &["reset", "-q", "--hard", "HEAD~1"],
    ];
    compare_as(
        describe_storage,
        &["prune"],
        unreachable,
        |repository, watch| {
            let options = prune::Options::default();
            _ = prune::prune(repository, &options, &mut |_| (), watch).expect("pruned");
        },
    );
    compare_as(
        describe_storage,
        &["prune-packed", "-q"],
        unreachable,
        |repository, watch| {
            let options = prune::Options::default();
            _ = prune::prune_packed(repository, &options, &mut |_| (), watch).expect("pruned");
        },
    );
    compare_as(
        describe_storage,
        &["commit-graph", "write", "--no-progress"],
        packed,
        |repository, watch| {
            let options = commit_graph::GraphWriteOptions::default();
            commit_graph::write(repository, &options, watch).expect("written");
        },
    );
    compare_as(
        describe_storage,
        &["multi-pack-index", "write", "--no-progress"],
        packed,
        |repository, watch| {
            let options = multi_pack_index::MidxWriteOptions::default();
            multi_pack_index::write(repository, &options, watch).expect("written");
        },
    );
    compare_as(describe_storage, &["pack-refs"], &[], |repository, _| {
        let options = refs::PackRefsOptions::default();
        repository.pack_refs(&options).expect("packed");
    });
    compare_as(
        describe_storage,
        &["reflog", "expire", "--all"],
        unreachable,
        |repository, watch| {
            let options = reflog::ExpireOptions::default();
            repository.expire_reflogs(&options, watch).expect("expired");
        },
    );
}

#[test]
fn default_options_of_checkout_index_are_those_of_git() {
    compare(&["checkout-index", "b"], &[], |repository, watch| {
        let mut options = checkout_index::Options::default();
        options.paths = vec!["b".into()];
        _ = checkout_index::checkout_index(repository, &options, watch).expect("copied");
    });
}
