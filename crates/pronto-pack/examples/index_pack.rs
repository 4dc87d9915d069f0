//! Indexes a pack file as if it were received over a connection, for measurements.
//!
//! `index_pack PACK DIRECTORY [THREADS]`

use pronto_pack::indexer::{IndexContext, Options, index_stream};
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: index_pack PACK DIRECTORY [THREADS]";
    let pack = PathBuf::from(arguments.next().ok_or(usage)?);
    let directory = PathBuf::from(arguments.next().ok_or(usage)?);
    let mut options = Options::default();
    if let Some(threads) = arguments.next() {
        options.threads = threads.to_str().ok_or(usage)?.parse()?;
    }
    // Reading a file never blocks.
    let context = IndexContext {
        ready: Some(&|| true),
        ..IndexContext::default()
    };
    let started = std::time::Instant::now();
    let outcome = index_stream(&mut File::open(pack)?, &directory, &options, &context)?;
    let line = format!(
        "{} objects, {} deltas, {:?}\n{}\n",
        outcome.objects,
        outcome.deltas,
        started.elapsed(),
        outcome.checksum
    );
    std::io::stdout().write_all(line.as_bytes())?;
    Ok(())
}
