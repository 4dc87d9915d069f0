//! Records survive a round trip through a table in every layout.

use std::ops::ControlFlow;

use bstr::{BStr, BString};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{
    ErrorKind, RefRecord, RefTable, RefValue, TableWriteOptions, TableWriter, UpdateIndexRange,
};

use crate::support::{Content, direct, id, log, open, write};

fn layouts() -> Vec<TableWriteOptions> {
    let mut layouts = Vec::new();
    for block_size in [512, 4096, 65536] {
        for restart_interval in [1, 16, 200] {
            for is_padded in [true, false] {
                layouts.push({
                    let mut options = TableWriteOptions::default();
                    options.block_size = block_size;
                    options.restart_interval = restart_interval;
                    options.index_objects = true;
                    options.is_padded = is_padded;
                    options
                });
            }
        }
    }
    layouts
}

struct Fixture {
    kind: Kind,
    names: Vec<String>,
    ids: Vec<ObjectId>,
    pair: [ObjectId; 2],
}

impl Fixture {
    fn new(kind: Kind, count: usize) -> Fixture {
        let mut names: Vec<String> = (0..count)
            .map(|n| format!("refs/heads/x{}/{n}", n % 7))
            .collect();
        names.sort();
        Fixture {
            kind,
            names,
            // Some objects have many references.
            ids: (0..count)
                .map(|n| id(kind, (n % (count / 2 + 1)) as u64))
                .collect(),
            pair: [id(kind, 1), id(kind, 2)],
        }
    }

    fn content(&self) -> Content<'_> {
        let refs = self.names.iter().zip(&self.ids).enumerate();
        let refs = refs.map(|(at, (name, id))| RefRecord {
            value: match at % 10 {
                0 => RefValue::Symbolic(BStr::new("refs/heads/main")),
                1 => RefValue::Deletion,
                2 => RefValue::Peeled {
                    object: id,
                    target: &self.pair[0],
                },
                _ => RefValue::Direct(id),
            },
            update_index: 1 + at as u64 % 9,
            ..direct(name, id)
        });
        let logs = self.names.iter().flat_map(|name| {
            let mut gone = log(name, 3, &self.pair);
            gone.entry = None;
            [log(name, 5, &self.pair), gone, log(name, 1, &self.pair)]
        });
        Content {
            refs: refs.collect(),
            logs: logs.collect(),
        }
    }
}

fn check(table: &RefTable, content: &Content<'_>) {
    let mut cursor = table.refs();
    for record in &content.refs {
        assert!(cursor.advance().expect("a record"));
        assert_eq!(cursor.record(), *record);
    }
    assert!(!cursor.advance().expect("the end"));
    let mut logs = table.logs();
    for record in &content.logs {
        assert!(logs.advance().expect("a record"));
        assert_eq!(logs.record(), *record);
    }
    assert!(!logs.advance().expect("the end"));
}

fn check_searches(table: &RefTable, fixture: &Fixture, content: &Content<'_>) {
    for (at, record) in content.refs.iter().enumerate() {
        let entry = table
            .find(record.name)
            .expect("no fault")
            .expect("it is there");
        assert_eq!(
            (entry.update_index, entry.value),
            (record.update_index, record.value)
        );
        let mut between = BString::from(record.name);
        between.push(b'!');
        assert!(table.find(&between).expect("no fault").is_none());
        let mut cursor = table.refs();
        cursor.seek(&between).expect("no fault");
        for next in content.refs[at + 1..].iter().take(3) {
            assert!(cursor.advance().expect("no fault"));
            assert_eq!(cursor.record(), *next);
        }
    }
    for missing in ["", "a", "refs/heads/x", "refs/heads/x9", "zzz"] {
        assert!(table.find(missing).expect("no fault").is_none());
    }
    for name in fixture.names.iter().step_by(17) {
        let mut logs = table.logs();
        logs.seek(name, 4).expect("no fault");
        assert!(logs.advance().expect("no fault"));
        assert_eq!(
            (logs.record().name, logs.record().update_index),
            (BStr::new(name), 3)
        );
        logs.seek(name, 2).expect("no fault");
        assert!(logs.advance().expect("no fault"));
        assert_eq!(logs.record(), log(name, 1, &fixture.pair));
    }
}

fn check_objects(table: &RefTable, fixture: &Fixture, content: &Content<'_>) {
    let wanted = [
        &fixture.ids[3],
        &fixture.ids[4],
        &fixture.pair[0],
        &fixture.pair[1],
    ];
    let unknown = id(fixture.kind, u64::MAX);
    for id in wanted.into_iter().chain([&unknown]) {
        let leads = content
            .refs
            .iter()
            .filter(|record| record.value.leads_to(id));
        let names: Vec<BString> = leads.map(|record| record.name.into()).collect();
        let mut found: Vec<BString> = Vec::new();
        let visit = |record: RefRecord<'_>| {
            found.push(record.name.into());
            ControlFlow::Continue(())
        };
        table.find_object(id, visit).expect("no fault");
        assert_eq!(found, names);
    }
}

#[test]
fn every_layout_is_read_as_it_was_written() {
    for kind in [Kind::Sha1, Kind::Sha256] {
        for count in [1, 5, 40, 700] {
            let fixture = Fixture::new(kind, count);
            let content = fixture.content();
            for options in layouts() {
                let bytes = write(kind, &content, options);
                let table = open(&bytes);
                assert_eq!(table.kind(), kind);
                assert_eq!(table.limits(), UpdateIndexRange { min: 1, max: 9 });
                check(&table, &content);
                check_searches(&table, &fixture, &content);
                if count >= 5 {
                    check_objects(&table, &fixture, &content);
                }
            }
        }
    }
}

#[test]
fn a_table_may_have_one_sort_of_records_or_none() {
    let fixture = Fixture::new(Kind::Sha1, 100);
    let content = fixture.content();
    let mut options = TableWriteOptions::default();
    options.block_size = 512;
    let no_refs = Content {
        refs: Vec::new(),
        logs: content.logs.clone(),
    };
    let no_logs = Content {
        refs: content.refs.clone(),
        logs: Vec::new(),
    };
    let nothing = Content {
        refs: Vec::new(),
        logs: Vec::new(),
    };
    for content in [no_refs, no_logs, nothing] {
        check(&open(&write(Kind::Sha1, &content, options)), &content);
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let ids = [id(Kind::Sha1, 1), id(Kind::Sha1, 2)];
    let long = format!("refs/heads/{}", "x".repeat(600));
    let foreign = id(Kind::Sha256, 1);
    let limits = UpdateIndexRange { min: 2, max: 3 };
    let mut options = TableWriteOptions::default();
    options.block_size = 512;
    let new = || TableWriter::new(Vec::new(), Kind::Sha1, limits, options).expect("fine options");
    let refused = |record: RefRecord<'_>| new().add_ref(&record).expect_err("no").kind();
    assert_eq!(
        refused(direct("refs/heads/../x", &ids[0])),
        ErrorKind::Record
    );
    assert_eq!(
        refused(direct("refs/heads/a..b", &ids[0])),
        ErrorKind::Record
    );
    assert_eq!(refused(direct(&long, &ids[0])), ErrorKind::Record);
    assert_eq!(refused(direct("HEAD", &foreign)), ErrorKind::WrongHash);
    let early = RefRecord {
        update_index: 1,
        ..direct("HEAD", &ids[0])
    };
    assert_eq!(refused(early), ErrorKind::Record);
    let outside = RefRecord {
        value: RefValue::Symbolic(BStr::new("refs/../../x")),
        ..direct("HEAD", &ids[0])
    };
    assert_eq!(refused(outside), ErrorKind::Record);

    let mut writer = new();
    writer
        .add_ref(&direct("refs/heads/b", &ids[0]))
        .expect("fine");
    assert!(writer.add_ref(&direct("refs/heads/b", &ids[0])).is_err());
    assert!(writer.add_ref(&direct("refs/heads/a", &ids[0])).is_err());
    let lines = log("HEAD", 2, &ids);
    let entry = lines.entry.map(|entry| pronto_refs::reftable::LogEntry {
        message: BStr::new("two\nlines\n"),
        ..entry
    });
    assert!(
        writer
            .add_log(&pronto_refs::reftable::LogRecord { entry, ..lines })
            .is_err()
    );
    writer
        .add_log(&log("HEAD", 1, &ids))
        .expect("older than the table");
    assert!(writer.add_ref(&direct("refs/heads/c", &ids[0])).is_err());
    let mut huge = options;
    huge.block_size = 1 << 24;
    let error = TableWriter::new(Vec::new(), Kind::Sha1, limits, huge).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::Options);
}
