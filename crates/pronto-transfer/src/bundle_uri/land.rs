//! Lands downloaded bundles: stores their objects and their refs in the repository.

use std::collections::BTreeSet;
use std::io::Read;

use bstr::{BString, ByteSlice};
use pronto_io::error::IoContext;
use pronto_io::watch::Watch;
use pronto_pack::bundle::BundleHeader;
use pronto_storage::fsck::{FsckInspector, InspectionScope};

use super::{BundleImport, BundleResult, PendingBundle, list};
use crate::bundle;
use crate::objects::from_odb;
use crate::refs::ExpectedValue;
use crate::remote::{Both, Fitness, PackLinks, failure_lines, fsck_levels, unusable, verify};
use crate::{Error, ErrorKind, Result};

/// The reflog message.
const MESSAGE: &str = "fetched bundle";

impl BundleImport<'_> {
    /// Lands the bundles whose prerequisites exist. After each landed bundle, the others are tried
    /// again.
    pub(super) fn land_all(&mut self) -> Result<()> {
        let ids: Vec<BString> = self.bundles.iter().map(|found| found.id.clone()).collect();
        let order = list::order(ids.iter().map(|id| id.as_bstr()));
        loop {
            let mut has_landed = false;
            for at in &order {
                if self.land(*at)? == Some(BundleResult::Landed) {
                    has_landed = true;
                    break;
                }
            }
            if !has_landed {
                return Ok(());
            }
        }
    }

    /// Lands the bundle at `at`. Returns `None` if the bundle was landed already or is unusable.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Interrupted`] if the operation is interrupted, and with
    /// [`ErrorKind::Config`] or [`ErrorKind::ConfigValue`] if a setting is malformed. Other
    /// failures make the bundle unusable, and are reported.
    pub(super) fn land(&mut self, at: usize) -> Result<Option<BundleResult>> {
        let found = self.bundles.get_mut(at);
        let Some(mut waiting) = found.and_then(|found| found.waiting.take()) else {
            return Ok(None);
        };
        let interrupt = self.watch.interrupt();
        interrupt.check().map_err(crate::interrupted)?;
        let landing = match self.try_landing(&mut waiting) {
            Ok(landing) => landing,
            Err(error) => self.explain(error)?,
        };
        if let (BundleResult::Waiting, Some(found)) = (landing, self.bundles.get_mut(at)) {
            found.waiting = Some(waiting);
        }
        Ok(Some(landing))
    }

    fn try_landing(&self, waiting: &mut PendingBundle) -> Result<BundleResult> {
        let repository = self.repository;
        if let Some(id) = waiting.lacking
            && repository.kind_of(id)?.is_none()
        {
            return Ok(BundleResult::Waiting);
        }
        let header = &waiting.header;
        match verify(repository, header)? {
            Fitness::Fits => {}
            Fitness::Lacks(commits) => {
                waiting.lacking = commits.first().map(|commit| commit.id);
                return Ok(BundleResult::Waiting);
            }
            Fitness::Unconnected => return Ok(BundleResult::Waiting),
        }
        if header.filter.is_some() && !repository.has_promisor()? {
            self.report("the bundle is filtered, but the repository is not a partial clone");
            return Ok(BundleResult::Unusable);
        }
        let pack = self.spool.reader(waiting.pack);
        let mut pack = pack.context(
            ErrorKind::Io,
            "cannot read a bundle in",
            self.spool.directory(),
        )?;
        if !self.take_objects(header, &mut pack)? {
            return Ok(BundleResult::Unusable);
        }
        self.write_refs(header)?;
        Ok(BundleResult::Landed)
    }

    /// Stores the objects of `pack`. Returns whether the repository then has all objects that they
    /// link to.
    fn take_objects(&self, header: &BundleHeader, pack: &mut dyn Read) -> Result<bool> {
        let repository = self.repository;
        let is_filtered = header.filter.is_some();
        let levels = fsck_levels(repository, is_filtered)?;
        let checks = levels.as_ref().map(|levels| {
            let scope = InspectionScope {
                objects: true,
                store: repository.objects().ok(),
                promised: is_filtered,
                ..InspectionScope::default()
            };
            FsckInspector::new(repository.object_hash(), levels, scope)
        });
        let cut = match repository.is_shallow() {
            true => crate::shallow::read(repository)?,
            false => BTreeSet::new(),
        };
        let links = PackLinks::new(repository.object_hash(), &cut);
        let both = Both {
            one: (!is_filtered).then_some(&links as _),
            other: checks.as_ref().map(|checks| checks as _),
        };
        let inspect = both.is_needed().then_some(&both as _);
        let watch = Watch::from(self.watch.interrupt());
        let landed = bundle::land(repository, header, pack, inspect, &watch);
        for report in checks.iter().flat_map(FsckInspector::take_reports) {
            if !report.is_error {
                self.warn(&report.to_string());
            }
        }
        let quarantine = landed.map_err(unusable)?;
        if let Some(id) = links.first_missing(quarantine.store())? {
            self.report(&format!("the bundle lacks object {id}"));
            return Ok(false);
        }
        quarantine.publish().map_err(from_odb)?;
        Ok(true)
    }

    /// Reports `error`, because of which a bundle cannot be used.
    ///
    /// # Errors
    /// Fails with `error` if the bundle is not the reason: the operation is interrupted, or a
    /// setting is malformed.
    fn explain(&self, error: Error) -> Result<BundleResult> {
        match error.kind() {
            ErrorKind::Interrupted | ErrorKind::Config | ErrorKind::ConfigValue => Err(error),
            ErrorKind::Bundle => {
                for line in failure_lines(&error) {
                    self.watch.progress().message(line.as_message());
                }
                Ok(BundleResult::Unusable)
            }
            _ => {
                self.report(&error.to_string());
                Ok(BundleResult::Unusable)
            }
        }
    }

    /// Writes the refs of a bundle as `refs/bundles/…`. A ref that cannot be written is reported.
    fn write_refs(&self, header: &BundleHeader) -> Result<()> {
        for found in &header.references {
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
            // A refused transaction would leave the directories of the ref behind.
            let store = self.repository.objects()?;
            if !store.contains(&found.id).map_err(from_odb)? {
                let id = found.id;
                fail(&format!(
                    "trying to write ref '{name}' with nonexistent object {id}"
                ));
                continue;
            }
            let mut transaction = self.repository.transaction();
            transaction.update(&name, found.id, ExpectedValue::Anything, MESSAGE);
            match transaction.commit() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
                Err(error) => fail(error.message()),
            }
        }
        Ok(())
    }
}
