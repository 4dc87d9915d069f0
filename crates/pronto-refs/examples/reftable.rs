//! Measures reftables: runs one command in each process, to be timed beside git, or `measure` to
//! time operations within a process.
//!
//! `reftable COMMAND DIRECTORY …`, where `DIRECTORY` is the directory of `tables.list`.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::time::Instant;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use pronto_refs::reftable::{Additions, RefRecord, RefValue, ReftableStack, StackOptions};

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: reftable find DIRECTORY NAME
       reftable list DIRECTORY [PREFIX]
       reftable create DIRECTORY PREFIX COUNT ID
       reftable import DIRECTORY PACKED-REFS
       reftable compact DIRECTORY
       reftable measure DIRECTORY";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments[..] {
        ["find", directory, name] => find(&mut out, &open(directory)?, name)?,
        ["list", directory] => list(&mut out, &open(directory)?, "")?,
        ["list", directory, prefix] => list(&mut out, &open(directory)?, prefix)?,
        ["create", directory, prefix, count, id] => {
            let ids = vec![ObjectId::from_hex(id.as_bytes())?; count.parse()?];
            let names: Vec<String> = (0..ids.len()).map(|n| format!("{prefix}{n}")).collect();
            create(&open(directory)?, names.iter().map(BStr::new).zip(&ids))?;
        }
        ["import", directory, packed_refs] => import(&open(directory)?, packed_refs)?,
        ["compact", directory] => _ = open(directory)?.compact_all(None)?,
        ["measure", directory] => measure(&mut out, directory)?,
        _ => return Err(USAGE.into()),
    }
    Ok(out.flush()?)
}

fn open(directory: &str) -> Outcome<ReftableStack> {
    Ok(ReftableStack::open(
        directory,
        Kind::Sha1,
        StackOptions::default(),
    )?)
}

fn find(out: &mut impl Write, stack: &ReftableStack, name: &str) -> Outcome<()> {
    let snapshot = stack.last_snapshot();
    if let Some(id) = snapshot.find(name)?.and_then(|entry| entry.value.object()) {
        writeln!(out, "{id}")?;
    }
    Ok(())
}

fn list(out: &mut impl Write, stack: &ReftableStack, prefix: &str) -> Outcome<()> {
    let snapshot = stack.last_snapshot();
    let mut refs = snapshot.refs_with_prefix(prefix)?;
    while let Some(record) = refs.next()? {
        out.write_all(record.name)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn create<'a>(
    stack: &ReftableStack,
    records: impl Iterator<Item = (&'a BStr, &'a ObjectId)>,
) -> Outcome<()> {
    let mut transaction = stack.begin()?;
    let update_index = transaction.next_update_index();
    let mut additions = Additions::at(update_index);
    for (name, id) in records {
        if transaction.snapshot().find(name)?.is_some() {
            return Err(format!("'{name}' exists").into());
        }
        additions.refs.push(RefRecord {
            name,
            update_index,
            value: RefValue::Direct(id),
        });
    }
    transaction.add(&mut additions)?;
    Ok(transaction.commit()?)
}

/// Imports all refs of a file `packed-refs` without annotated tags.
fn import(stack: &ReftableStack, packed_refs: &str) -> Outcome<()> {
    let bytes = std::fs::read(packed_refs)?;
    let mut records: Vec<(&BStr, ObjectId)> = Vec::new();
    for line in bytes.lines().filter(|line| !line.starts_with(b"#")) {
        let (id, name) = line.split_once_str(" ").ok_or("a line without a name")?;
        records.push((BStr::new(name), ObjectId::from_hex(id)?));
    }
    create(stack, records.iter().map(|(name, id)| (*name, id)))
}

fn measure(out: &mut impl Write, directory: &str) -> Outcome<()> {
    const OPENS: u32 = 200;
    let start = Instant::now();
    for _ in 0..OPENS {
        black_box(open(directory)?);
    }
    writeln!(out, "open: {:?}", start.elapsed() / OPENS)?;

    let stack = open(directory)?;
    let snapshot = stack.snapshot()?;
    let start = Instant::now();
    let mut refs = snapshot.refs()?;
    let mut names: Vec<BString> = Vec::new();
    let mut count: u32 = 0;
    while let Some(record) = refs.next()? {
        black_box(record.value);
        count += 1;
    }
    let scan = start.elapsed();
    writeln!(out, "scan of {count}: {scan:?}, {:?} each", scan / count)?;

    let mut refs = snapshot.refs()?;
    let mut ids = Vec::new();
    while let Some(record) = refs.next()? {
        if names.len() * 10 < ids.len() {
            names.push(record.name.into());
        }
        ids.extend(record.value.object().map(ToOwned::to_owned));
    }
    // Consecutive names are far from each other, so that no block is used twice in a row.
    let step = 7919 % names.len();
    let order: Vec<usize> = (0..names.len()).map(|n| n * step % names.len()).collect();
    let start = Instant::now();
    for at in &order {
        black_box(snapshot.find(&names[*at])?);
    }
    let each = start.elapsed() / order.len() as u32;
    writeln!(out, "find, warm, {} names: {each:?} each", order.len())?;
    let start = Instant::now();
    for at in order.iter().take(10_000) {
        let visit = |_: RefRecord<'_>| std::ops::ControlFlow::Continue(());
        snapshot.find_object(&ids[*at * 10], visit)?;
    }
    writeln!(out, "find by object: {:?} each", start.elapsed() / 10_000)?;
    let start = Instant::now();
    for _ in 0..10_000 {
        black_box(stack.snapshot()?);
    }
    writeln!(out, "snapshot, unchanged: {:?}", start.elapsed() / 10_000)?;
    Ok(())
}
