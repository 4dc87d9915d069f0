//! Branch names with special suffixes: `@`, `@{-1}`, `branch@{upstream}`, `branch@{push}`.

use bstr::{BStr, BString, ByteSlice};
use pronto_io::short::Short as _;

use crate::refs::HeadValue;
use crate::{Error, ErrorKind, Repository, Result};

/// The kind of tracked branch that a suffix names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackingBranch {
    Upstream,
    Push,
}

/// Returns the suffix with which `text` begins, and its length.
pub(super) fn mark(text: &[u8]) -> Option<(TrackingBranch, usize)> {
    let marks = [
        (&b"@{upstream}"[..], TrackingBranch::Upstream),
        (&b"@{u}"[..], TrackingBranch::Upstream),
        (&b"@{push}"[..], TrackingBranch::Push),
    ];
    marks.into_iter().find_map(|(spelling, mark)| {
        let start = text.get(..spelling.len())?;
        start
            .eq_ignore_ascii_case(spelling)
            .then_some((mark, spelling.len()))
    })
}

/// The largest number of times that a name is expanded again.
const MAX_REPLACEMENTS: u32 = 8;

impl Repository {
    /// Expands a branch name with a special form, such as `@{-1}` or `branch@{upstream}`. Returns a
    /// short branch name, or the full name of a remote-tracking branch. Returns `None` if `text` has no
    /// special form.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if the branch has no upstream, or `HEAD` is detached.
    pub fn interpret_branch_name(&self, text: impl AsRef<[u8]>) -> Result<Option<BString>> {
        let mut replaced: Option<BString> = None;
        for _ in 0..MAX_REPLACEMENTS {
            let current = replaced
                .as_ref()
                .map_or(text.as_ref().as_bstr(), |name| name.as_bstr());
            match self.interpret_once(current)? {
                Some(next) => replaced = Some(next),
                None => break,
            }
        }
        Ok(replaced)
    }

    fn interpret_once(&self, text: &BStr) -> Result<Option<BString>> {
        if let Some(rest) = text.strip_prefix(b"@{-")
            && let Some(end) = rest.position_of(b'}')
            && let Some(count) = rest[..end]
                .to_str()
                .ok()
                .and_then(|count| count.parse().ok())
            && count > 0
        {
            let Some(mut branch) = self.prior_checkout(count)? else {
                return Ok(None);
            };
            branch.extend_from_slice(&rest[end + 1..]);
            return Ok(Some(branch));
        }
        if text == "@" {
            return Ok(Some("HEAD".into()));
        }
        if let Some(rest) = text.strip_prefix(b"@")
            && rest.starts_with(b"@{")
        {
            return Ok(Some([b"HEAD", rest].concat().into()));
        }
        for at in text.positions_of_text(b"@{") {
            let Some((mark, length)) = mark(&text[at..]) else {
                continue;
            };
            if text[..at].contains(&b':') {
                return Ok(None);
            }
            let branch = self.tracked_branch(text[..at].as_bstr(), mark)?;
            return Ok(Some(
                [branch.as_slice(), &text[at + length..]].concat().into(),
            ));
        }
        Ok(None)
    }

    fn tracked_branch(&self, name: &BStr, mark: TrackingBranch) -> Result<BString> {
        let fail = |message: String| Err(Error::new(ErrorKind::Reference, message));
        let branch = match name.as_bytes() {
            b"" | b"HEAD" => match self.head()? {
                HeadValue::Branch { name, .. } | HeadValue::Unborn { name } => {
                    match name.strip_prefix(b"refs/heads/") {
                        Some(short) => BString::from(short),
                        None => return fail("HEAD does not point to a branch".into()),
                    }
                }
                HeadValue::Detached { .. } => {
                    return fail("HEAD does not point to a branch".into());
                }
            },
            _ => name.strip_prefix(b"refs/heads/").unwrap_or(name).into(),
        };
        match mark {
            TrackingBranch::Upstream => self.upstream_of(branch.as_bstr()),
            TrackingBranch::Push => self.push_target_of(branch.as_bstr()),
        }
    }

    /// Returns the full name of the remote-tracking branch of the upstream of `branch`, which is a
    /// short name.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if the branch does not exist or has no upstream, or if the
    /// upstream has no remote-tracking branch.
    pub fn upstream_of(&self, branch: impl AsRef<[u8]>) -> Result<BString> {
        let branch = branch.as_ref().as_bstr();
        let config = self.config();
        let setting = |name: &str| config.raw(format!("branch.{branch}.{name}"));
        let fail = |message: String| Err(Error::new(ErrorKind::Reference, message));
        let (Some(remote), Some(merge)) = (setting("remote"), setting("merge")) else {
            let full = [b"refs/heads/", branch.as_bytes()].concat();
            if self
                .refs()
                .resolve(&full)?
                .is_none_or(|found| found.id.is_none())
            {
                return fail(format!("no such branch: '{branch}'"));
            }
            return fail(format!("no upstream configured for branch '{branch}'"));
        };
        if remote == "." {
            return Ok(merge.to_owned());
        }
        match self.tracking_reference(remote, merge) {
            Some(tracking) => Ok(tracking),
            None => fail(format!(
                "upstream branch '{merge}' not stored as a remote-tracking branch"
            )),
        }
    }

    /// Returns the remote-tracking branch for the ref `theirs` of `remote`, by the fetch refspecs of
    /// the remote.
    pub fn tracking_reference(&self, remote: &BStr, theirs: &BStr) -> Option<BString> {
        let config = self.config();
        config
            .strings(format!("remote.{remote}.fetch"))
            .find_map(|spec| apply_refspec(spec, theirs))
    }

    fn push_target_of(&self, branch: &BStr) -> Result<BString> {
        let config = self.config();
        let fail = |message: String| Err(Error::new(ErrorKind::Reference, message));
        let own = |name: &str| config.raw(format!("branch.{branch}.{name}"));
        let remote = own("pushremote")
            .or_else(|| config.raw("remote.pushdefault"))
            .or_else(|| own("remote"))
            .unwrap_or(b"origin".as_bstr());
        let full = BString::from([b"refs/heads/", branch.as_bytes()].concat());
        let tracked = |theirs: &BStr| match self.tracking_reference(remote, theirs) {
            Some(name) => Ok(name),
            None => Err(Error::new(
                ErrorKind::Reference,
                format!(
                    "push destination '{theirs}' on remote '{remote}' has no local tracking branch"
                ),
            )),
        };
        let mut pushes = config.strings(format!("remote.{remote}.push")).peekable();
        if pushes.peek().is_some() {
            return match pushes.find_map(|spec| apply_refspec(spec, full.as_bstr())) {
                Some(theirs) => tracked(theirs.as_bstr()),
                None => fail(format!(
                    "push refspecs for '{remote}' do not include '{branch}'"
                )),
            };
        }
        if config.bool_or(format!("remote.{remote}.mirror"), false)? {
            return tracked(full.as_bstr());
        }
        match config
            .raw("push.default")
            .map_or(&b"simple"[..], |value| value.as_bytes())
        {
            b"nothing" => fail("push has no destination (push.default is 'nothing')".into()),
            b"matching" | b"current" => tracked(full.as_bstr()),
            b"upstream" | b"tracking" => self.upstream_of(branch),
            _ => {
                let upstream = self.upstream_of(branch)?;
                let current = tracked(full.as_bstr())?;
                if upstream != current {
                    return fail("cannot resolve 'simple' push to a single destination".into());
                }
                Ok(current)
            }
        }
    }
}

/// Returns the destination to which the refspec maps `name`, if `name` matches its source.
fn apply_refspec(spec: &BStr, name: &BStr) -> Option<BString> {
    let spec = spec.strip_prefix(b"+").unwrap_or(spec);
    let colon = spec.position_of(b':');
    let (source, target) = match colon {
        Some(colon) => (&spec[..colon], &spec[colon + 1..]),
        None => (spec, spec),
    };
    match source.position_of(b'*') {
        None => {
            let is_same = source == name.as_bytes()
                || name
                    .strip_prefix(b"refs/heads/")
                    .is_some_and(|short| short == source);
            (is_same && !target.is_empty()).then(|| target.into())
        }
        Some(star) => {
            let rest = name.strip_prefix(&source[..star])?;
            let middle = rest.strip_suffix(&source[star + 1..])?;
            let at = target.position_of(b'*')?;
            Some([&target[..at], middle, &target[at + 1..]].concat().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refspecs_send_names_elsewhere() {
        let apply = |spec: &str, name: &str| {
            apply_refspec(spec.into(), name.into()).map(|name| name.to_string())
        };
        let wild = "+refs/heads/*:refs/remotes/o/*";
        assert_eq!(
            apply(wild, "refs/heads/a/b").as_deref(),
            Some("refs/remotes/o/a/b")
        );
        assert_eq!(apply(wild, "refs/tags/a"), None);
        let one = "refs/heads/a:refs/x";
        assert_eq!(apply(one, "refs/heads/a").as_deref(), Some("refs/x"));
        assert_eq!(apply("refs/heads/a:", "refs/heads/a"), None);
    }

    #[test]
    fn marks_are_read_in_any_case() {
        assert_eq!(mark(b"@{UPstream}x"), Some((TrackingBranch::Upstream, 11)));
        assert_eq!(mark(b"@{push}"), Some((TrackingBranch::Push, 7)));
        assert_eq!(mark(b"@{pull}"), None);
    }
}
