//! Reads directories of repositories.

use std::path::Path;

/// Returns the names of the subdirectories that are UTF-8. Symbolic links are skipped, so that no repository
/// is listed twice.
pub(super) fn read_directory(path: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir()
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    Ok(names)
}
