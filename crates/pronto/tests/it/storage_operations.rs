//! Tests the operations on stored objects, refs, reflogs and linked worktrees through the public
//! API. Stock git checks each result.

use std::time::Duration;

use bstr::BStr;
use pronto::Watch;
use pronto::lock::Lock;
use pronto::maintenance::MaintenanceTask;
use pronto::refs::PackRefsOptions;
use pronto::worktrees::{AddWorktreeOptions, Branching, ExpiryAge, LockState};
use pronto::{commit_graph, maintenance, multi_pack_index, pack_objects, prune, reflog, repack};

use crate::support::Sandbox;

/// A repository with three commits, each packed by itself.
fn packed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    for name in ["two", "three"] {
        sandbox.git("r", &["repack", "-dq"]);
        std::fs::write(sandbox.root.join("r/file"), name).expect("a file");
        sandbox.git("r", &["add", "."]);
        sandbox.git("r", &["commit", "-q", "-m", name]);
    }
    sandbox.git("r", &["repack", "-dq"]);
    sandbox
}

#[test]
fn a_commit_graph_is_written_and_verified() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let (options, watch) = (commit_graph::GraphWriteOptions::default(), Watch::none());
    commit_graph::write(&repository, &options, &watch).expect("it can be written");
    sandbox.git("r", &["commit-graph", "verify"]);
    let verify = || {
        let mut problems = Vec::new();
        let mut report = |fault| problems.push(fault);
        let repository = sandbox.open("r");
        let verdict = commit_graph::verify(
            &repository,
            &commit_graph::VerifyGraphOptions::default(),
            &watch,
            &mut report,
        );
        (verdict.expect("it can be read").code, problems.len())
    };
    assert_eq!(verify(), (0, 0));
    let path = sandbox.root.join("r/.git/objects/info/commit-graph");
    let mut bytes = std::fs::read(&path).expect("it is there");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::remove_file(&path).expect("it is ours");
    std::fs::write(&path, bytes).expect("a file");
    let (code, problems) = verify();
    assert!(code != 0 && problems > 0);
}

#[test]
fn a_multi_pack_index_is_written_verified_and_repacked() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let watch = Watch::none();
    let options = multi_pack_index::MidxWriteOptions::default();
    multi_pack_index::write(&repository, &options, &watch).expect("it can be written");
    sandbox.git("r", &["multi-pack-index", "verify"]);
    let mut problems = Vec::new();
    let mut report = |fault| problems.push(fault);
    let sound = multi_pack_index::verify(
        &repository,
        &multi_pack_index::VerifyOptions::default(),
        &watch,
        &mut report,
    );
    assert!(sound.expect("it can be read"));
    assert!(problems.is_empty(), "{problems:?}");
    let repository = sandbox.open("r");
    multi_pack_index::repack(
        &repository,
        &multi_pack_index::RepackOptions::default(),
        &watch,
    )
    .expect("it can be repacked");
    multi_pack_index::expire(
        &sandbox.open("r"),
        &multi_pack_index::ExpirePacksOptions::default(),
        &watch,
    )
    .expect("what is in no use can go");
    let counts = sandbox.git("r", &["count-objects", "-v"]);
    assert!(counts.contains("packs: 1"), "{counts}");
    sandbox.git("r", &["fsck", "--strict"]);
}

#[test]
fn unreachable_objects_are_pruned() {
    let sandbox = packed();
    std::fs::write(sandbox.root.join("r/loose"), "nothing leads to it").expect("a file");
    let id = sandbox.git("r", &["hash-object", "-w", "loose"]);
    let repository = sandbox.open("r");
    let watch = Watch::none();
    let mut options = prune::Options::default();
    options.dry_run = true;
    let mut reported = Vec::new();
    let mut record = |removed: &prune::PrunedFile| reported.push(format!("{removed:?}"));
    let outcome = prune::prune(&repository, &options, &mut record, &watch);
    assert_eq!(outcome.expect("it can be told").objects, 1);
    sandbox.git("r", &["cat-file", "-e", &id]);
    options.dry_run = false;
    let outcome = prune::prune(&repository, &options, &mut record, &watch);
    assert_eq!(outcome.expect("it can be removed").objects, 1);
    assert!(reported.iter().all(|one| one.contains(&id)), "{reported:?}");
    assert_eq!(
        sandbox.git("r", &["count-objects"]),
        "0 objects, 0 kilobytes"
    );
    sandbox.git("r", &["fsck", "--strict"]);
}

#[test]
fn loose_copies_of_packed_objects_are_removed() {
    let sandbox = packed();
    let packs = sandbox.root.join("r/.git/objects/pack");
    let pack = std::fs::read_dir(&packs).expect("it is there");
    let pack = pack
        .map(|entry| entry.expect("it lists").path())
        .find(|path| {
            path.extension()
                .is_some_and(|extension| extension == "pack")
        })
        .expect("there are packs");
    // Git unpacks only missing objects, so the pack is moved away.
    let elsewhere = sandbox.root.join("pack");
    std::fs::rename(&pack, &elsewhere).expect("it is ours");
    let unpack = format!("git unpack-objects -q <'{}'", elsewhere.display());
    sandbox.git("r", &["-c", &format!("alias.x=!{unpack}"), "x"]);
    std::fs::rename(&elsewhere, &pack).expect("it is ours");
    assert_ne!(
        sandbox.git("r", &["count-objects"]),
        "0 objects, 0 kilobytes"
    );
    let mut reported = Vec::new();
    let mut record = |removed: &prune::PrunedFile| reported.push(removed.clone());
    let watch = Watch::none();
    let outcome = prune::prune_packed(
        &sandbox.open("r"),
        &prune::Options::default(),
        &mut record,
        &watch,
    );
    assert!(!outcome.expect("they can be removed").gave_up);
    assert!(matches!(
        reported[..],
        [prune::PrunedFile::Duplicate(_), ..]
    ));
    assert_eq!(
        sandbox.git("r", &["count-objects"]),
        "0 objects, 0 kilobytes"
    );
    sandbox.git("r", &["fsck", "--strict"]);
}

#[test]
fn references_are_packed() {
    let sandbox = packed();
    sandbox.git("r", &["tag", "v1"]);
    let before = sandbox.git("r", &["show-ref"]);
    let report = sandbox.open("r").pack_refs(&PackRefsOptions::default());
    let report = report.expect("they can be packed");
    assert!(report.failures.is_empty());
    assert!(report.packed.is_some_and(|packed| packed > 0));
    assert!(!sandbox.root.join("r/.git/refs/tags/v1").exists());
    assert_eq!(sandbox.git("r", &["show-ref"]), before);
}

#[test]
fn reflogs_are_listed_shortened_and_dropped() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let names = repository.logged_references();
    assert!(
        names.iter().any(|name| name == "refs/heads/main"),
        "{names:?}"
    );
    let entries = |sandbox: &Sandbox| {
        let log = sandbox.git_or_nothing("r", &["reflog", "show", "main"]);
        log.lines().count()
    };
    assert_eq!(entries(&sandbox), 3);
    let name = BStr::new("refs/heads/main");
    let deleted = repository.delete_log_line(name, 0, reflog::RewriteOptions::default());
    assert!(deleted.failure.is_none(), "{deleted:?}");
    assert_eq!((deleted.kept, deleted.pruned), (2, 1));
    assert_eq!(entries(&sandbox), 2);
    let mut options = reflog::ExpireOptions::default();
    options.logs = reflog::LogSelection::Named(vec![name.to_owned()]);
    options.expire = Some(i64::MAX);
    options.expire_unreachable = Some(i64::MAX);
    let expired = repository.expire_reflogs(&options, &Watch::none());
    let expired = expired.expect("they can be read");
    assert!(
        expired
            .iter()
            .all(|log| log.failure.is_none() && log.kept == 0)
    );
    assert_eq!(entries(&sandbox), 0);
    repository.drop_log(name).expect("it can be removed");
    assert!(!sandbox.root.join("r/.git/logs/refs/heads/main").exists());
}

#[test]
fn a_worktree_is_added_locked_moved_and_removed() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let watch = Watch::none();
    let place =
        |name: &str| bstr::BString::from(sandbox.root.join(name).to_string_lossy().as_bytes());
    let mut options = AddWorktreeOptions::default();
    options.place = place("linked");
    options.branching = Branching::New("side".into());
    let addition = pronto::worktrees::plan(&repository, options).expect("there is room");
    let added = pronto::worktrees::add(&repository, &addition, &watch);
    assert!(!added.expect("it can be made").has_failed());
    assert_eq!(sandbox.git("linked", &["status", "--porcelain"]), "");
    assert_eq!(
        sandbox.git("linked", &["symbolic-ref", "HEAD"]),
        "refs/heads/side"
    );
    let all = repository.work_trees().expect("they can be listed");
    assert_eq!(all.len(), 2);
    let found = pronto::worktrees::find(&repository, &all, "linked".into());
    let linked = found.expect("its end names it");
    let state = || pronto::worktrees::lock_state(&repository, linked).expect("it can be read");
    pronto::worktrees::lock(&repository, "linked".into(), "on a stick".into())
        .expect("it is not locked");
    assert_eq!(state(), LockState::Locked("on a stick".into()));
    let to = place("moved");
    pronto::worktrees::relocate(&repository, "linked".into(), to.as_ref(), 0)
        .expect_err("it is locked");
    pronto::worktrees::unlock(&repository, "linked".into()).expect("it is locked");
    assert_eq!(state(), LockState::Unlocked);
    pronto::worktrees::relocate(&repository, "linked".into(), to.as_ref(), 0)
        .expect("there is room");
    assert_eq!(sandbox.git("moved", &["status", "--porcelain"]), "");
    let removed = pronto::worktrees::remove(&repository, "moved".into(), 0, &watch);
    assert!(removed.expect("it is clean").failures.is_empty());
    assert!(!sandbox.root.join("moved").exists());
    assert_eq!(
        repository.work_trees().expect("they can be listed").len(),
        1
    );
}

#[test]
fn a_worktree_that_is_gone_is_pruned_and_one_that_moved_repaired() {
    let sandbox = packed();
    for name in ["one", "two"] {
        sandbox.git(
            "r",
            &["worktree", "add", "-q", "--detach", &format!("../{name}")],
        );
    }
    std::fs::remove_dir_all(sandbox.root.join("one")).expect("it is ours");
    let moved = sandbox.root.join("moved");
    std::fs::rename(sandbox.root.join("two"), &moved).expect("it is ours");
    let repository = sandbox.open("r");
    let places = [bstr::BString::from(moved.to_string_lossy().as_bytes())];
    let repairs = pronto::worktrees::repair(&repository, &places);
    assert!(!repairs.expect("it can be repaired").is_empty());
    assert_eq!(sandbox.git("moved", &["status", "--porcelain"]), "");
    let pruned = pronto::worktrees::prune(&repository, ExpiryAge::Now, true);
    assert_eq!(pruned.expect("it can be told").len(), 1);
    assert!(sandbox.root.join("r/.git/worktrees/one").exists());
    let pruned = pronto::worktrees::prune(&repository, ExpiryAge::Now, false);
    let pruned = pruned.expect("it can be removed");
    assert_eq!(pruned.len(), 1);
    assert!(pruned[0].id == "one" && pruned[0].failure.is_none());
    assert!(!sandbox.root.join("r/.git/worktrees/one").exists());
    assert!(sandbox.root.join("r/.git/worktrees/two").exists());
}

#[test]
fn objects_and_references_are_named_shortly() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let head = repository.resolve("HEAD").expect("a commit");
    assert_eq!(
        repository.abbreviate(&head).expect("it can be told"),
        sandbox.git("r", &["rev-parse", "--short", "HEAD"])
    );
    sandbox.git("r", &["tag", "main"]);
    let repository = sandbox.open("r");
    let short = |strict| {
        let short = repository.shorten_reference("refs/heads/main".into(), strict);
        short.expect("it can be told").to_string()
    };
    assert_eq!(short(true), "heads/main");
}

#[test]
fn a_repository_is_repacked_into_one_pack() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let mut options = repack::Options::default();
    options.what = repack::RepackMode::All { loosen: false };
    options.delete = true;
    options.local = false;
    options.pack_kept_objects = false;
    options.keep_packs = Vec::new();
    options.bitmaps = repack::WriteBitmaps::No;
    options.multi_pack_index = false;
    options.server_info = false;
    options.unpack_unreachable = None;
    options.patience = Duration::from_secs(30);
    options.packing = pack_objects::packing_options(&repository).expect("it is configured");
    let counts = repack::repack(&repository, &options, &Watch::none());
    assert!(counts.expect("it can be packed").is_some());
    let counts = sandbox.git("r", &["count-objects", "-v"]);
    assert!(
        counts.contains("packs: 1\n") && counts.contains("count: 0\n"),
        "{counts}"
    );
    sandbox.git("r", &["fsck", "--strict"]);
}

/// Records the steps of maintenance instead of running them.
#[derive(Default)]
struct Recorder(Vec<String>);

impl maintenance::CommandRunner for Recorder {
    fn run(&mut self, step: &maintenance::CommandCall) -> pronto::Result<bool> {
        let words = step.arguments.iter().map(|word| word.to_string_lossy());
        self.0.push(words.collect::<Vec<_>>().join(" "));
        Ok(true)
    }

    fn detach(&mut self) -> bool {
        false
    }

    fn report_failure(&mut self, task: MaintenanceTask, error: &pronto::Error) {
        self.0.push(format!("{}: {error}", task.name()));
    }

    fn report_no_multi_pack_index(&mut self) {
        self.0.push("no multi-pack-index".to_owned());
    }
}

#[test]
fn maintenance_runs_its_tasks_once_at_a_time() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let settings = maintenance::Settings::of(&repository).expect("they can be read");
    let is_needed = |task| maintenance::is_needed(&repository, task, &settings);
    assert!(!is_needed(MaintenanceTask::Gc).expect("it can be decided"));
    let mut run = maintenance::RunOptions::new(
        vec![MaintenanceTask::PackRefs, MaintenanceTask::CommitGraph],
        settings.clone(),
    );
    run.auto = false;
    run.quiet = true;
    run.detach = false;
    run.skips_foreground = false;
    run.is_automatic = false;
    let mut recorder = Recorder::default();
    let outcome = maintenance::maintain(&repository, &run, &mut recorder);
    assert_eq!(
        outcome.expect("the lock is free"),
        maintenance::Outcome::Done
    );
    let [pack_refs, commit_graph] = &recorder.0[..] else {
        panic!("{:?}", recorder.0);
    };
    assert!(pack_refs.starts_with("pack-refs "), "{pack_refs}");
    assert!(
        commit_graph.starts_with("commit-graph write "),
        "{commit_graph}"
    );
    let target = sandbox.root.join("r/.git/objects/maintenance");
    let _lock = Lock::acquire(target, Duration::ZERO).expect("nobody holds it");
    let outcome = maintenance::maintain(&repository, &run, &mut recorder);
    assert!(matches!(
        outcome.expect("it is no error"),
        maintenance::Outcome::Busy(_)
    ));
    assert_eq!(recorder.0.len(), 2);
}

#[test]
fn garbage_collection_says_how_it_repacks() {
    let sandbox = packed();
    let repository = sandbox.open("r");
    let settings = maintenance::Settings::of(&repository).expect("they can be read");
    let plan = |auto| {
        let mut options = maintenance::GcOptions::default();
        options.auto = auto;
        maintenance::plan_gc(&repository, &options, &settings).expect("it can be decided")
    };
    assert!(plan(false).is_some());
    assert!(plan(true).is_none(), "there is little to do");
}
