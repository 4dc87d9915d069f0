//! Models file systems on which different names may refer to the same file.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

/// The rule by which names are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Folding {
    /// Only identical names.
    #[default]
    None,
    /// Names that differ only in case, as on NTFS and APFS.
    Case,
    /// Names that differ only in Unicode composition.
    Composition,
    /// Names that differ only in case or in Unicode composition, as on HFS+.
    CaseAndComposition,
}

impl Folding {
    fn fold(self, name: &OsStr) -> Option<String> {
        let name = name.to_str()?;
        match self {
            Folding::None => None,
            Folding::Case => Some(name.to_lowercase()),
            Folding::Composition => Some(name.nfd().collect()),
            Folding::CaseAndComposition => Some(name.to_lowercase().nfd().collect()),
        }
    }

    /// Returns the stored name in `directory` that equals `name`, or `name` itself.
    pub(crate) fn resolve(self, directory: &Path, name: &OsStr) -> OsString {
        let Some(folded) = self.fold(name) else {
            return name.to_owned();
        };
        if directory.join(name).symlink_metadata().is_ok() {
            return name.to_owned();
        }
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name())
            .find(|other| self.fold(other).is_some_and(|other| other == folded))
            .unwrap_or_else(|| name.to_owned())
    }
}
