//! The advice after a rejected push (`advice.push*`).

use pronto::Repository;
use pronto::config::Config;
use pronto::push::{Outcome, PushStatus};

use crate::{CliError, Context};

/// The reasons for which refs were rejected.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rejections {
    current: bool,
    other: bool,
    already_exists: bool,
    fetch_first: bool,
    needs_force: bool,
    needs_update: bool,
}

impl Rejections {
    pub(super) fn of(repository: &Repository, outcome: &Outcome) -> Result<Self, CliError> {
        let head = repository.refs().resolve("HEAD")?;
        let head = head.filter(|head| head.id.is_some()).map(|head| head.name);
        let mut found = Rejections::default();
        for pushed in &outcome.refs {
            match pushed.status {
                PushStatus::RejectNonFastForward if head.as_ref() == Some(&pushed.name) => {
                    found.current = true;
                }
                PushStatus::RejectNonFastForward => found.other = true,
                PushStatus::RejectAlreadyExists => found.already_exists = true,
                PushStatus::RejectFetchFirst => found.fetch_first = true,
                PushStatus::RejectNeedsForce => found.needs_force = true,
                PushStatus::RejectRemoteUpdated => found.needs_update = true,
                _ => {}
            }
        }
        Ok(found)
    }

    /// Prints the advice about the most important reason, unless it is turned off.
    pub(super) fn advise(self, config: &Config, context: &mut Context) -> Result<(), CliError> {
        let (setting, advice) = if self.current {
            ("pushnonffcurrent", BEHIND)
        } else if self.other {
            ("pushnonffmatching", OTHER_BEHIND)
        } else if self.already_exists {
            ("pushalreadyexists", ALREADY_EXISTS)
        } else if self.fetch_first {
            ("pushfetchfirst", FETCH_FIRST)
        } else if self.needs_force {
            ("pushneedsforce", NEEDS_FORCE)
        } else if self.needs_update {
            ("pushrefneedsupdate", NEEDS_UPDATE)
        } else {
            return Ok(());
        };
        for name in [setting, "pushupdaterejected", "pushnonfastforward"] {
            if config.bool(format!("advice.{name}"))? == Some(false) {
                return Ok(());
            }
        }
        context.hint(advice);
        Ok(())
    }
}

const BEHIND: &str = "\
Updates were rejected because the tip of your current branch is behind
its remote counterpart. If you want to integrate the remote changes,
use 'git pull' before pushing again.
See the 'Note about fast-forwards' in 'git push --help' for details.";

const OTHER_BEHIND: &str = "\
Updates were rejected because a pushed branch tip is behind its remote
counterpart. If you want to integrate the remote changes, use 'git pull'
before pushing again.
See the 'Note about fast-forwards' in 'git push --help' for details.";

const FETCH_FIRST: &str = "\
Updates were rejected because the remote contains work that you do not
have locally. This is usually caused by another repository pushing to
the same ref. If you want to integrate the remote changes, use
'git pull' before pushing again.
See the 'Note about fast-forwards' in 'git push --help' for details.";

const ALREADY_EXISTS: &str = "Updates were rejected because the tag already exists in the remote.";

const NEEDS_FORCE: &str = "\
You cannot update a remote ref that points at a non-commit object,
or update a remote ref to make it point at a non-commit object,
without using the '--force' option.";

const NEEDS_UPDATE: &str = "\
Updates were rejected because the tip of the remote-tracking branch has
been updated since the last checkout. If you want to integrate the
remote changes, use 'git pull' before pushing again.
See the 'Note about fast-forwards' in 'git push --help' for details.";
