//! Creates branches, and configures their upstream.

use std::fmt;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use super::SwitchTarget;
use super::remotes;
use crate::config::edit;
use crate::refs::{ExpectedValue, name};
use crate::{Error, ErrorKind, Repository, Result};

/// A branch to create.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewBranch {
    /// The name of the branch, without `refs/heads/`.
    pub name: BString,
    /// Reset the branch if it exists (`--force-create`, `-C`).
    pub force: bool,
    /// Create an unborn branch (`--orphan`).
    pub orphan: bool,
    /// Create a reflog for the branch even if the configuration disables reflogs (`-l`).
    pub log: bool,
    /// The upstream to configure (`--track`, `--no-track`).
    pub tracking: Tracking,
}

/// Whether the starting point becomes the upstream of a new branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// `branch.autoSetupMerge` decides.
    #[default]
    Configured,
    /// No upstream is configured (`--no-track`).
    Never,
    /// The starting point becomes the upstream (`--track`, `--track=direct`).
    Direct,
}

/// The policy for configuring an upstream: a value of `branch.autoSetupMerge`, or the caller's
/// choice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AutoSetupMerge {
    Never,
    /// Configure an upstream if the starting point is a remote-tracking branch (`true`).
    Remote,
    /// Configure an upstream if the starting point is a remote-tracking branch of the same name
    /// (`simple`).
    Simple,
    Always,
    /// The user requested an upstream.
    Explicit,
}

/// The starting point of a branch.
pub(crate) struct Point<'a> {
    /// The name that the user gave.
    pub(crate) name: &'a BStr,
    /// The full name of the ref that was named, if it may become the upstream.
    pub(crate) reference: Option<&'a BStr>,
    /// The commit.
    pub(crate) commit: ObjectId,
}

/// The upstream to configure for a new branch.
struct Followed {
    remote: BString,
    /// The full name of the upstream branch in the remote repository.
    branch: BString,
}

/// The result of configuring an upstream. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamSetup {
    /// The upstream was configured.
    Configured {
        /// The name of the new branch, without `refs/heads/`.
        branch: BString,
        /// The remote of the upstream; `None` for a branch of this repository.
        remote: Option<BString>,
        /// The name of the upstream in its repository, without `refs/heads/`.
        upstream: BString,
        /// Whether a pull rebases the branch.
        rebase: bool,
    },
    /// The branch would be its own upstream, so that no upstream was configured.
    OwnUpstream {
        /// The name of the branch, without `refs/heads/`.
        branch: BString,
    },
}

impl fmt::Display for UpstreamSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (branch, remote, upstream, rebase) = match self {
            UpstreamSetup::OwnUpstream { branch } => {
                return write!(f, "not setting branch '{branch}' as its own upstream");
            }
            UpstreamSetup::Configured {
                branch,
                remote,
                upstream,
                rebase,
            } => (branch, remote, upstream, rebase),
        };
        write!(f, "branch '{branch}' set up to track '")?;
        if let Some(remote) = remote {
            write!(f, "{remote}/")?;
        }
        let how = if *rebase { " by rebasing" } else { "" };
        write!(f, "{upstream}'{how}.")
    }
}

impl NewBranch {
    /// Returns the full name of the branch.
    pub fn full_name(&self) -> BString {
        [b"refs/heads/", self.name.as_slice()].concat().into()
    }
}

/// Returns the error for an invalid branch name `name`, with the advice of `advice.refSyntax`.
///
/// # Errors
/// Fails if the setting is not a boolean.
pub(crate) fn invalid_name(repository: &Repository, name: &BStr, kind: ErrorKind) -> Result<Error> {
    let error = Error::new(kind, format!("'{name}' is not a valid branch name"));
    let advice = "See 'git help check-ref-format'";
    let how = "Disable this message with \"git config set advice.refSyntax false\"";
    Ok(match repository.advice("refsyntax")? {
        Some(false) => error,
        Some(true) => error.with_hint(advice),
        None => error.with_hint(format!("{advice}\n{how}")),
    })
}

/// Checks the name and options of a new branch.
pub(super) fn check_new_branch(repository: &Repository, create: &NewBranch) -> Result<()> {
    let full = create.full_name();
    let valid = !create.name.starts_with(b"-")
        && create.name != "HEAD"
        && name::is_valid(full.as_bstr(), name::Form::Full);
    if !valid {
        return Err(invalid_name(
            repository,
            create.name.as_bstr(),
            ErrorKind::InvalidInput,
        )?);
    }
    if !create.force && repository.refs().id_of(&full)?.is_some() {
        let message = format!("a branch named '{}' already exists", create.name);
        return Err(Error::new(ErrorKind::Reference, message));
    }
    if tracking_policy(repository, create.tracking)? == AutoSetupMerge::Explicit
        && matches!(create.tracking, Tracking::Direct)
        && create.orphan
    {
        let message = "'--orphan' cannot be used with '-t'";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Creates or resets the branch, and configures its upstream. Returns the configured upstream.
pub(super) fn create_branch(
    repository: &Repository,
    create: &NewBranch,
    at: &SwitchTarget,
) -> Result<Option<UpstreamSetup>> {
    let Some(commit) = at.commit else {
        return Ok(None);
    };
    let explicit = tracking_policy(repository, create.tracking)? == AutoSetupMerge::Explicit;
    let reference = at
        .reference
        .as_ref()
        .filter(|_| at.name != "HEAD" || explicit);
    let point = Point {
        name: at.name.as_bstr(),
        reference: reference.map(|reference| reference.as_bstr()),
        commit,
    };
    if is_ambiguous(repository, point.name)? {
        // Git resolves the name a second time, and warns again.
        repository.warn_of_ambiguity(point.name);
    }
    create_branch_at(repository, create, &point)
}

/// Returns whether `name` is an ambiguous ref name and the user wants warnings about that
/// (`core.warnAmbiguousRefs`).
fn is_ambiguous(repository: &Repository, name: &BStr) -> Result<bool> {
    let found = repository.find_reference(name).ok().flatten();
    Ok(found.is_some_and(|found| found.is_ambiguous) && repository.warns_of_ambiguity()?)
}

/// Creates or resets the branch, and configures its upstream. Returns the configured upstream.
pub(crate) fn create_branch_at(
    repository: &Repository,
    create: &NewBranch,
    at: &Point<'_>,
) -> Result<Option<UpstreamSetup>> {
    let commit = at.commit;
    if is_ambiguous(repository, at.name)? {
        let message = format!("ambiguous object name: '{}'", at.name);
        return Err(Error::new(ErrorKind::Ambiguous, message));
    }
    let full = create.full_name();
    let policy = tracking_policy(repository, create.tracking)?;
    let followed = match at.reference {
        Some(reference) => followed(repository, reference, policy, create)?,
        None if policy == AutoSetupMerge::Explicit => {
            let message = format!(
                "cannot set up tracking information; starting point '{}' is not a branch",
                at.name
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        None => None,
    };
    let exists = repository.refs().id_of(&full)?.is_some();
    let verb = if exists { "Reset to" } else { "Created from" };
    let mut transaction = repository.transaction();
    let message = format!("branch: {verb} {}", at.name);
    transaction.push(crate::refs::Edit {
        name: full,
        change: crate::refs::RefChangeKind::Set(crate::refs::RefTarget::Object(commit)),
        expected: ExpectedValue::Anything,
        message: Some(message.into()),
        follow: true,
        create_log: create.log,
        peeled: None,
        log_from: None,
    });
    transaction.commit()?;
    match followed {
        Some(followed) => set_up_following(repository, create.name.as_bstr(), &followed).map(Some),
        None => Ok(None),
    }
}

/// Checks that pronto supports the configuration for new branches.
///
/// # Errors
/// Fails with [`Unsupported`](ErrorKind::Unsupported) for `branch.autoSetupMerge=inherit`, and with
/// [`ErrorKind::Config`] if a setting is malformed.
pub(crate) fn check_tracking(repository: &Repository, tracking: Tracking) -> Result<()> {
    tracking_policy(repository, tracking).map(|_| ())
}

fn tracking_policy(repository: &Repository, tracking: Tracking) -> Result<AutoSetupMerge> {
    match tracking {
        Tracking::Never => return Ok(AutoSetupMerge::Never),
        Tracking::Direct => return Ok(AutoSetupMerge::Explicit),
        Tracking::Configured => {}
    }
    let key = "branch.autosetupmerge";
    Ok(
        match repository.config().raw(key).map(|value| value.as_bytes()) {
            Some(b"always") => AutoSetupMerge::Always,
            Some(b"simple") => AutoSetupMerge::Simple,
            Some(b"inherit") => {
                let message = "branch.autoSetupMerge=inherit is not implemented natively";
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            _ if repository.config().bool_or(key, true)? => AutoSetupMerge::Remote,
            _ => AutoSetupMerge::Never,
        },
    )
}

fn followed(
    repository: &Repository,
    reference: &BStr,
    policy: AutoSetupMerge,
    create: &NewBranch,
) -> Result<Option<Followed>> {
    if policy == AutoSetupMerge::Never {
        return Ok(None);
    }
    let sources = remotes::remote_sources(repository, reference);
    match sources.as_slice() {
        [(remote, branch)] => {
            let short = branch.strip_prefix(b"refs/heads/").unwrap_or(branch);
            if policy == AutoSetupMerge::Simple && short != create.name.as_bytes() {
                return Ok(None);
            }
            Ok(Some(Followed {
                remote: remote.clone(),
                branch: branch.clone(),
            }))
        }
        [] if matches!(policy, AutoSetupMerge::Always | AutoSetupMerge::Explicit) => {
            if !reference.starts_with(b"refs/heads/") {
                if policy == AutoSetupMerge::Always {
                    return Ok(None);
                }
                let message = format!(
                    "cannot set up tracking information; starting point '{reference}' is not \
                     a branch"
                );
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            let remote = ".".into();
            let branch = reference.to_owned();
            Ok(Some(Followed { remote, branch }))
        }
        [] => Ok(None),
        _ => {
            let message = format!("not tracking: ambiguous information for ref '{reference}'");
            Err(Error::new(ErrorKind::Ambiguous, message))
        }
    }
}

/// Makes `branch` (a full name) of `remote` the upstream of the branch `name`.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if the configuration cannot be written.
pub fn set_upstream(
    repository: &Repository,
    name: &BStr,
    remote: &BStr,
    branch: &BStr,
) -> Result<UpstreamSetup> {
    let followed = Followed {
        remote: remote.to_owned(),
        branch: branch.to_owned(),
    };
    set_up_following(repository, name, &followed)
}

fn set_up_following(
    repository: &Repository,
    name: &BStr,
    followed: &Followed,
) -> Result<UpstreamSetup> {
    let short = followed
        .branch
        .strip_prefix(b"refs/heads/")
        .unwrap_or(&followed.branch);
    let short = short.as_bstr();
    let is_local = followed.remote == ".";
    if is_local && short == name {
        return Ok(UpstreamSetup::OwnUpstream {
            branch: name.to_owned(),
        });
    }
    let rebase = match repository
        .config()
        .raw("branch.autosetuprebase")
        .map(|value| value.as_bytes())
    {
        Some(b"always") => true,
        Some(b"local") => is_local,
        Some(b"remote") => !is_local,
        _ => false,
    };
    let file = repository.common_dir().join("config");
    let key = |variable: &str| BString::from(format!("branch.{name}.{variable}"));
    let set = |document: &mut edit::Document, variable: &str, value: &BStr| {
        let key = key(variable);
        document
            .set(key.as_bstr(), value, true, |_| true)
            .map_err(|_| Error::new(ErrorKind::Config, format!("cannot set {key}")))
    };
    let display_path = repository.display_path(&file);
    let config = repository.config();
    edit::edit_file(
        &file,
        crate::path::as_bytes(&display_path),
        config,
        |document| {
            set(document, "remote", followed.remote.as_bstr())?;
            // As in Git, the value is moved to the end of the section, even if it replaces another one.
            let _ = document.unset(key("merge").as_bstr(), true, |_| true);
            set(document, "merge", followed.branch.as_bstr())?;
            if rebase {
                set(document, "rebase", b"true".as_bstr())?;
            }
            Ok(())
        },
    )
    .map_err(|error| not_written(followed, &error))?;
    Ok(UpstreamSetup::Configured {
        branch: name.to_owned(),
        remote: (!is_local).then(|| followed.remote.clone()),
        upstream: short.to_owned(),
        rebase,
    })
}

/// Returns the error for an upstream that cannot be configured because of `error`.
fn not_written(followed: &Followed, error: &Error) -> Error {
    let remote = match followed.remote == "." {
        true => String::new(),
        false => format!("{}/", followed.remote),
    };
    let branch = &followed.branch;
    Error::new(
        ErrorKind::Config,
        "unable to write upstream branch configuration",
    )
    .reported_after(error.to_string())
    .with_hint(format!(
        "\nAfter fixing the error cause you may try to fix up\nthe remote tracking information by invoking:\n  \
         git branch --set-upstream-to={remote}{branch}"
    ))
}
