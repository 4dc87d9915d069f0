//! Verifies a pack and its index without writing.

use std::io::Write;
use std::path::Path;

use pronto::fsck::FsckInspector;
use pronto_io::view::ViewAccess;
use pronto_pack::ErrorKind;
use pronto_pack::idx::PackIndex;
use pronto_pack::indexer::{Checked, Inspect, Options, check_file};

use super::{IndexWatch, with_other_end};
use crate::commands::shared::bad_pack;
use crate::{CliError, Context};

/// The listing of a pack (`verify-pack`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerifyListing {
    Nothing,
    /// The number of entries at each delta depth (`--stat-only`).
    Counts,
    /// Every entry, followed by the numbers at each delta depth (`--verbose`).
    Entries,
}

/// A pack and an index to verify.
pub(crate) struct Verification<'a> {
    pub(crate) pack: &'a Path,
    pub(crate) index: &'a Path,
    pub(crate) listing: VerifyListing,
    pub(crate) watch: &'a IndexWatch,
    /// The inspector of objects; `None` if contents are not checked.
    pub(crate) inspector: Option<&'a FsckInspector<'a>>,
}

impl Verification<'_> {
    /// Verifies the pack, and prints its listing.
    pub(crate) fn run(&self, options: &Options, context: &mut Context) -> Result<(), CliError> {
        let opened = open(self.index, options, context)?;
        let mut options = options.clone();
        // Nothing is added to the repository, so no collision is possible.
        options.check_collisions = false;
        let inspect = self.inspector.map(|inspector| inspector as &dyn Inspect);
        let checked = self.watch.over(None, inspect, context, |watched| {
            check_file(self.pack, &options, watched)
        });
        if let Some(inspector) = self.inspector {
            bad_pack::print(inspector, context);
        }
        let checked = checked
            .map_err(|error| bad_pack::report(error, options.max_input_size_bytes, context))?;
        list(&checked, self.listing, context)?;
        let same = checked
            .has_index(&opened)
            .map_err(|error| bad_pack::report(error, None, context))?;
        if !same {
            return Err(invalid(self.index));
        }
        if options.reverse_index {
            let reverse = with_other_end(self.index, "idx", "rev")?;
            if !checked.has_reverse_index(&reverse)? {
                return Err(invalid(&reverse));
            }
        }
        Ok(())
    }
}

fn open(index: &Path, options: &Options, context: &mut Context) -> Result<PackIndex, CliError> {
    let shown = index.display();
    let pack = with_other_end(index, "idx", "pack").ok();
    if !pack.is_some_and(|pack| pack.is_file()) {
        return Err(CliError::fatal(format!(
            "Cannot open existing pack file '{shown}'"
        )));
    }
    PackIndex::open(index, options.kind, ViewAccess::Auto).map_err(|error| {
        let remark = match error.kind() {
            ErrorKind::FanoutOrder => Some(format!("non-monotonic index {shown}")),
            ErrorKind::IndexSize => Some(format!("wrong index v2 file size in {shown}")),
            ErrorKind::Io => None,
            ErrorKind::Truncated => Some(format!("index file {shown} is too small")),
            ErrorKind::IndexVersion { version } => Some(format!(
                "index file {shown} is of version {version}, which is not known"
            )),
            _ => Some(error.message().to_owned()),
        };
        if let Some(remark) = remark {
            context.report_error(&remark);
        }
        CliError::fatal(format!("Cannot open existing pack idx file for '{shown}'"))
    })
}

fn invalid(file: &Path) -> CliError {
    CliError::fatal(format!("sha1 file '{}' validation error", file.display()))
}

/// Prints the entries of the pack, and the number of entries at each delta depth.
fn list(checked: &Checked, listing: VerifyListing, context: &mut Context) -> Result<(), CliError> {
    if listing == VerifyListing::Nothing {
        return Ok(());
    }
    let out = &mut context.out;
    let mut chains: Vec<u64> = Vec::new();
    for entry in checked.entries()? {
        let depth = entry.depth as usize;
        if chains.len() <= depth {
            chains.resize(depth + 1, 0);
        }
        chains[depth] += 1;
        if listing == VerifyListing::Counts {
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
