//! A fingerprint of the state of all refs that costs less than reading the refs.

use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use bstr::{BStr, ByteSlice as _};
use pronto_io::error::IoContext as _;

use super::References;
use super::iterate::full;
use super::loose::{self, LooseRefContents};
use pronto_config::{ErrorKind, Result};

/// The largest number of loose refs that a fingerprint can describe.
const MOST_LOOSE: usize = 256;

/// The age from which a file is settled. A younger file can change again without a visible change
/// of its stat data.
const SETTLED: Duration = Duration::from_secs(2);

impl References {
    /// Passes bytes to `add` that identify the state of the refs and of `HEAD`: the values of loose
    /// refs, and the identity of `packed-refs`. Returns whether the bytes identify the state
    /// reliably. The result is `false` if `packed-refs` has just been written, for reftables, in
    /// linked worktrees, with broken refs, and with more than 256 loose refs.
    ///
    /// Costs listing the directories of loose refs, reading these refs, and one system call for
    /// `packed-refs`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if `packed-refs` cannot be examined.
    pub fn describe_state(&self, add: &mut dyn FnMut(&[u8])) -> Result<bool> {
        if self.tables.is_some() || self.git_dir != self.common_dir {
            return Ok(false);
        }
        // Loose refs are read first, because their files are removed after the refs were packed.
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

    /// Passes the value of a loose ref to `add`. Returns whether the ref can be described.
    fn describe(&self, name: &BStr, add: &mut dyn FnMut(&[u8])) -> bool {
        add(name);
        let path = self.common_dir.join(pronto_config::path::borrow(name));
        match loose::read(&path, name, self.object_hash) {
            Ok(Some(LooseRefContents::Object(id))) => add(id.as_slice()),
            // The target is below `refs/`, so its value is described, too.
            Ok(Some(LooseRefContents::Symbolic(to))) if to.starts_with(b"refs/") => add(&to),
            // The ref was packed or removed meanwhile, or is broken.
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
