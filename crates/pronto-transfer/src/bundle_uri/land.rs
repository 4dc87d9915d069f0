//! Takes downloaded bundles into the repository.

use std::collections::BTreeSet;
use std::io::BufReader;

use bstr::{BString, ByteSlice};
use pronto_io::watch::Watch;

use super::{Downloaded, Taking, list};
use crate::bundle::{self, Bundle};
use crate::fsck::{Inspector, Scope};
use crate::refs::Expected;
use crate::remote::{
    Both, Fitness, Links, failure_lines, from_store, fsck_levels, unusable, verify,
};
use crate::{ErrorKind, Result};

/// The message of reflogs.
const MESSAGE: &str = "fetched bundle";

impl Taking<'_> {
    /// Takes in the bundles that fit. One that was taken in can make others fit.
    pub(super) fn land_all(&mut self) -> Result<()> {
        let ids: Vec<BString> = self.bundles.iter().map(|found| found.id.clone()).collect();
        let order = list::order(ids.iter().map(|id| id.as_bstr()));
        loop {
            let mut has_landed = false;
            for at in &order {
                let is_waiting = self.bundles.get(*at).is_some_and(|found| !found.is_landed);
                if is_waiting && self.land(*at)? {
                    has_landed = true;
                    break;
                }
            }
            if !has_landed {
                return Ok(());
            }
        }
    }

    /// Takes in the bundle at `at`. Returns whether it fits.
    pub(super) fn land(&mut self, at: usize) -> Result<bool> {
        let Some(found) = self.bundles.get(at) else {
            return Ok(false);
        };
        let has_landed = self.try_landing(found)?;
        if let Some(found) = self.bundles.get_mut(at) {
            found.is_landed = has_landed;
        }
        Ok(has_landed)
    }

    fn try_landing(&self, found: &Downloaded) -> Result<bool> {
        let Ok(file) = found.file.try_clone() else {
            return Ok(false);
        };
        let mut file = file;
        if std::io::Seek::rewind(&mut file).is_err() {
            return Ok(false);
        }
        let name = &found.id;
        let mut bundle = match Bundle::read(Box::new(BufReader::new(file)), name.as_ref()) {
            Ok(bundle) => bundle,
            Err(error) => {
                self.report(error.message());
                return Ok(false);
            }
        };
        if verify(self.repository, bundle.header())? != Fitness::Fits {
            return Ok(false);
        }
        let is_filtered = bundle.header().filter.is_some();
        if is_filtered && !self.repository.has_promisor()? {
            self.report("the bundle leaves objects out, and the repository is no partial clone");
            return Ok(false);
        }
        if !self.take_objects(&mut bundle)? {
            return Ok(false);
        }
        self.write_refs(&bundle)?;
        Ok(true)
    }

    /// Takes in the objects. Returns whether they can be used.
    fn take_objects(&self, bundle: &mut Bundle) -> Result<bool> {
        let repository = self.repository;
        let is_filtered = bundle.header().filter.is_some();
        let levels = fsck_levels(repository, is_filtered)?;
        let checks = levels.as_ref().map(|levels| {
            let scope = Scope {
                objects: true,
                store: repository.objects().ok(),
                promised: is_filtered,
                ..Scope::default()
            };
            Inspector::new(repository.object_hash(), levels, scope)
        });
        let cut = match repository.is_shallow() {
            true => crate::shallow::read(repository)?,
            false => BTreeSet::new(),
        };
        let links = Links::new(repository.object_hash(), &cut);
        let both = Both {
            one: (!is_filtered).then_some(&links as _),
            other: checks.as_ref().map(|checks| checks as _),
        };
        let inspect = both.is_needed().then_some(&both as _);
        let watch = Watch::from(self.watch.interrupt());
        let landed = bundle::land(repository, bundle, inspect, &watch);
        for report in checks.iter().flat_map(Inspector::take_reports) {
            if !report.is_error {
                self.warn(&report.to_string());
            }
        }
        let quarantine = match landed {
            Ok(quarantine) => quarantine,
            Err(error) => return self.explain(unusable(error)),
        };
        if let Some(id) = links.first_missing(quarantine.store())? {
            self.report(&format!("the bundle lacks object {id}"));
            return Ok(false);
        }
        quarantine.publish().map_err(from_store)?;
        Ok(true)
    }

    /// Reports why a bundle cannot be used. Only an interruption, or a failure to write, ends the call.
    fn explain(&self, error: crate::Error) -> Result<bool> {
        if *error.kind() != ErrorKind::Bundle {
            return Err(error);
        }
        for line in failure_lines(&error) {
            self.watch.progress().message(&line);
        }
        Ok(false)
    }

    /// Writes the refs of a bundle as `refs/bundles/…`.
    fn write_refs(&self, bundle: &Bundle) -> Result<()> {
        for found in &bundle.header().references {
            let Some(rest) = found.name.strip_prefix(b"refs/") else {
                continue;
            };
            let name = BString::from([b"refs/bundles/", rest].concat());
            let fail = |reason: &str| {
                self.report(&format!("update_ref failed for ref '{name}': {reason}"));
            };
            if !crate::refs::name::is_valid(name.as_ref(), crate::refs::name::Form::Full) {
                fail(&format!("refusing to update ref with bad name '{name}'"));
                continue;
            }
            // Without a look, the directories of a ref that is not made would stay.
            let store = self.repository.objects()?;
            if !store.contains(&found.id).map_err(from_store)? {
                let id = found.id;
                fail(&format!(
                    "trying to write ref '{name}' with nonexistent object {id}"
                ));
                continue;
            }
            let mut transaction = self.repository.transaction();
            transaction.update(&name, found.id, Expected::Anything, MESSAGE);
            match transaction.commit() {
                Ok(()) => {}
                Err(error) if *error.kind() == ErrorKind::Interrupted => return Err(error),
                Err(error) => {
                    let message = error.message();
                    let prefix = format!("cannot update ref '{name}': ");
                    fail(message.strip_prefix(&prefix).unwrap_or(message));
                }
            }
        }
        Ok(())
    }
}
