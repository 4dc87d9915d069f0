//! Fuzzes a reftable: reads and searches it, and writes its content again. The checksum of the
//! footer is corrected, so that the fuzzer reaches the code after its check.

use std::ops::ControlFlow;
use std::path::Path;

use pronto_hash::ObjectId;
use pronto_io::view::FileView;
use pronto_refs::reftable::{RefTable, Result, TableWriteOptions, TableWriter};

pub(crate) fn run(data: &[u8]) {
    let mut data = data.to_vec();
    let footer_len = if data.get(4) == Some(&2) { 72 } else { 68 };
    if let Some(start) = data.len().checked_sub(footer_len) {
        let end = data.len() - 4;
        let crc = crc32fast::hash(&data[start..end]);
        data[end..].copy_from_slice(&crc.to_be_bytes());
    }
    let view = FileView::from_bytes(data);
    let Ok(table) = RefTable::from_view(view, Path::new("fuzzed")) else {
        return;
    };
    let _ = search(&table);
    let _ = copy(&table);
}

fn search(table: &RefTable) -> Result<()> {
    for name in ["", "refs/heads/main", "refs/z"] {
        let _ = table.find(name);
        let mut refs = table.refs();
        let _ = refs.seek(name).and_then(|()| refs.advance());
        let mut logs = table.logs();
        let _ = logs.seek(name, 1).and_then(|()| logs.advance());
    }
    table.find_object(&ObjectId::null(table.kind()), |_| ControlFlow::Continue(()))
}

fn copy(table: &RefTable) -> Result<()> {
    let options = TableWriteOptions::default();
    let mut writer = TableWriter::new(Vec::new(), table.kind(), table.limits(), options)?;
    let mut refs = table.refs();
    while refs.advance()? {
        let _ = writer.add_ref(&refs.record());
    }
    let mut logs = table.logs();
    while logs.advance()? {
        let _ = writer.add_log(&logs.record());
    }
    writer.finish().map(|_| ())
}
