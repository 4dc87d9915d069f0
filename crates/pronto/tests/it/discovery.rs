//! Tests of the discovery of repositories.

use pronto::{ErrorKind, Repository};

use crate::support::Sandbox;

#[test]
fn an_ordinary_repository_is_found_from_below() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    std::fs::create_dir_all(sandbox.root.join("r/a/b")).expect("directories");
    let repository = sandbox.open("r/a/b");
    assert_eq!(repository.git_dir(), sandbox.root.join("r/.git"));
    assert_eq!(
        repository.work_tree(),
        Some(sandbox.root.join("r").as_path())
    );
    assert_eq!(repository.prefix(), Some("a/b/".into()));
    assert!(!repository.is_bare());
    assert_eq!(
        repository.config().bool("core.bare").expect("a boolean"),
        Some(false)
    );
}

#[test]
fn linked_work_trees_share_all_but_their_own() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    sandbox.git("r", &["worktree", "add", "-q", "../w"]);
    let repository = sandbox.open("w");
    assert_eq!(
        repository.git_dir(),
        sandbox.root.join("r/.git/worktrees/w")
    );
    assert_eq!(repository.common_dir(), sandbox.root.join("r/.git"));
    assert_eq!(
        repository.work_tree(),
        Some(sandbox.root.join("w").as_path())
    );
    let head = repository.head().expect("a head");
    assert_eq!(head.branch(), Some("w".into()));
    let main = repository
        .refs()
        .resolve("main-worktree/HEAD")
        .expect("it can be read");
    assert_eq!(main.expect("it is there").name, "refs/heads/main");
}

#[test]
fn a_bare_repository_has_no_work_tree() {
    let sandbox = Sandbox::new();
    sandbox.git("", &["init", "-q", "--bare", "b.git"]);
    let repository = sandbox.open("b.git/refs");
    assert!(repository.is_bare());
    assert_eq!(repository.work_tree(), None);
    assert_eq!(repository.git_dir(), sandbox.root.join("b.git"));
}

#[test]
fn an_explicit_repository_has_its_work_tree_here() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    std::fs::create_dir(sandbox.root.join("x")).expect("a directory");
    let mut environment = sandbox.environment("x");
    environment.set("GIT_DIR", "../r/.git");
    let repository = Repository::discover(".", &environment).expect("a repository");
    assert_eq!(
        repository.work_tree(),
        Some(sandbox.root.join("x").as_path())
    );
    environment.set("GIT_DIR", "nowhere");
    let error = Repository::discover(".", &environment).expect_err("nothing there");
    assert_eq!(error.to_string(), "not a git repository: 'nowhere'");
    assert_eq!(error.kind(), ErrorKind::NoRepository);
    let none = Repository::discover_optional(".", &environment).expect("it need not be there");
    assert!(none.is_none());
}

#[test]
fn relative_settings_count_from_where_git_would_work() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    std::fs::create_dir(sandbox.root.join("r/sub")).expect("a directory");
    sandbox.git("", &["init", "-q", "--bare", "b.git"]);
    let works_in = |repository: &Repository, place: &str| {
        assert_eq!(repository.working_dir(), sandbox.root.join(place));
        let full = repository.environment().resolve("x");
        assert_eq!(full, sandbox.root.join(place).join("x"));
    };
    works_in(&sandbox.open("r/sub"), "r");
    works_in(&sandbox.open("r/.git"), "r/.git");
    works_in(&sandbox.open("b.git/refs"), "b.git/refs");
    let environment = sandbox.environment("");
    let open =
        |path: &str| Repository::open(sandbox.root.join(path), &environment).expect("a repository");
    works_in(&open("r/.git"), "r");
    works_in(&open("b.git"), "b.git");
    let served = Repository::open_served(sandbox.root.join("r/.git"), &environment);
    works_in(&served.expect("a repository"), "r/.git");
}

#[test]
fn ceilings_and_unknown_formats_stop_the_search() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    std::fs::create_dir(sandbox.root.join("r/a")).expect("a directory");
    let mut environment = sandbox.environment("r/a");
    environment.set("GIT_CEILING_DIRECTORIES", sandbox.root.join("r"));
    let error = Repository::discover(".", &environment).expect_err("it may not look there");
    assert_eq!(
        error.to_string(),
        "not a git repository (or any of the parent directories): .git"
    );
    sandbox.git("r", &["config", "core.repositoryformatversion", "1"]);
    sandbox.git("r", &["config", "extensions.shiny", "yes"]);
    let environment = sandbox.environment("r");
    let error = Repository::discover(".", &environment).expect_err("it is too new");
    assert_eq!(
        error.to_string(),
        "unknown repository extension found:\n\tshiny"
    );
}

#[test]
fn someone_elses_repository_needs_leave() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let mut environment = sandbox.environment("r");
    environment.set("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let error = Repository::discover(".", &environment).expect_err("it is not ours");
    assert_eq!(error.kind(), ErrorKind::Unsafe);
    let place = sandbox.root.join("r");
    let text = place.to_str().expect("text");
    assert!(
        error
            .message()
            .contains(&format!("--add safe.directory {text}"))
    );
    for allowed in [text, "*", &format!("{}/*", sandbox.root.display())] {
        sandbox.git("", &["config", "--global", "safe.directory", allowed]);
        Repository::discover(".", &environment).expect("it is allowed");
    }
    sandbox.git(
        "",
        &["config", "--global", "safe.directory", "/elsewhere/*"],
    );
    Repository::discover(".", &environment).expect_err("that is another place");
}
