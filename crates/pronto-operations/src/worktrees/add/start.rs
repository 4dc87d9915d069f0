//! Determines the starting point of a new worktree: an existing branch or commit, or a new branch,
//! which may be unborn.

use bstr::{BStr, BString, ByteSlice};

use super::{
    AddWorktreeOptions, Branching, base_name, check_unborn, commit_named, existing_branch,
    invalid_reference,
};
use crate::{Error, ErrorKind, Repository, Result, switch};
use pronto_repository::Notice;

/// The resolved starting point.
#[derive(Default)]
pub(super) struct AddMeaning {
    /// The starting point of the branch, or the commit to check out.
    pub(super) start: BString,
    /// The branch to create, and whether an existing branch may be reset.
    pub(super) new_branch: Option<(BString, bool)>,
    /// Whether the branch is unborn (`--orphan`, or because there are no commits).
    pub(super) orphan: bool,
}

/// Resolves the starting point of `options`. `display_path` is the path in messages. Changes nothing.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] or [`ErrorKind::Refused`] if options contradict each
/// other or a branch is checked out in another worktree, and with other kinds if a name cannot be
/// resolved.
pub(super) fn choose(
    repository: &Repository,
    options: &AddWorktreeOptions,
    display_path: &BStr,
) -> Result<AddMeaning> {
    let mut chosen = AddMeaning {
        start: match &options.commit {
            None => BString::from("HEAD"),
            Some(commit) if commit == "-" => "@{-1}".into(),
            Some(commit) => commit.clone(),
        },
        ..AddMeaning::default()
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
            let name = name.clone().unwrap_or_else(|| base_name(display_path));
            check_unborn(repository, name.as_bstr())?;
            chosen.new_branch = Some((name, false));
            chosen.orphan = true;
            return Ok(chosen);
        }
    }
    chosen.infer(repository, options, display_path)?;
    if !chosen.orphan && commit_named(repository, chosen.start.as_bstr())?.is_none() {
        if !options.quiet && options.commit.is_none() {
            advise_orphan(repository, options, display_path);
        }
        return Err(invalid_reference(chosen.start.as_bstr()));
    }
    Ok(chosen)
}

impl AddMeaning {
    /// Infers the unspecified parts: the branch, its starting point, and whether the branch is
    /// unborn.
    fn infer(
        &mut self,
        repository: &Repository,
        options: &AddWorktreeOptions,
        display_path: &BStr,
    ) -> Result<()> {
        match (&options.branching, &options.commit) {
            (Branching::Detach, _) => {
                if self.start == "HEAD" {
                    has_local_refs(repository, options)?;
                }
            }
            (Branching::Guess, None) => {
                let name = base_name(display_path);
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

/// Whether there are local refs at which a branch can start. Reports a `HEAD` that points to a
/// missing ref.
fn has_local_refs(repository: &Repository, options: &AddWorktreeOptions) -> Result<bool> {
    if repository.refs().id_of("HEAD")?.is_some() {
        return Ok(true);
    }
    let has_branches = !repository.refs().all("refs/heads/")?.is_empty();
    if has_branches && !options.quiet {
        repository.notify(Notice::InvalidHead);
    }
    Ok(has_branches)
}

/// Whether there are remote-tracking refs at which a branch can start.
///
/// # Errors
/// Fails with [`ErrorKind::Refused`] if there is a remote from which nothing was fetched.
fn has_remote_refs(repository: &Repository, options: &AddWorktreeOptions) -> Result<bool> {
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

/// Whether the new branch is unborn, because there is no commit to start at.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if other options contradict that.
fn is_orphan(repository: &Repository, options: &AddWorktreeOptions, remote: bool) -> Result<bool> {
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

/// Sends the advice to use `--orphan`, unless `advice.worktreeAddOrphan` is off.
fn advise_orphan(repository: &Repository, options: &AddWorktreeOptions, display_path: &BStr) {
    let wanted = repository.advice("worktreeaddorphan");
    let wanted = wanted.unwrap_or_default();
    let branch = match &options.branching {
        Branching::New(name) | Branching::Force(name) => Some(name.clone()),
        _ => None,
    };
    if wanted != Some(false) {
        repository.notify(Notice::AdviseOrphan {
            branch,
            place: display_path.to_owned(),
            is_decided: wanted.is_some(),
        });
    }
}
