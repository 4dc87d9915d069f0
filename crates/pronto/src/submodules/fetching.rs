//! The submodules that a fetch of their superproject concerns.

use std::collections::BTreeSet;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_index::mode::GITLINK;
use pronto_io::watch::Watch;
use pronto_worktree::pathspec::{Defaults, Pathspec};

use super::changed::{Changed, collect};
use super::{Collision, has_commits, is_populated, open, open_at, walk_beyond};
use crate::config::value;
use crate::gitmodules::{Gitmodules, is_safe_name, key};
use crate::{Error, ErrorKind, Repository, Result, path};

/// When a submodule is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FetchRecursion {
    /// Never.
    Off,
    /// If new commits of the superproject record commits that it lacks.
    #[default]
    OnDemand,
    /// Always.
    On,
}

impl FetchRecursion {
    /// Parses `text`, the value of the option or setting `name`.
    ///
    /// # Errors
    /// It is neither a boolean nor `on-demand`.
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

/// A fetch of the superproject that is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetching<'a> {
    /// The choice for all submodules, by the command line or the configuration.
    pub all: Option<FetchRecursion>,
    /// The choice for submodules without a setting.
    pub default: FetchRecursion,
    /// The values of the refs before the fetch.
    pub before: &'a [ObjectId],
    /// The new values of refs.
    pub after: &'a [ObjectId],
}

/// A step of the fetch of submodules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchStep {
    /// The submodule is fetched.
    Fetch(FetchTask),
    /// Its repository cannot be opened: an error, unless `by` is set.
    Inaccessible {
        /// Its path.
        path: BString,
        /// The commit that records it, if the index does not.
        by: Option<ObjectId>,
    },
    /// The submodule is skipped because of its name.
    Collision(Collision),
}

/// A submodule to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchTask {
    /// Its name.
    pub name: BString,
    /// Its path.
    pub path: BString,
    /// The directory of its repository.
    pub git_dir: PathBuf,
    /// The commit of the superproject that records it, if the index does not.
    pub by: Option<ObjectId>,
    /// Whether it is fetched in any case; otherwise because of new commits.
    pub is_forced: bool,
    /// The commits of it that new commits of the superproject record.
    wanted: Vec<ObjectId>,
}

impl FetchTask {
    /// Returns the commits that are still missing.
    ///
    /// # Errors
    /// The repository of the submodule cannot be read.
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

    /// Returns the name of the remote that the submodule fetches from by default.
    ///
    /// # Errors
    /// The repository of the submodule cannot be read.
    pub fn remote(&self, repository: &Repository) -> Result<BString> {
        let module = open_at(repository, &self.git_dir, &self.git_dir)?;
        crate::remote::Remote::default_name(&module)
    }
}

impl Fetching<'_> {
    /// Returns the steps, those for submodules of the index first. Costs a walk over the new
    /// commits, a comparison of each one's tree with those of its parents, and a walk in each submodule
    /// that they change.
    ///
    /// # Errors
    /// An object or the index cannot be read, a setting is malformed, a submodule is recorded at an object that is no
    /// commit, its path leads through a symbolic link, or it was interrupted.
    pub fn steps(&self, repository: &Repository, watch: &Watch<'_>) -> Result<Vec<FetchStep>> {
        let Some(top) = repository.work_tree() else {
            return Ok(Vec::new());
        };
        let current = Gitmodules::read(top);
        let changed = self.changed(repository, &current, watch)?;
        let mut plan = Plan {
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

    /// The submodules that new commits change, without those that have all commits.
    fn changed(
        &self,
        repository: &Repository,
        current: &Gitmodules,
        watch: &Watch<'_>,
    ) -> Result<Changed> {
        // As in Git, nothing is searched if no submodule could be fetched.
        let modules = std::fs::read_dir(repository.git_path("modules"));
        let has_any = modules.is_ok_and(|mut entries| entries.next().is_some());
        if !has_any && current.names().is_empty() || self.after.is_empty() {
            return Ok(Changed::default());
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
    fn take_entry(&self, plan: &mut Plan<'_>, path: &BStr) -> Result<()> {
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
            // An empty directory is a submodule that is not initialised.
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
    fn take_changed(&self, plan: &mut Plan<'_>) -> Result<()> {
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

    /// Whether the submodule called `name` is fetched in any case; `None` if it is not fetched.
    fn choose(&self, plan: &Plan<'_>, name: &BString) -> Result<Option<bool>> {
        Ok(match self.setting(plan, name)? {
            FetchRecursion::Off => None,
            FetchRecursion::OnDemand => {
                let is_changed = plan.changed.modules.contains_key(name);
                is_changed.then_some(false)
            }
            FetchRecursion::On => Some(true),
        })
    }

    fn setting(&self, plan: &Plan<'_>, name: &BString) -> Result<FetchRecursion> {
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

/// A plan in the making.
struct Plan<'a> {
    repository: &'a Repository,
    /// The `.gitmodules` of the worktree.
    current: Gitmodules,
    changed: Changed,
    /// The names of the submodules that were planned.
    seen: BTreeSet<BString>,
    steps: Vec<FetchStep>,
}

impl Plan<'_> {
    /// The name of the submodule at `path` of the worktree.
    fn name_of(&self, path: &BStr) -> Option<BString> {
        let names = self.current.names().into_iter();
        let mut here = names.filter(|name| self.current.value(name, "path") == Some(path));
        here.next_back().map(BStr::to_owned)
    }
}

/// Whether the submodule called `name` at `path` is of interest here: as its setting says, as the pathspecs of
/// `submodule.active` say, or if it has a URL.
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
    let active = Pathspec::parse(specs, "".into(), top, Defaults::default());
    let active = active.map_err(|error| error.map_kind(|_| ErrorKind::ConfigValue))?;
    Ok(active.matches(path, true))
}

/// Opens the repository of a submodule: the one that is checked out at `path`, or that of this `name` in the
/// repository of the superproject; `None` if there is none.
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
