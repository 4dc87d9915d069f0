//! Looking at a pack and its index without writing anything.

use std::io::Write;
use std::path::Path;

use pronto_io::view::Access;
use pronto_pack::idx::Index;
use pronto_pack::indexer::{Checked, Options, check_file};

use super::{Job, with_other_end};
use crate::{CliError, Context, ExitCode};

/// Checks the pack of `job` against its index.
pub(super) fn run(
    job: &Job<'_>,
    index: &Path,
    options: &Options,
    context: &mut Context,
) -> Result<ExitCode, CliError> {
    let Some(pack) = job.pack.filter(|_| !job.args.stdin) else {
        return Err(CliError::unsupported(
            "--verify of what comes from the standard input",
        ));
    };
    let opened = open(index, options)?;
    let mut options = options.clone();
    // Nothing is added, so nothing can be replaced.
    options.check_collisions = false;
    let checked = job
        .watched(None, context, |watched| check_file(pack, &options, watched))
        .map_err(|error| job.report(error, &options, context))?;
    if job.args.verify_stat || job.args.verify_stat_only {
        list(&checked, job.args.verify_stat_only, context)?;
    }
    let same = checked
        .has_index(&opened)
        .map_err(|error| job.report(error, &options, context))?;
    if !same {
        return Err(invalid(index));
    }
    if options.reverse_index {
        let reverse = with_other_end(index, "idx", "rev")?;
        if !checked.has_reverse_index(&reverse)? {
            return Err(invalid(&reverse));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn open(index: &Path, options: &Options) -> Result<Index, CliError> {
    let shown = index.display();
    let pack = with_other_end(index, "idx", "pack").ok();
    if !pack.is_some_and(|pack| pack.is_file()) {
        return Err(CliError::fatal(format!(
            "Cannot open existing pack file '{shown}'"
        )));
    }
    Index::open(index, options.kind, Access::Auto)
        .map_err(|_| CliError::fatal(format!("Cannot open existing pack idx file for '{shown}'")))
}

fn invalid(file: &Path) -> CliError {
    CliError::fatal(format!("sha1 file '{}' validation error", file.display()))
}

/// Lists what is in the pack, and counts it.
fn list(checked: &Checked, only_count: bool, context: &mut Context) -> Result<(), CliError> {
    let out = &mut context.out;
    let mut chains: Vec<u64> = Vec::new();
    for entry in checked.entries()? {
        let depth = entry.depth as usize;
        if chains.len() <= depth {
            chains.resize(depth + 1, 0);
        }
        chains[depth] += 1;
        if only_count {
            continue;
        }
        let (id, kind, size) = (entry.id, entry.kind.to_string(), entry.size_bytes);
        let (packed, offset) = (entry.packed_bytes, entry.offset);
        write!(out, "{id} {kind:<6} {size} {packed} {offset}")?;
        match entry.base {
            Some(base) => writeln!(out, " {depth} {base}")?,
            None => writeln!(out)?,
        }
    }
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    for (depth, count) in chains
        .into_iter()
        .enumerate()
        .filter(|(_, count)| *count > 0)
    {
        match depth {
            0 => writeln!(out, "non delta: {count} object{}", plural(count))?,
            _ => writeln!(
                out,
                "chain length = {depth}: {count} object{}",
                plural(count)
            )?,
        }
    }
    Ok(())
}
