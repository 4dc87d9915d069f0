//! Times what a pack index is used for: opening it and finding one id, finding all ids in random
//! order, and scanning all ids and offsets.
//!
//! `cargo run --release -p pronto-odb --example lookup -- FILE.idx [ROUNDS]`

use std::hint::black_box;
use std::io::Write as _;
use std::time::{Duration, Instant};

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::Access;
use pronto_pack::idx::Index;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which index?")?;
    let rounds: u32 = match arguments.next() {
        Some(rounds) => rounds.parse()?,
        None => 5,
    };
    let open = || Index::open(&path, Kind::Sha1, Access::Auto);
    let index = open()?;
    let mut ids: Vec<ObjectId> = Vec::new();
    index.scan(0..index.len(), |_, id, _| ids.push(id.to_owned()))?;
    shuffle(&mut ids);
    let one = ids[0];

    let opening = best(rounds * 20, || {
        let index = open()?;
        index.find_offset(&one)
    })?;
    let finding = best(rounds, || {
        let mut sum = 0;
        for id in &ids {
            sum ^= index.find_offset(id)?.map_or(0, |offset| offset.0);
        }
        Ok(sum)
    })?;
    let scanning = best(rounds, || {
        let mut sum = 0;
        index.scan(0..index.len(), |_, id, offset| {
            sum ^= offset.0 ^ u64::from(id.first_byte());
        })?;
        Ok(sum)
    })?;
    ids.sort_unstable();
    let merging = best(rounds, || {
        let mut sum = 0;
        index.find_sorted(ids.iter().map(|id| &**id), |_, row| sum ^= row.0)?;
        Ok(sum)
    })?;
    let count = f64::from(index.len().max(1));
    let each = |time: Duration| time.as_secs_f64() * 1e9 / count;
    let mut out = std::io::stdout().lock();
    writeln!(out, "objects             {:>12}", index.len())?;
    writeln!(
        out,
        "open and find one   {:>9.1} us",
        opening.as_secs_f64() * 1e6
    )?;
    writeln!(out, "random find         {:>9.1} ns each", each(finding))?;
    writeln!(out, "sorted find         {:>9.1} ns each", each(merging))?;
    writeln!(
        out,
        "scan of all         {:>9.2} ms",
        scanning.as_secs_f64() * 1e3
    )?;
    Ok(())
}

fn best<T>(
    rounds: u32,
    mut run: impl FnMut() -> Result<T, pronto_pack::Error>,
) -> Result<Duration, pronto_pack::Error> {
    let mut best = Duration::MAX;
    for _ in 0..rounds.max(1) {
        let start = Instant::now();
        black_box(run()?);
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn shuffle(ids: &mut [ObjectId]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for at in (1..ids.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ids.swap(at, ((state >> 33) % (at as u64 + 1)) as usize);
    }
}
