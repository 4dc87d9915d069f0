//! Decides on the `.keep` file that protects a received pack until refs point to its objects.

use super::FetchRun;
use crate::Result;
use crate::remote::unpack_limit;

/// Returns the content of the `.keep` file. As in Git, there is none if all objects are unpacked.
pub(super) fn keep_text(work: &FetchRun<'_>) -> Result<Option<Vec<u8>>> {
    let options = work.options;
    let always = options.keep && options.rules.as_ref().is_some_and(|rules| rules.lock_kept);
    let locks = options.lock_packs && (always || unpack_limit(work.repository.config())?.is_some());
    if !locks {
        return Ok(None);
    }
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let text = format!("fetch-pack {} on {host}\n", std::process::id());
    Ok(Some(text.into_bytes()))
}

/// Returns the number of objects from which on a pack gets a `.keep` file, by the rules of
/// `git fetch-pack`.
pub(super) fn keep_from(work: &FetchRun<'_>) -> Result<Option<u32>> {
    match work.options.rules.is_some() && !work.options.keep {
        true => unpack_limit(work.repository.config()),
        false => Ok(None),
    }
}
