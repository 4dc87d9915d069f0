//! Writes a file of a commit-graph.

use std::io::{self, Write};
use std::ops::Range;

use pronto_hash::{Kind, ObjectId};
use pronto_io::progress::Meter;

use super::bloom;
use super::layer::{
    HEADER_LEN, LAST_EDGE, MORE_PARENTS, NO_PARENT, OVERFLOW, ROW_REST_LEN, SIGNATURE, VERSION,
    hash_version,
};
use crate::chunks::{write_fanout, write_table};
use crate::fanout::FANOUT_LEN;
use crate::trailing::Trailing;

/// The largest topological level that a file can contain; greater levels are truncated.
pub const MOST_LEVELS: u32 = 0x3fff_ffff;

/// The largest difference between generation and commit date that fits into 31 bits.
const GREATEST_OFFSET: u64 = (1 << 31) - 1;

/// A commit to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the commit.
    pub id: ObjectId,
    /// The id of the tree of the commit.
    pub tree: ObjectId,
    /// The commit date in seconds since 1970.
    pub time: u64,
    /// The topological level: the length of the longest path to a root, counted in commits.
    pub level: u32,
    /// The corrected commit date: the commit date, or one more than the greatest generation of the
    /// parents if that is greater.
    pub generation: u64,
    /// The range of the parents of the commit in [`GraphContents::parents`].
    pub parents: Range<usize>,
}

/// The content of a new file.
#[derive(Clone, Copy, Debug)]
pub struct GraphContents<'a> {
    /// The hash function of object ids.
    pub kind: Kind,
    /// The commits, sorted by id, each once.
    pub commits: &'a [Entry],
    /// The positions of parents, counted from the lowest layer.
    pub parents: &'a [u32],
    /// Write corrected commit dates in addition to topological levels
    /// (`commitGraph.generationVersion=2`).
    pub generations: bool,
    /// The changed-path filter of each commit, with the settings of the filters
    /// (`--changed-paths`).
    pub filters: Option<(bloom::Settings, &'a [Vec<u8>])>,
    /// The ids of the layers below, lowest first (`--split`).
    pub bases: &'a [ObjectId],
}

impl GraphContents<'_> {
    fn chunks(&self) -> Vec<([u8; 4], u64)> {
        let count = self.commits.len() as u64;
        let hash_len = self.kind.len_in_bytes() as u64;
        let mut chunks = vec![
            (*b"OIDF", FANOUT_LEN as u64),
            (*b"OIDL", count * hash_len),
            (*b"CDAT", count * (hash_len + ROW_REST_LEN as u64)),
        ];
        if self.generations {
            chunks.push((*b"GDA2", count * 4));
            let overflows = self.commits.iter().filter(|commit| overflows(commit));
            match overflows.count() as u64 {
                0 => {}
                overflows => chunks.push((*b"GDO2", overflows * 8)),
            }
        }
        let edges = self.commits.iter().map(|commit| commit.parents.len());
        match edges
            .filter(|count| *count > 2)
            .map(|count| count as u64 - 1)
            .sum()
        {
            0 => {}
            edges => chunks.push((*b"EDGE", edges * 4)),
        }
        if let Some((_, filters)) = self.filters {
            let len: u64 = filters.iter().map(|filter| filter.len() as u64).sum();
            chunks.push((*b"BIDX", count * 4));
            chunks.push((*b"BDAT", 12 + len));
        }
        if !self.bases.is_empty() {
            chunks.push((*b"BASE", self.bases.len() as u64 * hash_len));
        }
        chunks
    }

    /// Returns the number of chunks of the file.
    pub fn chunk_count(&self) -> usize {
        self.chunks().len()
    }
}

fn offset(commit: &Entry) -> u64 {
    commit.generation.saturating_sub(commit.time)
}

fn overflows(commit: &Entry) -> bool {
    offset(commit) > GREATEST_OFFSET
}

/// Writes `contents` to `out`, which need not be buffered. Returns the checksum, which is the id of
/// the file. `meter` counts the commits once for each chunk. Costs a few system calls for each MiB.
///
/// # Errors
/// Fails if writing fails, and with `InvalidInput` if there are more layers than the format
/// supports.
pub fn write(
    out: &mut dyn Write,
    contents: &GraphContents<'_>,
    meter: &Meter,
) -> io::Result<ObjectId> {
    let chunks = contents.chunks();
    let base_count = u8::try_from(contents.bases.len()).map_err(|_| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "too many layers in the commit-graph chain",
        )
    })?;
    let mut out = Trailing::new(out, contents.kind);
    out.put(&SIGNATURE)?;
    let version = hash_version(contents.kind);
    out.put(&[VERSION, version, chunks.len() as u8, base_count])?;
    write_table(&mut out, HEADER_LEN as u64, &chunks)?;
    for (name, _) in &chunks {
        match name {
            b"OIDF" => {
                let ids = contents.commits.iter().map(|commit| &commit.id);
                write_fanout(&mut out, ids.map(|id| id.as_bytes()[0]))?;
            }
            b"OIDL" => {
                for commit in contents.commits {
                    out.put(commit.id.as_bytes())?;
                }
            }
            b"CDAT" => write_rows(&mut out, contents)?,
            b"GDA2" => write_generations(&mut out, contents)?,
            b"GDO2" => {
                for commit in contents.commits.iter().filter(|commit| overflows(commit)) {
                    out.put(&offset(commit).to_be_bytes())?;
                }
            }
            b"EDGE" => write_edges(&mut out, contents)?,
            b"BIDX" => write_filter_ends(&mut out, contents)?,
            b"BDAT" => write_filters(&mut out, contents)?,
            _ => {
                for base in contents.bases {
                    out.put(base.as_bytes())?;
                }
            }
        }
        meter.add(contents.commits.len() as u64);
    }
    out.finish()
}

fn write_rows(out: &mut Trailing<'_>, contents: &GraphContents<'_>) -> io::Result<()> {
    let mut edges = 0u32;
    for commit in contents.commits {
        let parents = &contents.parents[commit.parents.clone()];
        let first = parents.first().copied().unwrap_or(NO_PARENT);
        let second = match parents {
            [] | [_] => NO_PARENT,
            [_, second] => *second,
            _ => MORE_PARENTS | edges,
        };
        if parents.len() > 2 {
            edges += parents.len() as u32 - 1;
        }
        let high = commit.level << 2 | (commit.time >> 32) as u32 & 3;
        out.put(commit.tree.as_bytes())?;
        for word in [first, second, high, commit.time as u32] {
            out.put(&word.to_be_bytes())?;
        }
    }
    Ok(())
}

fn write_generations(out: &mut Trailing<'_>, contents: &GraphContents<'_>) -> io::Result<()> {
    let mut overflowing = 0u32;
    for commit in contents.commits {
        let word = match offset(commit) {
            offset if offset <= GREATEST_OFFSET => offset as u32,
            _ => {
                overflowing += 1;
                OVERFLOW | (overflowing - 1)
            }
        };
        out.put(&word.to_be_bytes())?;
    }
    Ok(())
}

fn write_edges(out: &mut Trailing<'_>, contents: &GraphContents<'_>) -> io::Result<()> {
    for commit in contents
        .commits
        .iter()
        .filter(|commit| commit.parents.len() > 2)
    {
        let Some(([_, middle @ ..], last)) = contents.parents[commit.parents.clone()]
            .split_last()
            .map(|(last, rest)| (rest, last))
        else {
            continue;
        };
        for parent in middle {
            out.put(&parent.to_be_bytes())?;
        }
        out.put(&(last | LAST_EDGE).to_be_bytes())?;
    }
    Ok(())
}

fn write_filter_ends(out: &mut Trailing<'_>, contents: &GraphContents<'_>) -> io::Result<()> {
    let mut end = 0u32;
    for filter in contents.filters.iter().flat_map(|(_, filters)| *filters) {
        end = end.wrapping_add(filter.len() as u32);
        out.put(&end.to_be_bytes())?;
    }
    Ok(())
}

fn write_filters(out: &mut Trailing<'_>, contents: &GraphContents<'_>) -> io::Result<()> {
    let Some((settings, filters)) = contents.filters else {
        return Ok(());
    };
    for word in [
        settings.hash_version,
        settings.hash_count,
        settings.bits_per_entry,
    ] {
        out.put(&word.to_be_bytes())?;
    }
    filters.iter().try_for_each(|filter| out.put(filter))
}
