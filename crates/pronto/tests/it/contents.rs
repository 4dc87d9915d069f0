//! Tests of commits and trees as data, and of the paths of callers.

use bstr::BStr;
use pronto::{ErrorKind, ObjectKind, Repository};

use crate::support::Sandbox;

#[test]
fn a_commit_is_read_as_data() {
    let sandbox = Sandbox::with_files();
    sandbox.git(
        "r",
        &["commit", "-q", "--allow-empty", "-m", "Subject\n\nBody\n"],
    );
    let repository = sandbox.open("r");
    let id = repository.resolve_commit("HEAD").expect("a commit");
    let commit = repository.commit(&id).expect("it can be read");
    let show = |format: &str| sandbox.git("r", &["show", "-s", &format!("--format={format}")]);
    let parents: Vec<String> = commit.parents.iter().map(ToString::to_string).collect();
    assert_eq!(commit.tree.to_string(), show("%T"));
    assert_eq!(parents.join(" "), show("%P"));
    assert_eq!(commit.subject(), show("%s"));
    assert_eq!(commit.message, "Subject\n\nBody\n");
    let author = commit.author.expect("the line is well formed");
    assert_eq!(author.to_string(), show("%an <%ae> %at -0700"));
    let committer = commit.committer.expect("the line is well formed");
    assert_eq!(committer.to_string(), show("%cn <%ce> %ct -0700"));
    assert_eq!(commit.encoding, None);
    let kind = |id: pronto::ObjectId| repository.commit(&id).expect_err("no commit").kind();
    assert_eq!(kind(commit.tree), ErrorKind::Object);
    assert_eq!(kind(id.kind().null()), ErrorKind::MissingObject);
    sandbox.git(
        "",
        &[
            "clone",
            "-q",
            "--depth=1",
            &format!("file://{}/r", sandbox.root.display()),
            "s",
        ],
    );
    let shallow = sandbox.open("s").commit(&id).expect("it can be read");
    assert!(shallow.parents.is_empty());
}

#[test]
fn a_tree_is_read_as_data() {
    let sandbox = Sandbox::with_files();
    let repository = sandbox.open("r");
    let head = sandbox.git("r", &["rev-parse", "HEAD"]);
    sandbox.git(
        "r",
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{head},sub"),
        ],
    );
    sandbox.git("r", &["update-index", "--chmod=+x", "b"]);
    let tree = sandbox.git("r", &["write-tree"]);
    let id = repository.resolve_tree(&tree).expect("a tree");
    let entries = repository.tree(&id).expect("it can be read");
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| {
            format!(
                "{:06o} {} {}\t{}",
                entry.mode,
                entry.kind(),
                entry.id,
                entry.name
            )
        })
        .collect();
    assert_eq!(lines.join("\n"), sandbox.git("r", &["ls-tree", &tree]));
    assert_eq!(
        entries.last().map(|entry| entry.kind()),
        Some(ObjectKind::Commit)
    );
    let commit = repository.resolve_commit("HEAD").expect("a commit");
    let error = repository.tree(&commit).expect_err("no tree");
    assert_eq!(error.kind(), ErrorKind::Object);
    let broken = "printf '100644 a\\0short' | git hash-object --literally -w -t tree --stdin";
    let shell = std::process::Command::new("sh")
        .args(["-c", broken])
        .current_dir(sandbox.root.join("r"))
        .output();
    let id = String::from_utf8(shell.expect("sh").stdout).expect("an id");
    let id = pronto::hash::parse_hex(id.trim().as_bytes()).expect("an id");
    assert_eq!(
        repository.tree(&id).expect_err("it is malformed").kind(),
        ErrorKind::Corrupt
    );
}

#[test]
fn paths_are_relative_to_the_start_of_the_discovery() {
    let sandbox = Sandbox::with_files();
    let environment = sandbox.environment("r");
    let repository = Repository::discover(".", &environment).expect("a repository");
    let top = sandbox.root.join("r");
    assert_eq!(
        repository.work_tree().map(|top| top.as_os_str()),
        Some(top.as_os_str())
    );
    let path = |repository: &Repository, path: &str| {
        let path = path.replace("ROOT", &sandbox.root.display().to_string());
        let path = repository.path_from_top(BStr::new(&path));
        path.map(|path| path.to_string())
            .map_err(|error| error.kind())
    };
    assert_eq!(path(&repository, "ROOT/r/../r/d/../a"), Ok("a".to_owned()));
    assert_eq!(path(&repository, "ROOT/x"), Err(ErrorKind::InvalidInput));
    assert_eq!(path(&repository, "ROOT/nowhere/r/a"), Err(ErrorKind::Io));
    std::os::unix::fs::symlink("r", sandbox.root.join("link")).expect("a link");
    assert_eq!(path(&repository, "ROOT/link/d/c"), Ok("d/c".to_owned()));
    // The directory of the discovery counts, and not that of the process.
    let below = Repository::discover("d/.", &environment).expect("a repository");
    assert_eq!(below.prefix(), Some("d/".into()));
    assert_eq!(path(&below, "c"), Ok("d/c".to_owned()));
    assert_eq!(path(&below, "../a"), Ok("a".to_owned()));
    let pathspec = repository
        .literal_pathspec([BStr::new("*")])
        .expect("a path");
    assert!(pathspec.matches("*".into(), false) && !pathspec.matches("a".into(), false));
}
