//! A description of the state of all references that is cheaper than the references themselves.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use bstr::{BStr, ByteSlice as _};
use pronto_io::error::IoContext as _;

use super::References;
use super::iterate::full;
use super::loose::{self, Contents};
use pronto_config::{ErrorKind, Result};

/// Loose refs beyond this number are not described.
const MOST_LOOSE: usize = 256;

/// A file that was changed since then may change again without a sign.
const SETTLED: Duration = Duration::from_secs(2);

impl References {
    /// Passes parts to `add` that differ between two states of the references and of `HEAD`: the values
    /// of loose refs, and the identity of the file of packed refs. Returns whether all states differ in
    /// them: not while the file has just been written, and not for reftables, linked worktrees, broken
    /// refs and more than 256 loose ones.
    ///
    /// Costs listing the directories of loose refs, reading these, and one call for the packed ones.
    ///
    /// # Errors
    /// The file of packed refs cannot be examined.
    pub fn describe_state(&self, add: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.tables.is_some() || self.git_dir != self.common_dir {
            return Ok(false);
        }
        // Loose refs first: they are removed after they were packed.
        let names = self.loose_names("refs/".into());
        if names.len() > MOST_LOOSE || !self.describe("HEAD".into(), add) {
            return Ok(false);
        }
        for name in &names {
            if full(name.as_bstr()).is_none() || !self.describe(name.as_bstr(), add) {
                return Ok(false);
            }
        }
        self.describe_packed(add)
    }

    /// Describes a loose ref; whether it can be described.
    fn describe(&self, name: &BStr, add: &mut dyn FnMut(&[u8])) -> bool {
        add(name);
        let path = self.common_dir.join(pronto_config::path::borrow(name));
        match loose::read(&path, name, self.object_hash) {
            Ok(Some(Contents::Object(id))) => add(id.as_slice()),
            // The other ref is described, too.
            Ok(Some(Contents::Symbolic(to))) if to.starts_with(b"refs/") => add(&to),
            // It was packed or removed meanwhile, or is broken.
            _ => return false,
        }
        true
    }

    fn describe_packed(&self, add: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let file = self.common_dir.join("packed-refs");
        let metadata = match std::fs::metadata(&file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                add(b"");
                return Ok(true);
            }
            found => found.context(ErrorKind::Io, "cannot examine", &file)?,
        };
        for number in [
            metadata.dev(),
            metadata.ino(),
            metadata.size(),
            metadata.mtime().cast_unsigned(),
            metadata.mtime_nsec().cast_unsigned(),
            metadata.ctime().cast_unsigned(),
            metadata.ctime_nsec().cast_unsigned(),
        ] {
            add(&number.to_be_bytes());
        }
        let changed = u64::try_from(metadata.ctime().max(metadata.mtime())).unwrap_or(0);
        let settled = SystemTime::UNIX_EPOCH + Duration::from_secs(changed) + SETTLED;
        Ok(SystemTime::now() > settled)
    }
}
