//! The walk over files, which status uses, too.

use super::Options;
use crate::status::{Converter, IgnoreSubmodules, SubmoduleInspector, Untracked, walk_options};
use crate::{Repository, Result};
use pronto_diff::DifferenceSide;
use pronto_index::{Index, mode};
use pronto_io::watch::Watch;
use pronto_worktree::ignore::Patterns;
use pronto_worktree::status::{ChangedFile, Outcome, StatusJob};

/// Returns the files that differ from the index.
pub(super) fn changed(
    repository: &Repository,
    index: &Index,
    options: &Options,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let work_tree = repository.require_work_tree()?;
    let converter = Converter::new(repository, repository.objects()?);
    let submodules = inspector(repository, options, watch)?;
    let mut walk_options = walk_options(repository)?;
    walk_options.untracked = Untracked::No;
    walk_options.stat_decides = true;
    let job = StatusJob {
        work_tree,
        git_dir: repository.git_dir(),
        index,
        pathspec: &options.pathspec,
        patterns: &Patterns::default(),
        ignore_files: None,
        conversion: &converter,
        submodules: &submodules,
        interrupt: watch.interrupt(),
        remembered: None,
        monitored: None,
        options: walk_options,
    };
    converter.walk(&job, None)
}

/// Returns an inspector of submodules. Untracked files in submodules do not count unless
/// configured.
pub(super) fn inspector<'a>(
    repository: &'a Repository,
    options: &Options,
    watch: &'a Watch<'a>,
) -> Result<SubmoduleInspector<'a>> {
    let work_tree = repository.work_tree().unwrap_or(repository.git_dir());
    let otherwise = IgnoreSubmodules::Untracked;
    let (general, untracked) = (options.ignore_submodules, Untracked::Normal);
    SubmoduleInspector::with(
        repository,
        work_tree.to_owned(),
        general,
        otherwise,
        untracked,
        watch,
    )
}

/// Returns the side of an existing file. Its object id is null, unless the file is a submodule at
/// the `recorded` commit.
pub(super) fn file_side(file: &ChangedFile, recorded: &DifferenceSide) -> DifferenceSide {
    let is_same = file.mode == mode::GITLINK
        && recorded.mode == mode::GITLINK
        && !file.submodule.is_clean()
        && !file.submodule.new_commits;
    DifferenceSide {
        mode: file.mode,
        id: match is_same {
            true => recorded.id,
            false => recorded.id.kind().null(),
        },
    }
}
