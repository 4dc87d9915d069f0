//! `show-index`: print the content of a pack index from standard input.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use pronto::Repository;
use pronto::repository::hash_named;
use pronto_hash::{Kind, ObjectId};

use crate::{CliError, Context, ExitCode};

/// Arguments of `show-index`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The hash function: sha1 or sha256
    #[arg(long, value_name = "FORMAT")]
    object_format: Option<OsString>,
    /// Accepted without effect
    #[arg(hide = true)]
    operands: Vec<OsString>,
}

const SIGNATURE: &[u8] = b"\xfftOc";
const BUCKETS: usize = 256;

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let kind = match &args.object_format {
        Some(name) => hash_named(name.as_bytes().as_bstr())
            .ok_or_else(|| CliError::fatal("Unknown hash algorithm"))?,
        None => match context.repository_if_any()? {
            Some(repository) => Repository::object_hash(&repository),
            None => {
                context.warn("assuming SHA-1; use --object-format to override");
                Kind::Sha1
            }
        },
    };
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
    let mut input = UnreadInput { rest: &bytes };
    let start = input.take(8, || "unable to read header".into())?;
    let is_old = !start.starts_with(SIGNATURE);
    if !is_old && start[4..] != [0, 0, 0, 2] {
        return Err(CliError::fatal("unknown index version"));
    }
    if is_old {
        input.rest = &bytes;
    }
    let count = count(&mut input)?;
    match is_old {
        true => show_old(&mut input, count, kind, context)?,
        false => show(&mut input, count, kind, context)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The unread rest of the input.
struct UnreadInput<'a> {
    rest: &'a [u8],
}

impl<'a> UnreadInput<'a> {
    fn take(&mut self, len: usize, failed: impl FnOnce() -> String) -> Result<&'a [u8], CliError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(len) else {
            return Err(CliError::fatal(failed()));
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a table of `count` rows of `len` bytes. Fails if the table is incomplete.
    fn table(&mut self, count: u32, len: usize, what: &str) -> Result<&'a [u8], CliError> {
        let there = self.rest.len() / len;
        self.take(count as usize * len, || {
            format!("unable to read {what} {there}/{count}")
        })
    }
}

fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte))
}

/// Returns the number of objects according to the fan-out table.
fn count(input: &mut UnreadInput<'_>) -> Result<u32, CliError> {
    let table = input.take(BUCKETS * 4, || "unable to read index".into())?;
    let counts: Vec<u32> = table.chunks_exact(4).map(number).collect();
    match counts.is_sorted() {
        true => Ok(counts[BUCKETS - 1]),
        false => Err(CliError::fatal("corrupt index file")),
    }
}

/// Prints an index of version 1: rows of an offset and an id.
fn show_old(
    input: &mut UnreadInput<'_>,
    count: u32,
    kind: Kind,
    context: &mut Context,
) -> Result<(), CliError> {
    for at in 0..count {
        let row = input.take(4 + kind.len_in_bytes(), || {
            format!("unable to read entry {at}/{count}")
        })?;
        let id = ObjectId::from_bytes_or_panic(&row[4..]);
        writeln!(context.out, "{} {id}", number(&row[..4]))?;
    }
    Ok(())
}

/// Prints an index of version 2: tables of ids, checksums, offsets, and large offsets.
fn show(
    input: &mut UnreadInput<'_>,
    count: u32,
    kind: Kind,
    context: &mut Context,
) -> Result<(), CliError> {
    let id_len = kind.len_in_bytes();
    let ids = input.table(count, id_len, "sha1")?;
    let checksums = input.table(count, 4, "crc")?;
    let offsets = input.table(count, 4, "32b offset")?;
    let mut large = 0;
    let rows = ids.chunks_exact(id_len).zip(checksums.chunks_exact(4));
    for ((id, checksum), offset) in rows.zip(offsets.chunks_exact(4)) {
        let mut offset = u64::from(number(offset));
        if offset >> 31 == 1 {
            if offset & 0x7fff_ffff != large {
                return Err(CliError::fatal("inconsistent 64b offset index"));
            }
            let bytes = input.take(8, || format!("unable to read 64b offset {large}"))?;
            offset = u64::from(number(&bytes[..4])) << 32 | u64::from(number(&bytes[4..]));
            large += 1;
        }
        let (id, checksum) = (ObjectId::from_bytes_or_panic(id), number(checksum));
        writeln!(context.out, "{offset} {id} ({checksum:08x})")?;
    }
    Ok(())
}
