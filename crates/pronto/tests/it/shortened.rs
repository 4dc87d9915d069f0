//! Tests of an index that is truncated while it is mapped into memory.

use std::fs::File;

use pronto::Watch;
use pronto::status::{Pathspec, Patterns, UntrackedSearch};

use super::support::Sandbox;

#[test]
fn walks_beside_an_index_cut_short_end() {
    let sandbox = Sandbox::new();
    sandbox.repository("r");
    let root = sandbox.root.join("r");
    for number in 0..600 {
        let directory = root.join(format!("d{}/e{}/f{}", number % 5, number % 7, number % 3));
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join(format!("file{number}")), "content").expect("a file");
    }
    sandbox.git("r", &["add", "."]);
    let path = root.join(".git/index");
    let whole = std::fs::read(&path).expect("it can be read");
    assert!(whole.len() > 40_000);
    let (watch, pathspec) = (Watch::none(), Pathspec::default());
    for share in [0, 10, 30, 50, 70, 90, 99] {
        // A new file each time, because the previous one may still be mapped.
        let beside = path.with_extension("new");
        std::fs::write(&beside, &whole).expect("it can be written");
        std::fs::rename(&beside, &path).expect("it can be moved");
        let repository = sandbox.open("r");
        let index = repository.index().expect("it is whole");
        let file = File::options().write(true).open(&path).expect("it is ours");
        let len = whole.len() as u64 * share / 100;
        file.set_len(len).expect("it is ours");
        // The result is arbitrary, but the call ends.
        let _ = pronto::status::changed_files(&repository, &index, &pathspec, &watch);
        let patterns = Patterns::default();
        let _ = pronto::status::ignored_entries(&repository, &index, &patterns, None);
        let search = UntrackedSearch {
            patterns: &patterns,
            ignore_file: None,
            pathspec: &pathspec,
            ignored: false,
            directories: true,
            empty_directories: false,
        };
        let _ = pronto::status::untracked_files(&repository, &index, &search, &watch);
        let error = index.intact().expect_err("it is not what it was");
        let reported = error.to_string();
        assert!(
            reported.contains(".git/index': the file was truncated"),
            "{reported}"
        );
    }
}
