//! `bench-gix INDEX RUNS MOST`: measures gix for `lookups --peer
//! gix=bench/gix/target/release/bench-gix`.
//!
//! The program opens the pack index and finds one id, finds at most `MOST` ids in random order, and
//! reads all ids and offsets. It repeats this `RUNS` times, after one warm-up run. It prints a line
//! for each figure: the name, a tab, seconds.

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gix_hash::{Kind, ObjectId};
use gix_pack::index::{Entry, File};

/// The number of times that each run opens the index.
const OPENINGS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, runs, most] = &arguments[..] else {
        return Err("usage: bench-gix INDEX RUNS MOST".into());
    };
    let path = Path::new(path);
    let runs: usize = runs.parse()?;
    let index = File::at(path, Kind::Sha1)?;
    let ids = sample(&index, most.parse()?);
    for run in 0..=runs {
        let note = |what: &str, start: Instant, count: usize| {
            let seconds = start.elapsed().as_secs_f64() / count as f64;
            if run > 0 {
                println!("{what}\t{seconds:.12}");
            }
        };
        for id in ids.iter().take(OPENINGS) {
            let start = Instant::now();
            let opened = File::at(path, Kind::Sha1)?;
            assert!(find(&opened, id));
            note("open and find one", start, 1);
            drop(opened);
        }
        let start = Instant::now();
        assert!(ids.iter().all(|id| find(&index, id)));
        note("random find, each", start, ids.len());
        let start = Instant::now();
        let of = |entry: Entry| entry.pack_offset ^ u64::from(entry.oid.first_byte());
        black_box(index.iter().map(of).fold(0, |sum, one| sum ^ one));
        note("scan of all", start, 1);
    }
    Ok(())
}

fn find(index: &File, id: &ObjectId) -> bool {
    let offset = index.lookup(id).map(|row| index.pack_offset_at_index(row));
    black_box(offset).is_some()
}

/// Returns ids of the index in random order.
fn sample(index: &File, most: u32) -> Vec<ObjectId> {
    let step = index.num_objects().div_ceil(most).max(1) as usize;
    let rows = (0..index.num_objects()).step_by(step);
    let mut ids: Vec<ObjectId> = rows.map(|row| index.oid_at_index(row).to_owned()).collect();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for at in (1..ids.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ids.swap(at, ((state >> 33) % (at as u64 + 1)) as usize);
    }
    ids
}
