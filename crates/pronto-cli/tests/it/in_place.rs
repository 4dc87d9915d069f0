//! Files that are rewritten in place (`checkout.inPlace`) if the difference from new files is not
//! visible.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use crate::support::{Scratch, git, pronto_path, run, stderr};

const FILES: usize = 60;

fn name(file: usize) -> String {
    format!("d{}/f{file}", file % 4)
}

fn content(version: usize, file: usize) -> String {
    format!("{file} in version {version}\n").repeat(1 + (file * 37 + version * 91) % 400)
}

/// Creates two commits, `one` and `two`, with different contents. The second is checked out.
fn repository(top: &Path) {
    git(top, &["init", "-q", "-b", "main"]);
    for (version, tag) in ["one", "two"].into_iter().enumerate() {
        for file in 0..FILES {
            let path = top.join(name(file));
            fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
            fs::write(path, content(version, file)).expect("a file");
        }
        git(top, &["add", "-A"]);
        git(top, &["commit", "-qm", tag]);
        git(top, &["tag", tag]);
    }
}

fn switch(top: &Path, setting: &str, tag: &str) {
    let setting = format!("checkout.inPlace={setting}");
    let arguments = ["-c", &setting, "checkout", "-q", tag];
    let output = run(pronto_path(), top, &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(git(top, &["status", "--porcelain"]), "");
    assert_eq!(git(top, &["diff", "--stat", tag]), "");
    let version = usize::from(tag == "two");
    for file in 0..FILES {
        let found = fs::read_to_string(top.join(name(file))).expect("it is there");
        assert!(found == content(version, file), "{}", name(file));
    }
}

/// Returns the creation time of each file.
fn made(top: &Path) -> Vec<SystemTime> {
    let made = |file| fs::metadata(top.join(name(file))).and_then(|file| file.created());
    (0..FILES)
        .map(|file| made(file).expect("file systems say so"))
        .collect()
}

#[test]
fn files_are_rewritten_in_place_if_the_difference_is_invisible() {
    let scratch = Scratch::new();
    let top = scratch.path();
    repository(top);
    let before = made(top);
    switch(top, "always", "one");
    assert_eq!(made(top), before);
    switch(top, "never", "two");
    let anew = made(top);
    assert!(anew.iter().zip(&before).all(|(anew, before)| anew > before));
    // Whatever the file system.
    switch(top, "auto", "one");
    switch(top, "auto", "two");
}

#[test]
fn files_that_others_use_are_replaced() {
    let scratch = Scratch::new();
    let (top, other) = (scratch.path().join("top"), scratch.path().join("other"));
    fs::create_dir(&top).expect("a directory");
    repository(&top);
    fs::hard_link(top.join(name(3)), &other).expect("a link");
    let mut open = fs::File::open(top.join(name(5))).expect("it is there");
    let before = made(&top);
    switch(&top, "always", "one");
    assert_eq!(
        fs::read_to_string(&other).expect("it is there"),
        content(1, 3)
    );
    let mut found = String::new();
    std::io::Read::read_to_string(&mut open, &mut found).expect("it is open");
    assert_eq!(found, content(1, 5));
    let after = made(&top);
    let anew = (0..FILES).filter(|file| before[*file] != after[*file]);
    assert_eq!(anew.collect::<Vec<_>>(), [3, 5]);
}

#[test]
fn an_invalid_value_is_reported() {
    let scratch = Scratch::new();
    repository(scratch.path());
    let arguments = ["-c", "checkout.inPlace=perhaps", "checkout", "-q", "one"];
    let output = run(pronto_path(), scratch.path(), &arguments);
    assert_eq!(output.status.code(), Some(128));
    let said = stderr(&output);
    assert!(
        said.contains("bad value 'perhaps' for 'checkout.inPlace'"),
        "{said}"
    );
    assert_eq!(git(scratch.path(), &["status", "--porcelain"]), "");
}
