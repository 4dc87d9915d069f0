//! Tidying up after commands that add objects. It is git's work; what costs nothing is to find out
//! that there is none.

use bstr::ByteSlice;
use pronto::Repository;

use crate::{CliError, Context, fallback};

/// Lets git tidy up if there is likely to be something to tidy up. Without a git that may be called
/// nothing is done.
pub(crate) fn maintain(repository: &Repository, context: &Context) -> Result<(), CliError> {
    let config = repository.config();
    let objects_at_most = config.i64("gc.auto")?.unwrap_or(6700);
    let packs_at_most = config.i64("gc.autopacklimit")?.unwrap_or(50);
    if objects_at_most <= 0 || !config.bool_or("maintenance.auto", true)? {
        return Ok(());
    }
    let count = |directory: &str, extension: &str| {
        let entries = std::fs::read_dir(repository.objects_dir().join(directory));
        let entries = entries.into_iter().flatten().flatten();
        let counted = entries.filter(|entry| {
            extension.is_empty()
                || entry
                    .path()
                    .extension()
                    .is_some_and(|found| found == extension)
        });
        counted.count() as i64
    };
    // One of 256 directories stands for all.
    let is_task = |key: &str| {
        key == "maintenance.strategy"
            || key.starts_with("maintenance.") && key.ends_with(".enabled")
    };
    let has_tasks = config
        .iter()
        .any(|entry| entry.key.to_str().is_ok_and(is_task));
    let is_needed = has_tasks
        || count("17", "") > (objects_at_most + 255) / 256
        || (packs_at_most > 0 && count("pack", "pack") > packs_at_most);
    if is_needed && let Ok(git) = fallback::git(&context.globals) {
        let mut command = git.command();
        command.args(["maintenance", "run", "--auto", "--quiet"]);
        // What cannot be tidied up now is tidied up another time.
        let _ = command.status();
    }
    Ok(())
}
