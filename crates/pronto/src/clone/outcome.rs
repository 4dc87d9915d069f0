//! The result of a clone.

use std::fmt;
use std::path::PathBuf;

use bstr::BString;
use pronto_hash::ObjectId;

use crate::checkout_tree;
use crate::{Error, Repository, Result, hooks};

/// The result of a clone.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// The repository.
    pub repository: Repository,
    /// The commit at which `HEAD` is detached, if it is.
    pub detached: Option<ObjectId>,
    /// Whether the checked out tree contains submodules.
    pub has_submodules: bool,
    /// Whether object files were linked or copied.
    pub was_local: bool,
    /// Warnings.
    pub warnings: Vec<Warning>,
    /// Optional reference repositories that do not exist, or are not local.
    pub missing_references: Vec<PathBuf>,
    /// The result of writing the files. Empty if none were written.
    pub checkout: checkout_tree::Outcome,
    /// The error that stopped the writing of files: a path is hostile, or an object is missing.
    pub checkout_error: Option<Error>,
    /// Whether files could not be checked out. The repository is complete nevertheless.
    pub checkout_failed: bool,
    /// The commit that was checked out.
    pub checked_out: Option<ObjectId>,
}

impl Outcome {
    /// Runs the hooks `post-index-change` and `post-checkout` if files were checked out. Returns the exit
    /// code of the latter, if it failed.
    ///
    /// # Errors
    /// A hook cannot be started.
    pub fn run_hooks(&self) -> Result<Option<i32>> {
        match self.checked_out {
            Some(id) if !self.checkout_failed => {
                tell_of_index(&self.repository)?;
                run_hook(&self.repository, id)
            }
            _ => Ok(None),
        }
    }
}

/// Runs the hook `post-index-change`: files were written, and no entry left out or taken in.
fn tell_of_index(repository: &Repository) -> Result<()> {
    let call = hooks::Call {
        arguments: vec!["1".as_ref(), "0".as_ref()],
        ..hooks::Call::default()
    };
    hooks::run(repository, "post-index-change", &call).map(|_| ())
}

fn run_hook(repository: &Repository, id: ObjectId) -> Result<Option<i32>> {
    let null = ObjectId::null(id.kind()).to_hex().to_string();
    let id = id.to_hex().to_string();
    let call = hooks::Call {
        arguments: vec![null.as_ref(), id.as_ref(), "1".as_ref()],
        ..hooks::Call::default()
    };
    let status = hooks::run(repository, "post-checkout", &call)?;
    Ok(status.filter(|&status| status != 0))
}

/// A warning of a clone. [`Display`](fmt::Display) gives Git's message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// The source is not a path, so that [`local`](super::Options::local) has no effect.
    LocalIgnored,
    /// The source is shallow, so that its files are not linked or copied.
    ShallowSource,
    /// This option of `git clone` has no effect if object files are linked or copied.
    OptionIgnored(&'static str),
    /// The source has no refs.
    EmptyRepository,
    /// There is no such directory of templates.
    MissingTemplates(PathBuf),
    /// `init.defaultRefFormat` is no known storage.
    UnknownRefStorage(BString),
    /// The `HEAD` of the source names a ref that does not exist, so that no files are written.
    DanglingHead,
    /// The object to check out is a tag of a commit.
    NotACommit {
        /// The ref or id by which it was requested.
        name: BString,
        /// The object.
        id: ObjectId,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Warning::LocalIgnored => "--local is ignored",
            Warning::ShallowSource => "source repository is shallow, ignoring --local",
            Warning::OptionIgnored(option) => {
                return write!(
                    f,
                    "{option} is ignored in local clones; use file:// instead."
                );
            }
            Warning::EmptyRepository => "You appear to have cloned an empty repository.",
            Warning::UnknownRefStorage(name) => {
                return write!(f, "unknown ref storage format '{name}'");
            }
            Warning::MissingTemplates(path) => {
                return write!(f, "templates not found in {}", path.display());
            }
            Warning::NotACommit { name, id } => {
                return write!(f, "{name} {id} is not a commit!");
            }
            Warning::DanglingHead => "remote HEAD refers to nonexistent ref, unable to checkout",
        })
    }
}
