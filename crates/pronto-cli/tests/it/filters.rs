//! Filters: several parallel processes for filters that take one file, one long-running process for
//! filters that take many files, and git-lfs.

use std::path::{Path, PathBuf};
use std::process::Command;

use test_support::{output_if_installed, skip};

use crate::support::{Scratch, git, pronto_path, run, stderr};

const FILES: usize = 10;

/// A repository of small files with the attributes.
fn repository(scratch: &Scratch, attributes: &str) -> PathBuf {
    let work = scratch.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    for file in 0..FILES {
        std::fs::write(work.join(format!("f{file}.txt")), format!("text {file}\n"))
            .expect("a file");
    }
    std::fs::write(work.join(".gitattributes"), attributes).expect("a file");
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    work
}

fn remove_files(work: &Path) {
    for file in 0..FILES {
        let _ = std::fs::remove_file(work.join(format!("f{file}.txt")));
    }
}

#[test]
fn filters_of_single_files_run_in_parallel() {
    let scratch = Scratch::new();
    let work = repository(&scratch, "*.txt filter=upper\n");
    let (running, log) = (scratch.path().join("running"), scratch.path().join("log"));
    let wanted = scratch.path().join("wanted");
    std::fs::create_dir(&running).expect("a directory");
    // Each program waits until as many have run at once as the file `wanted` says, for 20 s at most.
    let text = format!(
        "#!/bin/sh\ntouch '{0}'/$$\nturns=0\n\
        while count=$(ls '{0}' | wc -l); test $count -lt $(cat '{2}') && test $turns -lt 1000; \
        do turns=$((turns + 1)); sleep 0.02; done\n\
        echo $count >>'{1}'\necho 1 >'{2}'.$$ && mv '{2}'.$$ '{2}'\n\
        tr a-z A-Z\necho %f >/dev/null\nrm '{0}'/$$\n",
        running.display(),
        log.display(),
        wanted.display()
    );
    let script = scratch.script("bin", "upper", &text);
    git(
        &work,
        &["config", "filter.upper.smudge", &script.to_string_lossy()],
    );
    git(&work, &["config", "filter.upper.clean", "tr A-Z a-z"]);
    let most = |workers: &str, count: &str| {
        remove_files(&work);
        let _ = std::fs::remove_file(&log);
        std::fs::write(&wanted, count).expect("a file");
        let setting = format!("checkout.workers={workers}");
        let settings = ["-c", &setting, "-c", "checkout.thresholdForParallelism=0"];
        let output = run(
            pronto_path(),
            &work,
            &[&settings[..], &["checkout", "-q", "-f"]].concat(),
        );
        assert!(output.status.success(), "{}", stderr(&output));
        for file in 0..FILES {
            let found = std::fs::read_to_string(work.join(format!("f{file}.txt")));
            assert_eq!(found.expect("it is there"), format!("TEXT {file}\n"));
        }
        assert_eq!(git(&work, &["status", "--porcelain"]), "");
        let log = std::fs::read_to_string(&log).expect("it was written");
        assert_eq!(log.lines().count(), FILES, "each file once: {log}");
        let counts = log
            .lines()
            .filter_map(|line| line.trim().parse::<usize>().ok());
        counts.max().expect("there are some")
    };
    assert_eq!(most("1", "1"), 1);
    assert!(most("4", "2") > 1);
    assert!(most("auto", "1") >= 1);
}

#[test]
fn filter_messages_follow_the_order_of_the_index() {
    let scratch = Scratch::new();
    let work = repository(&scratch, "*.txt filter=fails\n");
    git(
        &work,
        &["config", "filter.fails.smudge", "cat >/dev/null; exit 3"],
    );
    git(&work, &["config", "filter.fails.required", "true"]);
    let mut expected = None;
    for workers in ["1", "2", "8", "auto"] {
        remove_files(&work);
        let setting = format!("checkout.workers={workers}");
        let settings = ["-c", &setting, "-c", "checkout.thresholdForParallelism=0"];
        let output = run(
            pronto_path(),
            &work,
            &[&settings[..], &["checkout", "-q", "-f"]].concat(),
        );
        // Git dies of the first such file. pronto continues, and names each.
        assert_eq!(output.status.code(), Some(128));
        let said = stderr(&output);
        assert_eq!(
            said.matches("smudge filter fails failed").count(),
            FILES,
            "{said}"
        );
        assert_eq!(expected.get_or_insert_with(|| said.clone()), &said);
    }
}

#[test]
fn git_lfs_works_as_a_process_and_for_single_files() {
    let Some(output) = output_if_installed(Command::new("git-lfs").arg("version")) else {
        skip!("git-lfs is not installed");
    };
    assert!(output.status.success(), "{output:?}");
    let scratch = Scratch::new();
    let work = scratch.path().join("work");
    std::fs::create_dir(&work).expect("a directory");
    git(&work, &["init", "-q", "-b", "main"]);
    git(&work, &["lfs", "install", "--local"]);
    git(&work, &["lfs", "track", "*.bin"]);
    for file in 0..40 {
        let content = format!("large {file}\n").repeat(1000 + file);
        std::fs::write(work.join(format!("b{file}.bin")), content).expect("a file");
        std::fs::write(work.join(format!("t{file}")), format!("{file}\n")).expect("a file");
    }
    git(&work, &["add", "."]);
    git(&work, &["commit", "-qm", "one"]);
    let pointer = git(&work, &["cat-file", "blob", "HEAD:b7.bin"]);
    assert!(pointer.starts_with("version https://git-lfs"), "{pointer}");
    for process in [true, false] {
        if !process {
            git(&work, &["config", "--unset", "filter.lfs.process"]);
        }
        for workers in ["1", "2", "auto"] {
            for file in 0..40 {
                std::fs::remove_file(work.join(format!("b{file}.bin"))).expect("it was there");
            }
            let setting = format!("checkout.workers={workers}");
            let output = run(
                pronto_path(),
                &work,
                &["-c", &setting, "checkout", "-q", "-f"],
            );
            assert!(output.status.success(), "{}", stderr(&output));
            for file in 0..40 {
                let found = std::fs::read_to_string(work.join(format!("b{file}.bin")));
                let content = format!("large {file}\n").repeat(1000 + file);
                assert!(found.expect("it is there") == content, "b{file}.bin");
            }
            assert_eq!(git(&work, &["status", "--porcelain"]), "");
        }
    }
}
