//! The default refspecs of a push: `push.default`, and the configured refspecs of the remote
//! (`remote.NAME.push`).

use bstr::{BStr, BString, ByteSlice};

use super::matching::{Meant, local_refs, meant};
use super::{PushRemote, PushSpec};
use crate::remote::Remote;
use crate::{Error, ErrorKind, Repository, Result};

/// The values of `push.default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PushDefault {
    #[default]
    Unset,
    Nothing,
    Matching,
    Upstream,
    Simple,
    Current,
}

impl PushDefault {
    fn of(repository: &Repository) -> Result<Self> {
        let Some(value) = repository.config().string("push.default")? else {
            return Ok(PushDefault::Unset);
        };
        Ok(match value.as_bytes() {
            b"nothing" => PushDefault::Nothing,
            b"matching" => PushDefault::Matching,
            b"upstream" | b"tracking" => PushDefault::Upstream,
            b"simple" => PushDefault::Simple,
            b"current" => PushDefault::Current,
            _ => {
                let message = format!("malformed value for push.default: {value}");
                let hint = "must be one of nothing, matching, simple, upstream or current";
                return Err(Error::new(ErrorKind::ConfigValue, message).because(hint));
            }
        })
    }
}

/// The default refspecs of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultRefspecs {
    /// The refspecs.
    pub specs: Vec<PushSpec>,
    /// Whether the pushed branch becomes the upstream (`push.autoSetupRemote`).
    pub set_upstream: bool,
}

/// Returns the refspecs of a push without refspecs, by `push.default`.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] and Git's message if `HEAD` is detached, the branch lacks
/// a required upstream, or `push.default` is `nothing`, and with [`ErrorKind::ConfigValue`] if a
/// setting is malformed.
pub fn default_specs(
    repository: &Repository,
    destination: &PushRemote,
    set_upstream: bool,
) -> Result<DefaultRefspecs> {
    if !destination.push.is_empty() {
        return Ok(DefaultRefspecs {
            specs: destination.push.clone(),
            set_upstream,
        });
    }
    let push_default = PushDefault::of(repository)?;
    match push_default {
        PushDefault::Matching => {
            return Ok(DefaultRefspecs {
                specs: vec![PushSpec::parse(":".into())?],
                set_upstream,
            });
        }
        PushDefault::Nothing => {
            return fail(
                "You didn't specify any refspecs to push, and push.default is \"nothing\".",
            );
        }
        _ => {}
    }
    let head = repository.refs().head()?;
    let Some(short) = head.branch() else {
        return fail(format!(
            "You are not currently on a branch.\n\
             To push the history leading to the current (detached HEAD)\n\
             state now, use\n\n    \
             git push {} HEAD:<name-of-remote-branch>\n",
            destination.name
        ));
    };
    let branch = FollowingBranch::of(repository, short)?;
    let auto = repository.config().bool_or("push.autosetupremote", false)?;
    let same_remote = destination.name == branch.remote_or_default;
    let full: BString = [b"refs/heads/", short.as_bytes()].concat().into();
    let target = match push_default {
        PushDefault::Upstream if !same_remote => {
            return fail(format!(
                "You are pushing to remote '{}', which is not the upstream of\n\
                 your current branch '{short}', without telling me what to push\n\
                 to update which remote branch.",
                destination.name
            ));
        }
        PushDefault::Upstream => branch.upstream(destination, auto)?,
        PushDefault::Current => full.clone(),
        _ if !same_remote => full.clone(),
        _ => {
            let upstream = branch.upstream(destination, auto)?;
            if upstream != full {
                return differing(repository, destination, upstream.as_bstr(), push_default);
            }
            full.clone()
        }
    };
    let text: BString = [full.as_bytes(), b":", target.as_bytes()].concat().into();
    Ok(DefaultRefspecs {
        specs: vec![PushSpec::parse(text.as_bstr())?],
        set_upstream: set_upstream || auto && branch.merges.is_empty(),
    })
}

/// A branch with its configured upstream.
struct FollowingBranch<'a> {
    short: &'a BStr,
    remote: Option<BString>,
    remote_or_default: BString,
    merges: Vec<BString>,
}

impl<'a> FollowingBranch<'a> {
    fn of(repository: &Repository, short: &'a BStr) -> Result<Self> {
        let config = repository.config();
        let key =
            |variable: &str| [b"branch.", short.as_bytes(), b".", variable.as_bytes()].concat();
        let remote = config.string(key("remote"))?.map(BStr::to_owned);
        let remote_or_default = match &remote {
            Some(remote) => remote.clone(),
            None => Remote::default_name(repository)?,
        };
        let merges = config.strings(key("merge")).map(BStr::to_owned).collect();
        Ok(FollowingBranch {
            short,
            remote,
            remote_or_default,
            merges,
        })
    }

    /// Returns the full name of the upstream in the remote repository.
    fn upstream(&self, destination: &PushRemote, auto: bool) -> Result<BString> {
        let short = self.short;
        if self.merges.is_empty() && auto {
            return Ok([b"refs/heads/", short.as_bytes()].concat().into());
        }
        if self.merges.is_empty() || self.remote.is_none() {
            let advice = match auto {
                true => "",
                false => {
                    "\nTo have this happen automatically for branches without a tracking\n\
                     upstream, see 'push.autoSetupRemote' in 'git help config'.\n"
                }
            };
            return fail(format!(
                "The current branch {short} has no upstream branch.\n\
                 To push the current branch and set the remote as upstream, use\n\n    \
                 git push --set-upstream {} {short}\n{advice}",
                destination.name
            ));
        }
        match &self.merges[..] {
            [one] => Ok(one.clone()),
            _ => fail(format!(
                "The current branch {short} has multiple upstream branches, refusing to push."
            )),
        }
    }
}

/// Returns the error for `push.default=simple` if the upstream has another name than the branch.
fn differing<T>(
    repository: &Repository,
    destination: &PushRemote,
    upstream: &BStr,
    push_default: PushDefault,
) -> Result<T> {
    let name = &destination.name;
    let short = upstream.strip_prefix(b"refs/heads/").unwrap_or(upstream);
    let short = short.as_bstr();
    let permanent = match push_default {
        PushDefault::Unset => {
            "\nTo choose either option permanently, see push.default in 'git help config'.\n"
        }
        _ => "",
    };
    let setup = repository.config().raw("branch.autosetupmerge");
    let simple = match setup.map(|value| value.as_bytes()) {
        Some(b"simple") => "",
        _ => {
            "\nTo avoid automatically configuring an upstream branch when its name\n\
             won't match the local branch, see option 'simple' of branch.autoSetupMerge\n\
             in 'git help config'.\n"
        }
    };
    fail(format!(
        "The upstream branch of your current branch does not match\n\
         the name of your current branch.  To push to the upstream branch\n\
         on the remote, use\n\n    \
         git push {name} HEAD:{short}\n\n\
         To push to the branch of the same name on the remote, use\n\n    \
         git push {name} HEAD\n{permanent}{simple}"
    ))
}

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// Parses a refspec of the command line. If the refspec has no destination and names a single ref,
/// the destination is that of the remote's push refspecs or of `push.default=upstream`.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the refspec is malformed, and with
/// [`ErrorKind::ConfigValue`] if a setting is malformed.
pub fn expand_spec(
    repository: &Repository,
    destination: &PushRemote,
    text: &BStr,
) -> Result<PushSpec> {
    if text.contains(&b':') {
        return PushSpec::parse(text);
    }
    let needs_refs =
        !destination.push.is_empty() || PushDefault::of(repository)? == PushDefault::Upstream;
    if !needs_refs {
        return PushSpec::parse(text);
    }
    let local = local_refs(repository)?;
    let names = local.iter().map(|peer| peer.name.as_bstr());
    let Meant::One(at) = meant(text, names) else {
        return PushSpec::parse(text);
    };
    let Some(peer) = local.get(at) else {
        return PushSpec::parse(text);
    };
    for spec in destination.push.iter().filter(|spec| !spec.negative) {
        let mapped = match spec.is_pattern() {
            true => spec.expand(peer.name.as_bstr()),
            false if spec.source == peer.name => spec.destination.clone(),
            false => None,
        };
        if let Some(mapped) = mapped {
            return Ok(PushSpec {
                source: peer.name.clone(),
                destination: Some(mapped),
                force: spec.force,
                negative: false,
                matching: false,
            });
        }
    }
    if let Some(short) = peer.name.strip_prefix(b"refs/heads/")
        && PushDefault::of(repository)? == PushDefault::Upstream
    {
        let branch = FollowingBranch::of(repository, short.as_bstr())?;
        if let [one] = &branch.merges[..] {
            let text: BString = [text.as_bytes(), b":", one.as_bytes()].concat().into();
            return PushSpec::parse(text.as_bstr());
        }
    }
    PushSpec::parse(text)
}
