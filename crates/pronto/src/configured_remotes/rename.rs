//! Renames remotes with their settings and remote-tracking refs (`git remote rename`).

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::watch::Watch;

use super::file::{self, SetValue};
use super::{StaleDefault, branches, key};
use crate::config::edit::Document;
use crate::refs::{BrokenRef, PreparedTransaction, RefName, RefTarget, Reference, Rename};
use crate::remote::{Remote, is_valid_name};
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// The settings that still have the old name after a remote was renamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renamed {
    /// The fetch refspecs that were kept because their destination is not `refs/remotes/OLD/`.
    pub unchanged_refspecs: Vec<BString>,
    /// The `remote.pushDefault` that names the remote in another file than the repository's.
    pub push_default: Option<StaleDefault>,
}

/// Renames `remote` to `new`: its settings, the settings of branches that name it, and its
/// remote-tracking refs with their reflogs. If the remote is configured in a file below `remotes/`
/// or `branches/`, and `new` is its current name, its settings are moved to the configuration file.
///
/// # Errors
/// - [`ErrorKind::InvalidInput`] if the name is invalid or in use.
/// - [`ErrorKind::NameConflict`] if new names of refs conflict with existing refs. Nothing has
///   changed then.
/// - [`ErrorKind::Hook`] if a hook refuses the change of refs.
/// - [`ErrorKind::Config`] if the configuration cannot be changed.
/// - [`ErrorKind::Interrupted`] if the operation is interrupted.
pub fn rename(
    repository: &Repository,
    remote: &Remote,
    new: &BStr,
    watch: &Watch<'_>,
) -> Result<Renamed> {
    support::require(repository, Operation::ManageRemotes)?;
    if remote.name == new && remote.file.is_some() {
        return migrate(repository, remote);
    }
    if !is_valid_name(new) {
        let message = format!("'{new}' is not a valid remote name");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let mut renaming = Renaming {
        repository,
        remote,
        new,
        renamed: Renamed::default(),
    };
    let refs = renaming.prepare_refs(watch)?;
    let failure = format!(
        "Could not rename config section 'remote.{}' to 'remote.{new}'",
        remote.name
    );
    let branches = branches::read(repository)?;
    file::edit(repository, &failure, |document| {
        let (from, to) = (section(remote.name.as_bstr()), section(new));
        if document.rename_section(from.as_bstr(), Some(to.as_bstr()))? == 0 {
            return Err(Error::new(ErrorKind::Config, failure.clone()));
        }
        renaming.change_refspecs(document)?;
        renaming.change_branches(document, &branches)?;
        let old = remote.name.as_bstr();
        renaming.renamed.push_default =
            file::change_push_default(repository, document, old, Some(new))?;
        Ok(())
    })?;
    if let Some(refs) = refs {
        refs.commit()?;
    }
    Ok(renaming.renamed)
}

fn section(name: &BStr) -> BString {
    [b"remote.", name.as_bytes()].concat().into()
}

struct Renaming<'a> {
    repository: &'a Repository,
    remote: &'a Remote,
    new: &'a BStr,
    renamed: Renamed,
}

impl<'a> Renaming<'a> {
    /// The namespace `refs/remotes/NAME/` of the remote-tracking refs.
    fn place(name: &BStr) -> BString {
        [b"refs/remotes/", name.as_bytes(), b"/"].concat().into()
    }

    /// Returns `spec` with the new name in its destination; `None` if the destination does not
    /// contain the old name.
    fn changed(&self, spec: &BStr) -> Option<BString> {
        let place = |name: &BStr| [b":", Self::place(name).as_bytes()].concat();
        let (old, new) = (place(self.remote.name.as_bstr()), place(self.new));
        let at = spec.find(&old)?;
        let end = at + old.len();
        Some(
            [spec[..at].as_bytes(), &new[..], spec[end..].as_bytes()]
                .concat()
                .into(),
        )
    }

    /// Returns the configured fetch refspecs.
    fn refspecs(&self) -> Vec<BString> {
        let key = key(self.remote.name.as_bstr(), "fetch");
        let specs = self.repository.config().strings(key);
        specs.map(BStr::to_owned).collect()
    }

    /// Prepares the transaction that renames all remote-tracking refs; `None` if no refspec has
    /// destinations below `refs/remotes/OLD/`.
    fn prepare_refs(&self, watch: &Watch<'_>) -> Result<Option<PreparedTransaction<'a>>> {
        if !self
            .refspecs()
            .iter()
            .any(|spec| self.changed(spec.as_bstr()).is_some())
        {
            return Ok(None);
        }
        let old = Self::place(self.remote.name.as_bstr());
        let meter = watch.progress().begin("Renaming remote references", None);
        let mut transaction = self.repository.transaction();
        for reference in self.references(&old)? {
            transaction.rename(self.renaming_of(reference)?);
            meter.add(1);
            (watch.interrupt().check())
                .map_err(|_| Error::new(ErrorKind::Interrupted, "interrupted"))?;
        }
        let prepared = transaction.prepare().map_err(|error| match error.kind() {
            kind if kind.ends_command() => error,
            kind => {
                let message = format!("renaming remote references failed: {}", error.message());
                Error::new(kind, message)
            }
        })?;
        meter.finish();
        Ok(Some(prepared))
    }

    /// Returns all refs below `place`, including dangling symrefs.
    fn references(&self, place: &BString) -> Result<Vec<Reference>> {
        let refs = self.repository.refs();
        let mut names = Vec::new();
        refs.for_each_or_broken(place, |found| {
            match found {
                Ok(reference) => names.push(reference.name.to_owned()),
                Err(BrokenRef::Dangling(name)) => names.push(name.to_owned()),
                Err(BrokenRef::Contents(_)) => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let found = names.iter().map(|name| refs.find(name).transpose());
        found.flatten().collect()
    }

    /// Returns the new name and target of `reference`. The target of a symref is renamed, too, if
    /// it is a remote-tracking ref of the same remote.
    fn renaming_of(&self, reference: Reference) -> Result<Rename> {
        let moved = |name: &BStr| -> Option<BString> {
            let rest = name.strip_prefix(&Self::place(self.remote.name.as_bstr())[..])?;
            Some([&Self::place(self.new)[..], rest].concat().into())
        };
        let from = reference.name;
        let to = moved(from.as_bstr()).unwrap_or_default();
        let target = match &reference.target {
            RefTarget::Symbolic(target) => RefTarget::Symbolic(match moved(target.as_bstr()) {
                Some(name) => RefName::new(name).map_err(crate::refs::bad_name)?,
                None => target.clone(),
            }),
            RefTarget::Object(id) => RefTarget::Object(*id),
        };
        Ok(Rename {
            message: format!("remote: renamed {from} to {to}").into(),
            from,
            to,
            current: reference.target,
            target,
        })
    }

    fn change_refspecs(&mut self, document: &mut Document) -> Result<()> {
        let specs = self.refspecs();
        if specs.is_empty() {
            return Ok(());
        }
        let key = key(self.new, "fetch");
        file::unset_all(document, key.as_bstr(), |_| true)?;
        for spec in specs {
            let changed = self.changed(spec.as_bstr());
            let value = changed.as_ref().unwrap_or(&spec).as_bstr();
            let change = SetValue {
                key: key.as_bstr(),
                value,
            };
            file::append(self.repository, document, &change)?;
            if changed.is_none() {
                self.renamed.unchanged_refspecs.push(spec);
            }
        }
        Ok(())
    }

    fn change_branches(
        &self,
        document: &mut Document,
        branches: &[branches::ConfiguredBranch],
    ) -> Result<()> {
        for branch in branches {
            let named = [
                ("remote", &branch.remote),
                ("pushRemote", &branch.push_remote),
            ];
            for (variable, remote) in named {
                if remote.as_ref() != Some(&self.remote.name) {
                    continue;
                }
                let key = format!("branch.{}.{variable}", branch.name);
                let change = SetValue {
                    key: key.as_str().into(),
                    value: self.new,
                };
                file::set(self.repository, document, &change, |_| true)?;
            }
        }
        Ok(())
    }
}

/// Moves the settings of a remote from a file below `remotes/` or `branches/` to the configuration
/// file.
fn migrate(repository: &Repository, remote: &Remote) -> Result<Renamed> {
    let name = remote.name.as_bstr();
    let first = remote.urls.first().cloned().unwrap_or_default();
    let failure = file::cannot_set(key(name, "url").as_bstr(), first.as_bstr());
    let fetch = remote.fetch.iter().map(|spec| spec.to_string().into());
    let values = [
        ("url", remote.urls.clone()),
        ("push", remote.push.clone()),
        ("fetch", fetch.collect()),
    ];
    file::edit(repository, &failure, |document| {
        for (variable, values) in values {
            let key = key(name, variable);
            for value in &values {
                let change = SetValue {
                    key: key.as_bstr(),
                    value: value.as_bstr(),
                };
                file::append(repository, document, &change)?;
            }
        }
        Ok(())
    })?;
    if let Some(directory) = remote.file {
        let path = repository.common_dir().join(directory);
        let path = path.join(crate::path::borrow(name));
        // The configuration file takes precedence from now on, so that a failure does no harm.
        let _ = std::fs::remove_file(path);
    }
    Ok(Renamed::default())
}
