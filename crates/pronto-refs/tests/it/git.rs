//! Git and pronto read each other's tables.

use std::fmt::Write as _;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{
    Additions, LogRecord, RefRecord, RefTable, RefValue, ReftableStack, StackOptions,
    StackSnapshot, TableWriteOptions, TableWriter,
};

use crate::support::{Repository, log};

const FORMATS: [(&str, Kind); 2] = [("sha1", Kind::Sha1), ("sha256", Kind::Sha256)];

fn open(repository: &Repository, kind: Kind) -> ReftableStack {
    ReftableStack::open(repository.tables(), kind, StackOptions::default()).expect("a stack")
}

/// Returns the output of `git for-each-ref` with names, objects and peeled objects.
fn listed(repository: &Repository) -> String {
    let format = "--format=%(refname) %(objectname) %(*objectname) %(symref)";
    repository.run(&["for-each-ref", format], "")
}

fn listed_by_us(snapshot: &StackSnapshot) -> String {
    let mut text = String::new();
    let mut refs = snapshot.refs_with_prefix("refs/").expect("no fault");
    while let Some(record) = refs.next().expect("no fault") {
        let (mut object, mut symref) = (record.value.object(), BString::default());
        if let RefValue::Symbolic(target) = record.value {
            symref = target.into();
            let found = snapshot.find(target).expect("no fault");
            object = found.and_then(|entry| entry.value.object());
        }
        let object = object.expect("no symbolic reference dangles");
        let target = record.value.target().map(|target| target.to_string());
        let target = target.unwrap_or_default();
        writeln!(text, "{} {object} {target} {symref}", record.name).expect("memory");
    }
    text
}

fn update(repository: &Repository, lines: impl Iterator<Item = String>) {
    repository.run(
        &["update-ref", "--stdin", "-m", "bulk"],
        &lines.collect::<String>(),
    );
}

#[test]
fn what_git_writes_is_read() {
    for (format, kind) in FORMATS {
        let Some(repository) = Repository::new(format) else {
            return;
        };
        let commits = repository.commits(3);
        for round in 0..5 {
            let lines = (0..300).filter(|n| n % (round + 1) == 0).map(|n| {
                let commit = commits[(n + round) % 3];
                format!("update refs/heads/x{}/{n} {commit}\n", n % 7)
            });
            update(&repository, lines);
        }
        update(
            &repository,
            (0..50).map(|n| format!("delete refs/heads/x{}/{n}\n", n % 7)),
        );
        repository.run(
            &["tag", "-a", "-m", "a tag", "v1", &commits[0].to_string()],
            "",
        );
        repository.run(
            &[
                "symbolic-ref",
                "refs/remotes/origin/HEAD",
                "refs/heads/x0/63",
            ],
            "",
        );
        let stack = open(&repository, kind);
        let snapshot = stack.snapshot().expect("no fault");
        assert_eq!(listed_by_us(&snapshot), listed(&repository));
        assert!(snapshot.find("HEAD").expect("no fault").is_some());
        repository.run(&["pack-refs", "--all"], "");
        let snapshot = stack.snapshot().expect("no fault");
        assert_eq!(snapshot.tables().len(), 1);
        assert_eq!(listed_by_us(&snapshot), listed(&repository));
        let mut count = 0;
        let visit = |_: RefRecord<'_>| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        };
        snapshot.find_object(&commits[0], visit).expect("no fault");
        let arguments = ["for-each-ref", "--points-at", &commits[0].to_string()];
        // The symbolic reference leads there only through another one.
        let pointing = repository.run(&arguments, "");
        let symbolic = pointing.matches("origin/HEAD").count();
        assert_eq!(count, pointing.lines().count() - symbolic);
    }
}

#[test]
fn reflogs_that_git_writes_are_read() {
    for (format, kind) in FORMATS {
        let Some(repository) = Repository::new(format) else {
            return;
        };
        repository.run(&["config", "core.logAllRefUpdates", "always"], "");
        let commits = repository.commits(30);
        for commit in &commits {
            let message = format!("to {commit}");
            let commit = commit.to_string();
            repository.run(
                &["update-ref", "-m", &message, "refs/heads/main", &commit],
                "",
            );
        }
        let snapshot = open(&repository, kind).snapshot().expect("no fault");
        let mut logs = snapshot.log_of("refs/heads/main").expect("no fault");
        let mut newest = commits.iter().rev();
        while let Some(record) = logs.next().expect("no fault") {
            let commit = newest.next().expect("as many as there are commits");
            let entry = record.entry.expect("it is there");
            assert_eq!(entry.new, commit.as_ref());
            assert_eq!(entry.message, format!("to {commit}\n"));
            assert_eq!((entry.time, entry.time_zone), (1_234_567_890, -830));
            assert_eq!(
                (entry.name, entry.email),
                ("A U Thor".into(), "author@example.com".into())
            );
        }
        assert!(newest.next().is_none());
    }
}

#[test]
fn what_we_write_is_read_by_git() {
    for (format, kind) in FORMATS {
        let Some(repository) = Repository::new(format) else {
            return;
        };
        let commits = repository.commits(2);
        let stack = open(&repository, kind);
        let names: Vec<String> = (0..2000)
            .map(|n| format!("refs/heads/x{}/{n}", n % 7))
            .collect();
        let pair = [commits[0], commits[1]];
        for chunk in names.chunks(400) {
            let mut transaction = stack.begin().expect("nobody has the lock");
            let update_index = transaction.next_update_index();
            let mut additions = Additions::at(update_index);
            for name in chunk {
                additions.refs.push(RefRecord {
                    name: BStr::new(name),
                    update_index,
                    value: RefValue::Direct(&commits[1]),
                });
                additions.logs.push(log(name, update_index, &pair));
            }
            transaction.add(&mut additions).expect("fine records");
            transaction.commit().expect("nothing is in the way");
        }
        let snapshot = stack.snapshot().expect("no fault");
        assert_eq!(listed(&repository).lines().count(), names.len());
        assert_eq!(listed_by_us(&snapshot), listed(&repository));
        repository.run(&["refs", "verify"], "");
        repository.run(&["fsck"], "");
        let reflog = [
            "reflog",
            "show",
            "--date=raw",
            "--format=%H %gd %gn %ge %gs",
            "refs/heads/x0/7",
        ];
        let expected = format!(
            "{} x0/7@{{1234567890 -0830}} A U Thor author@example.com commit: a message\n",
            commits[1]
        );
        assert_eq!(repository.run(&reflog, ""), expected);
        assert_eq!(
            repository.run(&["reflog", "list"], "").lines().count(),
            names.len()
        );
        // Git and pronto write in turn.
        update(
            &repository,
            std::iter::once(format!("delete {}\n", names[5])),
        );
        stack.compact_all(None).expect("nobody else does");
        assert_eq!(listed(&repository).lines().count(), names.len() - 1);
        repository.run(&["refs", "verify"], "");
    }
}

/// Writes the records of a table again.
fn rewritten(table: &RefTable, options: TableWriteOptions) -> Vec<u8> {
    let writer = TableWriter::new(Vec::new(), table.kind(), table.limits(), options);
    let mut writer = writer.expect("fine options");
    let mut refs = table.refs();
    while refs.advance().expect("no fault") {
        writer
            .add_ref(&refs.record())
            .expect("it was written before");
    }
    let mut logs = table.logs();
    while logs.advance().expect("no fault") {
        writer
            .add_log(&logs.record())
            .expect("it was written before");
    }
    writer.finish().expect("memory can be written").sink
}

fn all_logs(table: &RefTable) -> Vec<(BString, u64, Option<ObjectId>)> {
    let mut logs = table.logs();
    let mut all = Vec::new();
    while logs.advance().expect("no fault") {
        let LogRecord {
            name,
            update_index,
            entry,
        } = logs.record();
        all.push((
            name.to_owned(),
            update_index,
            entry.map(|entry| entry.new.to_owned()),
        ));
    }
    all
}

/// The bytes before the logs are equal with all options. The rest depends on the version of zlib.
#[test]
fn tables_have_the_bytes_that_git_writes() {
    let layouts = [
        (4096, 16, true),
        (4096, 16, false),
        (512, 3, true),
        (1024, 1, true),
        (65536, 64, true),
    ];
    for (format, kind) in FORMATS {
        for (block_size, restart_interval, index_objects) in layouts {
            let Some(repository) = Repository::new(format) else {
                return;
            };
            for (key, value) in [
                ("reftable.blockSize", block_size.to_string()),
                ("reftable.restartInterval", restart_interval.to_string()),
                ("reftable.indexObjects", index_objects.to_string()),
                ("core.logAllRefUpdates", "always".to_owned()),
            ] {
                repository.run(&["config", key, &value], "");
            }
            let commits = repository.commits(40);
            update(
                &repository,
                (0..3000).map(|n| {
                    format!(
                        "create refs/heads/x{}/{n} {}\n",
                        n % 7,
                        commits[(n * n) % 40]
                    )
                }),
            );
            repository.run(
                &["tag", "-a", "-m", "a tag", "v1", &commits[0].to_string()],
                "",
            );
            repository.run(&["symbolic-ref", "refs/heads/y", "refs/heads/x0/7"], "");
            let mut options = TableWriteOptions::default();
            options.block_size = block_size;
            options.restart_interval = restart_interval;
            options.index_objects = index_objects;
            options.is_padded = true;
            let compare = || {
                let snapshot = open(&repository, kind).snapshot().expect("no fault");
                for table in snapshot.tables() {
                    compare_bytes(table, options);
                }
            };
            compare();
            repository.run(&["pack-refs", "--all"], "");
            compare();
        }
    }
}

fn compare_bytes(table: &RefTable, options: TableWriteOptions) {
    let theirs = std::fs::read(table.path()).expect("it is there");
    let ours = rewritten(table, options);
    let footer_len = if table.kind() == Kind::Sha1 { 68 } else { 72 };
    let log_start = |bytes: &[u8]| {
        let at = bytes.len() - 20;
        u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize
    };
    let start = log_start(&theirs);
    assert_eq!(log_start(&ours), start);
    let end = if start == 0 { theirs.len() } else { start };
    if start > 0 || table.logs().advance().is_ok_and(|has_logs| !has_logs) {
        assert!(theirs[..end] == ours[..end], "{}", table.path().display());
    }
    // All except for the position of the log index, and the checksum.
    let footers = [&theirs, &ours].map(|bytes| &bytes[bytes.len() - footer_len..bytes.len() - 12]);
    assert_eq!(footers[0].as_bstr(), footers[1].as_bstr());
    let again = crate::support::open(&ours);
    assert_eq!(all_logs(&again), all_logs(table));
}
