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
    /// Make a bare repository, without a worktree (`--bare`).
    pub bare: bool,
    /// Copy all refs under their own names, now and in later fetches (`--mirror`). Implies `bare`.
    pub mirror: bool,
    /// Check out `HEAD` after the clone. False means `--no-checkout`.
    pub checkout: bool,
    /// The branch or tag to check out instead of the remote `HEAD` (`--branch`).
    pub branch: Option<BString>,
    /// The only ref or commit to fetch. `HEAD` is detached at it (`--revision`).
    pub revision: Option<BString>,
    /// The name of the new remote (`--origin`, `clone.defaultRemoteName`).
    pub origin: Option<BString>,
    /// The limits of a shallow clone (`--depth`, `--shallow-since`, `--shallow-exclude`).
    pub deepen: Deepen,
    /// Fetch only one branch (`--single-branch`). The default is true for a shallow clone.
    pub single_branch: Option<bool>,
    /// Fetch tags. False means `--no-tags`.
    pub tags: bool,
    /// Check out only the files of the top directory (`--sparse`).
    pub sparse: bool,
    /// The object filter of a partial clone (`--filter`).
    pub filter: Option<BString>,
    /// Local repositories that become alternates (`--reference`, `--reference-if-able`).
    pub references: Vec<ReferenceRepository>,
    /// Whether the objects of a local repository are used in place instead of copied.
    pub shared: bool,
    /// Link or copy the object files of a local repository instead of fetching a pack (`--local`,
    /// `--no-local`). Unset, this is done if the source is a path.
    pub local: Option<bool>,
    /// Use hard links for the object files of a local repository. False means `--no-hardlinks`.
    pub hardlinks: bool,
    /// Settings for the new repository, as `key=value` (`--config`).
    pub config: Vec<BString>,
    /// The template directory (`--template`). An empty path means no templates.
    pub template: Option<PathBuf>,
    /// The path of the git directory, if it is outside of the worktree (`--separate-git-dir`).
    pub separate_git_dir: Option<PathBuf>,
    /// The ref storage format (`--ref-format`). Unset, the environment (`GIT_DEFAULT_REF_FORMAT`)
    /// and the configuration (`init.defaultRefFormat`) decide; otherwise the format is `files`.
    pub ref_storage: Option<RefStorage>,
    /// Refuse to clone a shallow repository (`--reject-shallow`). Unset, `clone.rejectShallow`
    /// decides.
    pub reject_shallow: Option<bool>,
    /// The settings of the connection, such as `--upload-pack`.
    pub settings: Settings,
    /// The URL of a bundle or a bundle list to download first (`--bundle-uri`).
    pub bundle_uri: Option<BString>,
    /// Protocol-specific values for the server (`--server-option`).
    pub server_options: Vec<BString>,
    /// Show progress (`--progress`). If false, the server is asked not to send its own progress
    /// (`--quiet`).
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
        // As in Git, all tags are fetched if a branch is named without `--single-branch`.
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
