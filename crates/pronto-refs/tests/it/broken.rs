//! Broken tables give an error or another valid result: never a panic or endless work.

use std::ops::ControlFlow;

use pronto_hash::Kind;
use pronto_io::view::FileView;
use pronto_refs::reftable::{ErrorKind, RefTable, Result, TableWriteOptions};

use crate::support::{Content, direct, id, log, write};

/// Reads all records in every way. Returns their number.
fn exercise(bytes: &[u8]) -> Result<usize> {
    let table = RefTable::from_view(FileView::from_bytes(bytes.to_vec()), "a table")?;
    // Each way may find faults that the others do not.
    let outcomes = [walk(&table), walk_logs(&table), search(&table)];
    outcomes
        .into_iter()
        .try_fold(0, |sum, outcome| Ok(sum + outcome?))
}

fn walk(table: &RefTable) -> Result<usize> {
    let mut count = 0;
    let mut cursor = table.refs();
    while cursor.advance()? {
        count += 1;
    }
    Ok(count)
}

fn walk_logs(table: &RefTable) -> Result<usize> {
    let mut count = 0;
    let mut cursor = table.logs();
    while cursor.advance()? {
        count += cursor.record().name.len().min(1);
    }
    Ok(count)
}

fn search(table: &RefTable) -> Result<usize> {
    let mut outcome = Ok(0);
    for name in [
        "",
        "refs/heads/a",
        "refs/heads/b10",
        "refs/heads/b39",
        "refs/z",
    ] {
        let found = table.find(name).map(|found| usize::from(found.is_some()));
        let mut cursor = table.refs();
        let sought = cursor.seek(name).and_then(|()| cursor.advance());
        let mut logs = table.logs();
        let logged = logs.seek(name, 7).and_then(|()| logs.advance());
        outcome = outcome
            .and(found)
            .and_then(|count| sought.and(logged).map(|_| count));
    }
    let mut count = 0;
    for number in 0..3 {
        table.find_object(&id(table.kind(), number), |_| {
            count += 1;
            ControlFlow::Continue(())
        })?;
    }
    outcome.map(|found| found + count)
}

fn small_tables() -> Vec<Vec<u8>> {
    let names: Vec<String> = (0..40).map(|n| format!("refs/heads/b{n:02}")).collect();
    let mut tables = Vec::new();
    for (kind, is_padded) in [
        (Kind::Sha1, false),
        (Kind::Sha256, false),
        (Kind::Sha1, true),
    ] {
        let ids: Vec<_> = (0..40).map(|n| id(kind, n)).collect();
        let pair = [id(kind, 1), id(kind, 2)];
        let content = Content {
            refs: names
                .iter()
                .zip(&ids)
                .map(|(name, id)| direct(name, id))
                .collect(),
            logs: names.iter().map(|name| log(name, 3, &pair)).collect(),
        };
        let mut options = TableWriteOptions::default();
        options.block_size = 300;
        options.restart_interval = 4;
        options.index_objects = true;
        options.is_padded = is_padded;
        tables.push(write(kind, &content, options));
    }
    tables
}

#[test]
fn a_table_with_any_byte_changed_is_an_error_or_is_read() {
    for bytes in small_tables() {
        let sound = exercise(&bytes).expect("nothing is wrong yet");
        assert!(sound > 80);
        let mut refused = 0;
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut broken = bytes.clone();
                broken[at] ^= change;
                if let Err(error) = exercise(&broken) {
                    assert_ne!(error.kind(), ErrorKind::Io, "{at}: {error}");
                    assert!(
                        error.path().is_some() && error.offset().is_some(),
                        "{at}: {error}"
                    );
                    refused += 1;
                }
            }
        }
        // Some changes affect only object ids, names or padding.
        assert!(refused > bytes.len(), "{refused} of {}", 3 * bytes.len());
    }
}

#[test]
fn a_table_cut_short_is_an_error() {
    for bytes in small_tables() {
        for len in 0..bytes.len() {
            let error = exercise(&bytes[..len]).expect_err("it is cut short");
            assert!(
                error.path().is_some() && error.offset().is_some(),
                "{len}: {error}"
            );
        }
    }
}

#[test]
fn a_table_with_bytes_swapped_is_an_error_or_is_read() {
    let mut state: u64 = 7;
    let mut random = |below: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
        (state >> 33) as usize % below
    };
    for bytes in small_tables() {
        for _ in 0..4000 {
            let mut broken = bytes.clone();
            for _ in 0..=random(3) {
                let (from, to) = (random(bytes.len()), random(bytes.len()));
                let len = random(9).min(bytes.len() - from.max(to));
                broken.copy_within(from..from + len, to);
            }
            let _ = exercise(&broken);
        }
    }
}

#[test]
fn positions_of_the_footer_that_lead_astray_are_errors() {
    let bytes = small_tables().swap_remove(0);
    let footer = bytes.len() - 68;
    for field in 0..5 {
        for position in [
            1,
            5,
            24,
            footer as u64 - 1,
            bytes.len() as u64,
            u64::MAX >> 5,
            u64::MAX,
        ] {
            let mut broken = bytes.clone();
            let at = footer + 24 + 8 * field;
            broken[at..at + 8].copy_from_slice(&position.to_be_bytes());
            let crc = crc32fast::hash(&broken[footer..footer + 64]);
            broken[footer + 64..].copy_from_slice(&crc.to_be_bytes());
            let _ = exercise(&broken);
        }
    }
}
