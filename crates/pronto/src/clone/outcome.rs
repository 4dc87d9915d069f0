//! The result of a clone.

use std::fmt;
use std::path::PathBuf;

use bstr::BString;
use pronto_hash::ObjectId;

use crate::checkout_tree;
use crate::{Error, ErrorKind, Repository, Result, hooks};

/// The result of a clone.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// The new repository.
    pub repository: Repository,
    /// The commit at which `HEAD` is detached; `None` if `HEAD` points to a branch.
    pub detached: Option<ObjectId>,
    /// Whether the checked out tree contains submodules.
    pub has_submodules: bool,
    /// Whether object files were linked or copied.
    pub was_local: bool,
    /// The warnings, in order.
    pub warnings: Vec<CloneWarning>,
    /// Reference repositories of `--reference-if-able` that do not exist or are not local.
    pub missing_references: Vec<PathBuf>,
    /// The result of the checkout. Empty if no files were written.
    pub checkout: checkout_tree::Outcome,
    /// The error that stopped the checkout: a path is unsafe, or an object is missing.
    pub checkout_error: Option<Error>,
    /// Whether the checkout failed. The repository itself is complete.
    pub checkout_failed: bool,
    /// The commit that was checked out.
    pub checked_out: Option<ObjectId>,
}

impl Outcome {
    /// Returns the outcome if all files could be checked out, and otherwise the reason of the first
    /// failure as an error. The repository is complete even then.
    ///
    /// # Errors
    /// Fails with the kind of the error of the first file that could not be written, or with
    /// [`ErrorKind::Hostile`] or [`ErrorKind::MissingObject`] if no file could be written.
    pub fn into_result(mut self) -> Result<Self> {
        if let Some(error) = self.checkout_error {
            return Err(error);
        }
        self.checkout = self.checkout.into_result()?;
        match self.checkout_failed {
            false => Ok(self),
            true => Err(Error::new(ErrorKind::Worktree, "the checkout failed")),
        }
    }

    /// Runs the hooks `post-index-change` and `post-checkout` if files were checked out. Returns
    /// the exit code of `post-checkout` if that hook failed.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Hook` if a hook cannot be started.
    pub fn run_hooks(&self) -> Result<Option<i32>> {
        match self.checked_out {
            Some(id) if !self.checkout_failed => {
                run_post_index_change(&self.repository)?;
                run_hook(&self.repository, id)
            }
            _ => Ok(None),
        }
    }
}

/// Runs the hook `post-index-change` with the arguments for a written index: the worktree was
/// updated, and no skip-worktree bit changed.
fn run_post_index_change(repository: &Repository) -> Result<()> {
    let call = hooks::HookCall {
        arguments: vec!["1".as_ref(), "0".as_ref()],
        ..hooks::HookCall::default()
    };
    hooks::run(repository, "post-index-change", &call).map(|_| ())
}

fn run_hook(repository: &Repository, id: ObjectId) -> Result<Option<i32>> {
    let null = ObjectId::null(id.kind()).to_hex().to_string();
    let id = id.to_hex().to_string();
    let call = hooks::HookCall {
        arguments: vec![null.as_ref(), id.as_ref(), "1".as_ref()],
        ..hooks::HookCall::default()
    };
    let status = hooks::run(repository, "post-checkout", &call)?;
    Ok(status.filter(|&status| status != 0))
}

/// A warning of a clone. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloneWarning {
    /// The source is a URL, so that [`local`](super::Options::local) has no effect.
    LocalIgnored,
    /// The source is shallow, so that its files are not linked or copied.
    ShallowSource,
    /// This option of `git clone` has no effect if object files are linked or copied.
    OptionIgnored(&'static str),
    /// The source has no refs.
    EmptyRepository,
    /// The template directory does not exist.
    MissingTemplates(PathBuf),
    /// The value of `init.defaultRefFormat` is not a known ref storage format.
    UnknownRefStorage(BString),
    /// The `HEAD` of the source names a ref that does not exist, so that no files are written.
    DanglingHead,
    /// The object to check out is a tag of a commit.
    NotACommit {
        /// The ref or object id that was requested.
        name: BString,
        /// The id of the tag object.
        id: ObjectId,
    },
}

impl fmt::Display for CloneWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CloneWarning::LocalIgnored => "--local is ignored",
            CloneWarning::ShallowSource => "source repository is shallow, ignoring --local",
            CloneWarning::OptionIgnored(option) => {
                return write!(
                    f,
                    "{option} is ignored in local clones; use file:// instead."
                );
            }
            CloneWarning::EmptyRepository => "You appear to have cloned an empty repository.",
            CloneWarning::UnknownRefStorage(name) => {
                return write!(f, "unknown ref storage format '{name}'");
            }
            CloneWarning::MissingTemplates(path) => {
                return write!(f, "templates not found in {}", path.display());
            }
            CloneWarning::NotACommit { name, id } => {
                return write!(f, "{name} {id} is not a commit!");
            }
            CloneWarning::DanglingHead => {
                "remote HEAD refers to nonexistent ref, unable to checkout"
            }
        })
    }
}
