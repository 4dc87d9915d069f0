//! Removed files, and directories that become empty.

use std::collections::HashMap;
use std::path::Path;

use bstr::BString;
use pronto_hash::Kind;
use pronto_io::dir::Directory;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::Workers;
use pronto_worktree::attributes::{Attributes, Files};
use pronto_worktree::checkout::{self, CheckoutContext, CheckoutPlan, Options, PathRemoval};
use pronto_worktree::filter::{ATTRIBUTES, Settings};

use crate::support::{Memory, Scratch, repository};

/// Creates `files`, removes `removed`, and returns the remaining files, with directories marked by
/// a slash.
fn left(files: &[String], removed: &[String], options: &Options) -> Vec<String> {
    let scratch = Scratch::new();
    for file in files {
        let path = scratch.join(file);
        let parent = path.parent().expect("it is below the top");
        std::fs::create_dir_all(parent).expect("a directory");
        std::fs::write(path, file).expect("a file");
    }
    let source = Scratch::new();
    repository(source.path(), |_| {});
    let nothing = Box::new(HashMap::<BString, Vec<u8>>::new());
    let attributes = Attributes::new(&ATTRIBUTES, &Files::default(), nothing);
    let mut removed = removed.to_vec();
    removed.sort();
    let remove = removed.iter().map(|path| PathRemoval {
        path: path.as_str().into(),
        gitlink: false,
    });
    let plan = CheckoutPlan {
        remove: remove.collect(),
        write: Vec::new(),
    };
    let context = CheckoutContext {
        top: &Directory::open(scratch.path()).expect("it is there"),
        objects: &Memory::load(source.path()),
        attributes: &attributes.expect("nothing to read"),
        settings: &Settings::new(Kind::Sha1),
        progress: &(),
        interrupt: &Interrupt::new(),
    };
    let outcome = checkout::run(&plan, &context, options);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let mut found = Vec::new();
    list(scratch.path(), "", &mut found);
    found.sort();
    found
}

fn list(top: &Path, below: &str, found: &mut Vec<String>) {
    let entries = std::fs::read_dir(top.join(below)).expect("it is there");
    for entry in entries {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().into_string().expect("our own names");
        let path = format!("{below}{name}");
        if entry.file_type().expect("it has one").is_dir() {
            found.push(format!("{path}/"));
            list(top, &format!("{path}/"), found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn a_directory_goes_with_the_last_file_in_it_and_perhaps_the_one_above() {
    let names = |all: &[&str]| -> Vec<String> { all.iter().map(ToString::to_string).collect() };
    // Removed files before, between and after directories that also lose files.
    let going = [
        "a/1", "a/b/1", "a/b/c/1", "a/b/d/1", "a/e", "f/g/h/1", "i/j/1", "k/l/1", "m",
    ];
    let staying = ["i/2", "k/l/m/2", "n"];
    let many = (0..3000).map(|at| format!("many/{}/{}/{at}", at % 7, at % 11));
    let going: Vec<String> = names(&going).into_iter().chain(many).collect();
    let files = [going.clone(), names(&staying)].concat();
    let remaining = ["i/", "i/2", "k/", "k/l/", "k/l/m/", "k/l/m/2", "n"];
    for workers in [Workers::Exactly(1), Workers::Exactly(5), Workers::ADAPTIVE] {
        let mut options = Options::default();
        options.workers = workers;
        options.threshold_for_parallelism = 0;
        assert_eq!(left(&files, &going, &options), remaining);
        // Files that are already missing leave their directories; missing files are not searched
        // for.
        assert_eq!(left(&files[1..], &going, &options), remaining);
        options.keep_directory = Some("a/b".into());
        let kept = [&["a/", "a/b/"], &remaining[..]].concat();
        assert_eq!(left(&files, &going, &options), kept);
    }
}
