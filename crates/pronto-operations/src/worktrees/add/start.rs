//! The start of a new worktree: an existing branch or commit, or a new branch, which may have no commits yet.

use bstr::{BStr, BString, ByteSlice};

use super::{
    AddOptions, Branching, base_name, check_unborn, commit_named, existing_branch,
    invalid_reference,
};
use crate::{Error, ErrorKind, Repository, Result, switch};
use pronto_repository::Notice;

/// The meaning of the options.
#[derive(Default)]
pub(super) struct Start {
    /// The start of the branch, or the commit to check out.
    pub(super) start: BString,
    /// The branch to be made, and whether one may be moved.
    pub(super) new_branch: Option<(BString, bool)>,
    /// Whether the branch has no commits (`--orphan`, or because there are none).
    pub(super) orphan: bool,
}

/// Settles what `options` mean for a worktree that messages call `spoken`. Nothing is changed.
///
/// # Errors
/// A branch is checked out elsewhere, or a name means nothing.
pub(super) fn choose(
    repository: &Repository,
    options: &AddOptions,
    spoken: &BStr,
) -> Result<Start> {
    let mut chosen = Start {
        start: match &options.commit {
            None => BString::from("HEAD"),
            Some(commit) if commit == "-" => "@{-1}".into(),
            Some(commit) => commit.clone(),
        },
        ..Start::default()
    };
    match &options.branching {
        Branching::Detach | Branching::Guess => {}
        Branching::New(name) => chosen.new_branch = Some((name.clone(), false)),
        Branching::Force(name) => {
            if let Some(full) = existing_branch(repository, name.as_bstr())?
                && options.force == 0
            {
                repository.refuse_branch_in_use(full.as_bstr(), true)?;
            }
            chosen.new_branch = Some((name.clone(), true));
        }
        Branching::Orphan(name) => {
            let name = name.clone().unwrap_or_else(|| base_name(spoken));
            check_unborn(repository, name.as_bstr())?;
            chosen.new_branch = Some((name, false));
            chosen.orphan = true;
            return Ok(chosen);
        }
    }
    chosen.infer(repository, options, spoken)?;
    if !chosen.orphan && commit_named(repository, chosen.start.as_bstr())?.is_none() {
        if !options.quiet && options.commit.is_none() {
            advise_orphan(repository, options, spoken);
        }
        return Err(invalid_reference(chosen.start.as_bstr()));
    }
    Ok(chosen)
}

impl Start {
    /// Finds what was not said: the branch, its start, and whether it has any commits.
    fn infer(
        &mut self,
        repository: &Repository,
        options: &AddOptions,
        spoken: &BStr,
    ) -> Result<()> {
        match (&options.branching, &options.commit) {
            (Branching::Detach, _) => {
                if self.start == "HEAD" {
                    has_local_refs(repository, options)?;
                }
            }
            (Branching::Guess, None) => {
                let name = base_name(spoken);
                if existing_branch(repository, name.as_bstr())?.is_some() {
                    self.start = name;
                    return Ok(());
                }
                let remote = match options.guess_remote {
                    true => switch::remote_branches_named(repository, name.as_bstr())?.chosen,
                    false => None,
                };
                self.new_branch = Some((name, false));
                match remote {
                    Some(remote) => self.start = remote,
                    None => self.orphan = is_orphan(repository, options, true)?,
                }
            }
            (_, None) => self.orphan = is_orphan(repository, options, false)?,
            (_, Some(_)) => {
                if commit_named(repository, self.start.as_bstr())?.is_none()
                    && let Some(remote) =
                        switch::remote_branches_named(repository, self.start.as_bstr())?.chosen
                {
                    let may_move = self.new_branch.as_ref().is_some_and(|(_, force)| *force);
                    let name = std::mem::replace(&mut self.start, remote);
                    self.new_branch = Some((name, may_move));
                }
                if self.start == "HEAD" {
                    has_local_refs(repository, options)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether a branch can start at a local ref. Reports a `HEAD` that points to none.
fn has_local_refs(repository: &Repository, options: &AddOptions) -> Result<bool> {
    if repository.refs().id_of("HEAD")?.is_some() {
        return Ok(true);
    }
    let has_branches = !repository.refs().all("refs/heads/")?.is_empty();
    if has_branches && !options.quiet {
        repository.notify(Notice::InvalidHead);
    }
    Ok(has_branches)
}

/// Whether a branch can start at a ref of a remote.
///
/// # Errors
/// There is a remote from which nothing was fetched.
fn has_remote_refs(repository: &Repository, options: &AddOptions) -> Result<bool> {
    if !options.guess_remote {
        return Ok(false);
    }
    if !repository.refs().all("refs/remotes/")?.is_empty() {
        return Ok(true);
    }
    let config = repository.config();
    let has_url = |name: &&BStr| config.contains([b"remote.", name.as_bytes(), b".url"].concat());
    let names: Vec<&BStr> = config.subsections("remote");
    let mut names = names.into_iter().filter(has_url);
    let first = names.next();
    let has_default = first.is_some_and(|first| {
        let mut others = names.by_ref().peekable();
        first == "origin" || others.peek().is_none() || others.any(|name| name == "origin")
    });
    if options.force == 0 && has_default {
        let message = "No local or remote refs exist despite at least one remote\n\
                       present, stopping; use 'add -f' to override or fetch a remote first";
        return Err(Error::new(ErrorKind::Refused, message));
    }
    Ok(false)
}

/// Whether the new branch has no commits, because there are none that it could start at.
///
/// # Errors
/// Other options contradict.
fn is_orphan(repository: &Repository, options: &AddOptions, remote: bool) -> Result<bool> {
    if has_local_refs(repository, options)? || (remote && has_remote_refs(repository, options)?) {
        return Ok(false);
    }
    if !options.quiet {
        repository.notify(Notice::OrphanInferred);
    }
    let other = match (options.tracking.is_some(), options.no_checkout) {
        (true, _) => "--track",
        (_, true) => "--no-checkout",
        _ => return Ok(true),
    };
    let message = format!("options '--orphan' and '{other}' cannot be used together");
    Err(Error::new(ErrorKind::InvalidInput, message))
}

/// Advises the option `--orphan`, unless the user does not want to hear it.
fn advise_orphan(repository: &Repository, options: &AddOptions, spoken: &BStr) {
    let wanted = repository.advice("worktreeaddorphan");
    let wanted = wanted.unwrap_or_default();
    let branch = match &options.branching {
        Branching::New(name) | Branching::Force(name) => Some(name.clone()),
        _ => None,
    };
    if wanted != Some(false) {
        repository.notify(Notice::AdviseOrphan {
            branch,
            place: spoken.to_owned(),
            is_decided: wanted.is_some(),
        });
    }
}
