//! Tests of the creation of repositories.

use pronto::init::Options;
use pronto::{Environment, Repository};
use pronto_hash::Kind;

use crate::support::Sandbox;

fn files_below(directory: &std::path::Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).expect("readable").flatten() {
            let path = entry.path();
            let name = path
                .strip_prefix(directory)
                .expect("below")
                .display()
                .to_string();
            if path.is_dir() {
                open.push(path);
                all.push(name);
            } else {
                let text = std::fs::read(&path).expect("readable");
                all.push(format!("{name}: {}", String::from_utf8_lossy(&text)));
            }
        }
    }
    all.sort();
    all
}

fn options(environment: &Environment, directory: &str) -> Options {
    let mut options = Options::default();
    options.work_tree = Some(environment.current_dir().join(directory));
    options.initial_branch = Some("main".into());
    options
}

#[test]
fn what_is_made_is_what_git_makes() {
    let Some(reference) = test_support::git::reference() else {
        test_support::report_missing_reference(&"the layout of new repositories needs git 2.55");
        return;
    };
    let sandbox = Sandbox::new();
    let environment = sandbox.environment("");
    for (format, object_hash) in [("sha1", None), ("sha256", Some(Kind::Sha256))] {
        let ours = format!("ours-{format}");
        let theirs = format!("theirs-{format}");
        let object_format = format!("--object-format={format}");
        let init = ["init", "-q", "-b", "main", &object_format, &theirs];
        let made = sandbox.run(reference, "", &init);
        assert!(made.status.success(), "{made:?}");
        std::fs::create_dir(sandbox.root.join(&ours)).expect("a directory");
        let options = {
            let mut changed = options(&environment, &ours);
            changed.object_hash = object_hash;
            changed
        };
        let git_dir = sandbox.root.join(&ours).join(".git");
        let outcome = Repository::init(&git_dir, &options, &environment).expect("it is made");
        assert!(!outcome.existed);
        assert_eq!(
            files_below(&git_dir),
            files_below(&sandbox.root.join(theirs).join(".git"))
        );
        let again = Repository::init(&git_dir, &options, &environment).expect("it is there");
        assert!(again.existed);
    }
}

#[test]
fn bare_ones_have_no_work_tree_and_formats_stay() {
    let sandbox = Sandbox::new();
    let environment = sandbox.environment("");
    let mut options = Options::default();
    options.object_hash = Some(Kind::Sha256);
    let git_dir = sandbox.root.join("b.git");
    let outcome = Repository::init(&git_dir, &options, &environment).expect("it is made");
    assert!(outcome.repository.is_bare());
    assert_eq!(outcome.unchosen_branch, Some("master".into()));
    let mut options = Options::default();
    options.object_hash = Some(Kind::Sha1);
    let error = Repository::init(&git_dir, &options, &environment).expect_err("another hash");
    assert_eq!(
        error.message(),
        "attempt to reinitialize repository with different hash"
    );
    let mut options = Options::default();
    options.initial_branch = Some("a..b".into());
    let other = sandbox.root.join("c.git");
    let error = Repository::init(&other, &options, &environment).expect_err("no name");
    assert_eq!(error.message(), "invalid initial branch name: 'a..b'");
}
