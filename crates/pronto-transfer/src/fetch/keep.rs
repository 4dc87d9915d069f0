//! The file that keeps a received pack until refs lead to it.

use super::Work;
use crate::Result;
use crate::remote::unpack_limit;

/// The content of the file that keeps the pack until refs lead to it. As in Git, a pack has none if all
/// objects are to become loose ones.
pub(super) fn keep_text(work: &Work<'_>) -> Result<Option<Vec<u8>>> {
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

/// The number of objects from which a pack gets that file, where the rules of `git fetch-pack` apply.
pub(super) fn keep_from(work: &Work<'_>) -> Result<Option<u32>> {
    match work.options.rules.is_some() && !work.options.keep {
        true => unpack_limit(work.repository.config()),
        false => Ok(None),
    }
}
