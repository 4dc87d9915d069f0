//! Plans the fetches of submodules after a fetch of their superproject.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_index::mode::GITLINK;
use pronto_io::watch::Watch;
use pronto_worktree::pathspec::{Pathspec, PathspecDefaults};

use super::changed::{ChangedSubmodules, collect};
use super::{NameCollision, has_commits, is_populated, open, open_at, walk_beyond};
use crate::config::value;
use crate::gitmodules::{Gitmodules, is_safe_name, key};
use crate::{Error, ErrorKind, Repository, Result, path};

/// The condition on which a submodule is fetched (`--recurse-submodules`,
/// `fetch.recurseSubmodules`, `submodule.NAME.fetchRecurseSubmodules`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchRecursion {
    /// Never fetch the submodule (`no`).
    Off,
    /// Fetch the submodule if new commits of the superproject record commits that the submodule
    /// lacks (`on-demand`).
    #[default]
    OnDemand,
    /// Always fetch the submodule (`yes`).
    On,
}

impl FetchRecursion {
    /// Parses `text`, the value of the option or setting `name`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `text` is neither a boolean nor `on-demand`.
    pub fn parse(name: &str, text: Option<&BStr>) -> Result<Self> {
        match (value::parse_bool(text), text) {
            (Some(true), _) => Ok(FetchRecursion::On),
            (Some(false), _) => Ok(FetchRecursion::Off),
            (None, Some(text)) if text == "on-demand" => Ok(FetchRecursion::OnDemand),
            (None, text) => {
                let text = text.unwrap_or("(null)".into());
                let message = format!("bad {name} argument: {text}");
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        }
    }
}

/// A completed fetch of the superproject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetching<'a> {
    /// The condition for all submodules (`--recurse-submodules`, `fetch.recurseSubmodules`).
    /// Overrides the settings of submodules.
    pub all: Option<FetchRecursion>,
    /// The condition for submodules without a setting (`--recurse-submodules-default`).
    pub default: FetchRecursion,
    /// The values of the refs before the fetch.
    pub before: &'a [ObjectId],
    /// The new values of the refs.
    pub after: &'a [ObjectId],
}

/// A step of the fetch of submodules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchStep {
    /// Fetch the submodule.
    Fetch(FetchTask),
    /// The repository of the submodule cannot be opened. This is an error unless `by` is set.
    Inaccessible {
        /// The path of the submodule.
        path: BString,
        /// The commit of the superproject that records the submodule, if the index does not.
        by: Option<ObjectId>,
    },
    /// The submodule is skipped because its path collides with the name of another one.
    Collision(NameCollision),
}

/// A submodule to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTask {
    /// The name of the submodule.
    pub name: BString,
    /// The path of the submodule.
    pub path: BString,
    /// The git directory of the submodule.
    pub git_dir: PathBuf,
    /// The commit of the superproject that records the submodule, if the index does not.
    pub by: Option<ObjectId>,
    /// Fetch in any case. If false, fetch because of new commits.
    pub is_forced: bool,
    /// The submodule commits that new commits of the superproject record.
    wanted: Vec<ObjectId>,
}

impl FetchTask {
    /// Returns the recorded commits that are still missing from the submodule.
    ///
    /// # Errors
    /// Fails if the repository of the submodule cannot be read.
    pub fn missing(&self, repository: &Repository) -> Result<Vec<ObjectId>> {
        if self.wanted.is_empty() {
            return Ok(Vec::new());
        }
        let module = open_at(repository, &self.git_dir, &self.git_dir)?;
        let mut missing = Vec::new();
        for id in &self.wanted {
            if module.kind_of(*id)? != Some(ObjectKind::Commit) {
                missing.push(*id);
            }
        }
        Ok(missing)
    }

    /// Returns the name of the default remote of the submodule.
    ///
    /// # Errors
    /// Fails if the repository of the submodule cannot be read.
    pub fn remote(&self, repository: &Repository) -> Result<BString> {
        let module = open_at(repository, &self.git_dir, &self.git_dir)?;
        crate::remote::Remote::default_name(&module)
    }
}

impl Fetching<'_> {
    /// Plans the fetches of submodules, those in the index first. Costs a walk over the new
    /// commits, a comparison of each commit's tree with those of its parents, and a walk in each
    /// changed submodule.
    ///
    /// # Errors
    /// Fails if an object or the index cannot be read, a setting is malformed, a recorded submodule
    /// object is not a commit, the path of a submodule contains a symbolic link, or the operation
    /// is interrupted.
    pub fn steps(&self, repository: &Repository, watch: &Watch<'_>) -> Result<Vec<FetchStep>> {
        let Some(top) = repository.work_tree() else {
            return Ok(Vec::new());
        };
        let current = Gitmodules::read(top);
        let changed = self.changed(repository, &current, watch)?;
        let mut plan = FetchPlan {
            repository,
            current,
            changed,
            seen: BTreeSet::new(),
            steps: Vec::new(),
        };
        let collisions = std::mem::take(&mut plan.changed.collisions).into_iter();
        plan.steps.extend(collisions.map(FetchStep::Collision));
        for entry in repository
            .index()?
            .iter()
            .filter(|entry| entry.mode == GITLINK)
        {
            self.take_entry(&mut plan, entry.path.as_bstr())?;
        }
        self.take_changed(&mut plan)?;
        Ok(plan.steps)
    }

    /// Returns the submodules that new commits change, without those that have all recorded
    /// commits.
    fn changed(
        &self,
        repository: &Repository,
        current: &Gitmodules,
        watch: &Watch<'_>,
    ) -> Result<ChangedSubmodules> {
        // As in Git, new commits are not searched if no submodule has a repository.
        let modules = std::fs::read_dir(repository.git_path("modules"));
        let has_any = modules.is_ok_and(|mut entries| entries.next().is_some());
        if !has_any && current.names().is_empty() || self.after.is_empty() {
            return Ok(ChangedSubmodules::default());
        }
        let walk = walk_beyond(repository, self.after, self.before)?;
        let mut changed = collect(repository, walk, watch)?;
        let mut whole = Vec::new();
        for (name, recorded) in &changed.modules {
            let place = match current.names().contains(&name.as_bstr()) {
                true => current.value(name.as_bstr(), "path"),
                false => Some(name.as_bstr()).filter(|name| is_populated(repository, name)),
            };
            let Some(place) = place else { continue };
            if let Some(module) = find(repository, place, Some(name.as_bstr()))?
                && has_commits(&module, place, &recorded.commits, watch)?
            {
                whole.push(name.clone());
            }
        }
        changed.modules.retain(|name, _| !whole.contains(name));
        Ok(changed)
    }

    /// Plans the steps for the submodule at `path` of the index.
    fn take_entry(&self, plan: &mut FetchPlan<'_>, path: &BStr) -> Result<()> {
        let repository = plan.repository;
        let configured = plan.name_of(path);
        let name = match &configured {
            Some(name) => name.clone(),
            None if is_populated(repository, path) => path.to_owned(),
            None => return Ok(()),
        };
        if !plan.seen.insert(name.clone()) {
            return Ok(());
        }
        let Some(is_forced) = self.choose(plan, &name)? else {
            return Ok(());
        };
        let module = find(
            repository,
            path,
            configured.as_ref().map(|name| name.as_bstr()),
        )?;
        let Some(module) = module else {
            let top = repository.require_work_tree()?;
            // An empty directory is a submodule that is not populated.
            let entries = std::fs::read_dir(top.join(path::borrow(path)));
            if entries.is_ok_and(|mut entries| entries.next().is_some()) {
                let path = path.to_owned();
                plan.steps.push(FetchStep::Inaccessible { path, by: None });
            }
            return Ok(());
        };
        let wanted = plan.changed.modules.get(&name);
        plan.steps.push(FetchStep::Fetch(FetchTask {
            path: path.to_owned(),
            git_dir: module.git_dir().to_owned(),
            by: None,
            is_forced,
            wanted: wanted.map_or_else(Vec::new, |it| it.commits.iter().copied().collect()),
            name,
        }));
        Ok(())
    }

    /// Plans the steps for the changed submodules that the index does not have.
    fn take_changed(&self, plan: &mut FetchPlan<'_>) -> Result<()> {
        for (name, recorded) in std::mem::take(&mut plan.changed.modules) {
            if plan.seen.contains(&name) {
                continue;
            }
            if !is_active(plan.repository, name.as_bstr(), recorded.path.as_bstr())? {
                continue;
            }
            let is_forced = match self.setting(plan, &name)? {
                FetchRecursion::Off => continue,
                FetchRecursion::On => true,
                FetchRecursion::OnDemand => false,
            };
            plan.seen.insert(name.clone());
            let (path, by) = (recorded.path, Some(recorded.by));
            let module = find(plan.repository, path.as_bstr(), Some(name.as_bstr()))?;
            plan.steps.push(match module {
                None => FetchStep::Inaccessible { path, by },
                Some(module) => FetchStep::Fetch(FetchTask {
                    git_dir: module.git_dir().to_owned(),
                    wanted: recorded.commits.into_iter().collect(),
                    is_forced,
                    name,
                    path,
                    by,
                }),
            });
        }
        Ok(())
    }

    /// Returns whether the submodule called `name` is fetched in any case (`true`) or for new
    /// commits (`false`); `None` if it is not fetched.
    fn choose(&self, plan: &FetchPlan<'_>, name: &BString) -> Result<Option<bool>> {
        Ok(match self.setting(plan, name)? {
            FetchRecursion::Off => None,
            FetchRecursion::OnDemand => {
                let is_changed = plan.changed.modules.contains_key(name);
                is_changed.then_some(false)
            }
            FetchRecursion::On => Some(true),
        })
    }

    fn setting(&self, plan: &FetchPlan<'_>, name: &BString) -> Result<FetchRecursion> {
        if let Some(all) = self.all {
            return Ok(all);
        }
        let key = key(name.as_bstr(), "fetchrecursesubmodules");
        let config = plan.repository.config();
        let own = config.entry_of(&key).map(|entry| entry.value);
        let shared = || plan.current.value(name.as_bstr(), "fetchrecursesubmodules");
        match own.or_else(|| shared().map(Some)) {
            Some(text) => {
                let key = format!("submodule.{name}.fetchRecurseSubmodules");
                FetchRecursion::parse(&key, text)
            }
            None => Ok(self.default),
        }
    }
}

/// The state of planning.
struct FetchPlan<'a> {
    repository: &'a Repository,
    /// The content of `.gitmodules` in the worktree.
    current: Gitmodules,
    changed: ChangedSubmodules,
    /// The names of the submodules that are planned already.
    seen: BTreeSet<BString>,
    steps: Vec<FetchStep>,
}

impl FetchPlan<'_> {
    /// Returns the name of the submodule at `path`, from `.gitmodules` of the worktree.
    fn name_of(&self, path: &BStr) -> Option<BString> {
        let names = self.current.names().into_iter();
        let mut here = names.filter(|name| self.current.value(name, "path") == Some(path));
        here.next_back().map(BStr::to_owned)
    }
}

/// Whether the submodule called `name` at `path` is active: `submodule.NAME.active` is true, or the
/// pathspecs of `submodule.active` match, or the submodule has a URL.
fn is_active(repository: &Repository, name: &BStr, path: &BStr) -> Result<bool> {
    let config = repository.config();
    if let Some(active) = config.bool(key(name, "active"))? {
        return Ok(active);
    }
    if !config.contains("submodule.active") {
        return Ok(config.contains(key(name, "url")));
    }
    let specs = config.list("submodule.active");
    let top = repository.require_work_tree()?;
    let active = Pathspec::parse(specs, "".into(), top, PathspecDefaults::default());
    let active = active.map_err(|error| error.map_kind(|_| ErrorKind::ConfigValue))?;
    Ok(active.matches(path, true))
}

/// Opens the repository of a submodule: the one that is checked out at `path`, or the one called
/// `name` in `modules` of the superproject's git directory. Returns `None` if there is no
/// repository.
fn find(repository: &Repository, path: &BStr, name: Option<&BStr>) -> Result<Option<Repository>> {
    if let Some(module) = open(repository, path)? {
        return Ok(Some(module));
    }
    let Some(name) = name.filter(|name| is_safe_name(name)) else {
        return Ok(None);
    };
    let git = repository.git_path("modules").join(path::borrow(name));
    match git.join("HEAD").exists() {
        true => open_at(repository, &git, &git).map(Some),
        false => Ok(None),
    }
}
