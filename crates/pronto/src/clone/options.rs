//! The options of a clone.

use std::path::PathBuf;

use bstr::BString;
use pronto_wire::fetch::Deepen;

use crate::remote::connection::Settings;
use crate::repository::RefStorage;

/// Options of a clone. The default is `git clone` without options.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Whether the repository has no worktree.
    pub bare: bool,
    /// Whether all refs keep their names, also in later fetches; implies `bare`.
    pub mirror: bool,
    /// Whether files are checked out.
    pub checkout: bool,
    /// The branch or tag to check out.
    pub branch: Option<BString>,
    /// Fetches only this ref or commit, and detaches `HEAD` there.
    pub revision: Option<BString>,
    /// The name of the remote.
    pub origin: Option<BString>,
    /// The limits of a shallow history.
    pub deepen: Deepen,
    /// Whether only one branch is fetched. The default is true for a shallow clone.
    pub single_branch: Option<bool>,
    /// Whether tags are fetched.
    pub tags: bool,
    /// Whether only files at the top are checked out.
    pub sparse: bool,
    /// The filter of a partial clone.
    pub filter: Option<BString>,
    /// Local repositories that become alternates (`--reference`, `--reference-if-able`).
    pub references: Vec<ReferenceRepository>,
    /// Whether the objects of a local repository are used in place instead of copied.
    pub shared: bool,
    /// Whether object files of a local repository are linked or copied.
    pub local: Option<bool>,
    /// Whether these files may be hard links.
    pub hardlinks: bool,
    /// Settings for the new repository, `key=value`.
    pub config: Vec<BString>,
    /// The directory of templates; an empty path means none.
    pub template: Option<PathBuf>,
    /// The directory for the repository, if it is not in the worktree.
    pub separate_git_dir: Option<PathBuf>,
    /// The storage of refs. The default comes from environment and configuration, and is files
    /// otherwise.
    pub ref_storage: Option<RefStorage>,
    /// Whether a shallow source is refused.
    pub reject_shallow: Option<bool>,
    /// Settings of the connection.
    pub settings: Settings,
    /// The address of a bundle, or of a list of bundles, to start from.
    pub bundle_uri: Option<BString>,
    /// Values for the hooks of the other side.
    pub server_options: Vec<BString>,
    /// Whether progress is shown; if not, the other side need not send its own.
    pub show_progress: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            bare: false,
            mirror: false,
            checkout: true,
            branch: None,
            revision: None,
            origin: None,
            deepen: Deepen::default(),
            single_branch: None,
            tags: true,
            sparse: false,
            filter: None,
            references: Vec::new(),
            shared: false,
            local: None,
            hardlinks: true,
            config: Vec::new(),
            template: None,
            separate_git_dir: None,
            ref_storage: None,
            reject_shallow: None,
            settings: Settings::default(),
            bundle_uri: None,
            server_options: Vec::new(),
            show_progress: false,
        }
    }
}

impl Options {
    pub(super) fn is_bare(&self) -> bool {
        self.bare || self.mirror
    }

    pub(super) fn takes_one_branch(&self) -> bool {
        self.single_branch.unwrap_or(!self.deepen.is_none()) && self.revision.is_none()
    }

    pub(super) fn takes_tags(&self) -> bool {
        // As in Git, all tags come where one branch of several is checked out by name.
        let by_name = self.branch.is_some() && !self.takes_one_branch();
        (self.tags || by_name) && !self.mirror && self.revision.is_none()
    }
}

/// A local repository whose objects a clone may use in place (`--reference`).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReferenceRepository {
    /// The path of the repository.
    pub path: PathBuf,
    /// Whether the clone fails without the repository: true for `--reference`, false for
    /// `--reference-if-able`.
    pub is_required: bool,
}

impl ReferenceRepository {
    /// Names the repository at `path`.
    pub fn new(path: impl Into<PathBuf>, is_required: bool) -> Self {
        ReferenceRepository {
            path: path.into(),
            is_required,
        }
    }
}
