//! Redirects the destinations of a prefetch: `git fetch --prefetch`.

use bstr::BString;

use super::Options;
use crate::remote::{Refspec, Remote};

/// The namespace in which a prefetch stores refs.
const PREFETCH: &str = "refs/prefetch/";

/// The remote and options of a prefetch.
pub(super) struct Redirected {
    pub(super) remote: Remote,
    pub(super) options: Options,
}

/// Moves the destinations of the refspecs of `remote` and `options` below `refs/prefetch/`. As in
/// Git, refspecs without a destination, and those of tags, are dropped.
pub(super) fn redirect(remote: &Remote, options: &Options) -> Redirected {
    let mut redirected = Redirected {
        remote: remote.clone(),
        options: options.clone(),
    };
    for specs in [
        &mut redirected.remote.fetch,
        &mut redirected.options.refspecs,
    ] {
        specs.retain_mut(redirect_one);
    }
    redirected
}

/// Moves the destination of `spec`. Returns whether the refspec is kept.
fn redirect_one(spec: &mut Refspec) -> bool {
    if spec.negative {
        return true;
    }
    let Some(old) = spec.destination.as_ref() else {
        return false;
    };
    if spec.source.starts_with(b"refs/tags/") {
        return false;
    }
    let below = old.strip_prefix(b"refs/").unwrap_or(old);
    spec.destination = Some(BString::from([PREFETCH.as_bytes(), below].concat()));
    spec.force = true;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_move_and_tags_are_dropped() {
        let redirected = |text: &str| {
            let mut spec = Refspec::parse(text.into()).expect("a refspec");
            redirect_one(&mut spec).then(|| (spec.destination.unwrap_or_default(), spec.force))
        };
        let moved = |name: &str| Some((BString::from(name), true));
        assert_eq!(
            redirected("refs/heads/*:refs/remotes/origin/*"),
            moved("refs/prefetch/remotes/origin/*")
        );
        assert_eq!(redirected("main:copy"), moved("refs/prefetch/copy"));
        assert_eq!(redirected("main"), None);
        assert_eq!(redirected("refs/tags/*:refs/x/*"), None);
        let mut negative = Refspec::parse("^refs/heads/x".into()).expect("a refspec");
        assert!(redirect_one(&mut negative) && negative.destination.is_none());
    }
}
