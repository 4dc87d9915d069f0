//! Generates pack indexes of any size without packs.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The assumed size of a pack entry. In an index of 100 million objects, half of the offsets then
/// need more than 31 bits.
const ENTRY_BYTES: u64 = 41;
const HASH_BYTES: u64 = 20;

/// Creates an index of version 2 with `objects` objects in `data`, unless it exists. Ids are
/// distributed like digests, and offsets are in another order.
pub(crate) fn make(objects: u32, data: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(data)?;
    let path = data.join(format!("synthetic-{objects}.idx"));
    if path.exists() {
        return Ok(path);
    }
    let temporary = path.with_extension("tmp");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&temporary)?);
    out.write_all(b"\xfftOc\0\0\0\x02")?;
    out.write_all(&[0; 1024])?;
    let fanout = write_ids(&mut out, objects)?;
    io::copy(
        &mut io::Read::take(io::repeat(0), u64::from(objects) * 4),
        &mut out,
    )?;
    write_offsets(&mut out, objects)?;
    // The checksums are arbitrary but not zero, because no reader verifies them.
    out.write_all(&[0xab; 2 * HASH_BYTES as usize])?;
    out.seek(SeekFrom::Start(8))?;
    for count in fanout {
        out.write_all(&count.to_be_bytes())?;
    }
    out.flush()?;
    drop(out);
    std::fs::rename(&temporary, &path)?;
    Ok(path)
}

fn write_ids(out: &mut impl io::Write, objects: u32) -> io::Result<[u32; 256]> {
    // The steps are distributed like the distances between sorted random numbers, and their sum
    // stays in range.
    let count = f64::from(objects);
    let mean = u64::MAX as f64 / (count + 6.0 * count.sqrt() + 8.0);
    let mut fanout = [0; 256];
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state
    };
    let mut key = 0_u64;
    for row in 0..objects {
        let share = ((next() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        key = key.saturating_add((-share.ln() * mean) as u64);
        out.write_all(&key.to_be_bytes())?;
        // The row number makes ids increase even if two keys are equal.
        out.write_all(&row.to_be_bytes())?;
        out.write_all(&next().to_be_bytes())?;
        fanout[(key >> 56) as usize] += 1;
    }
    let mut sum = 0;
    Ok(fanout.map(|count: u32| {
        sum += count;
        sum
    }))
}

fn write_offsets(out: &mut impl io::Write, objects: u32) -> io::Result<()> {
    const LARGE: u32 = 1 << 31;
    // The factor is prime, so that each position in the pack is used once.
    let place = |row: u64| row * 2_654_435_761 % u64::from(objects.max(1));
    let offset = |row: u32| 12 + place(u64::from(row)) * ENTRY_BYTES;
    let mut large = Vec::new();
    for row in 0..objects {
        let small = match u32::try_from(offset(row)) {
            Ok(small @ ..LARGE) => small,
            _ => {
                large.push(row);
                LARGE | (large.len() as u32 - 1)
            }
        };
        out.write_all(&small.to_be_bytes())?;
    }
    for row in large {
        out.write_all(&offset(row).to_be_bytes())?;
    }
    Ok(())
}
