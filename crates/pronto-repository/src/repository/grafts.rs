//! Grafts: parents that replace those recorded in commits (`info/grafts`, `GIT_GRAFT_FILE`).

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::OnceLock;

use bstr::ByteSlice;
use pronto_hash::{ObjectId, oid};

use crate::refs::References;
use crate::repository::{Notice, NoticeReceiver};
use crate::{Error, ErrorKind, Repository, Result};

/// The parents of grafted commits.
#[derive(Debug, Default)]
pub(crate) struct Grafts(BTreeMap<ObjectId, Vec<ObjectId>>);

impl Grafts {
    /// Returns whether no commit is grafted.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether `commit` is grafted.
    pub(crate) fn contains(&self, commit: &oid) -> bool {
        self.parents(commit).is_some()
    }

    /// Returns the parents of `commit`, if it is grafted.
    pub(crate) fn parents(&self, commit: &oid) -> Option<&[ObjectId]> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&commit.to_owned()).map(Vec::as_slice),
        }
    }
}

/// A repository that reads all objects as they are stored, without replacements and grafts.
pub enum UngraftedRepository<'a> {
    /// The given repository, which has no replacements or grafts.
    Same(&'a Repository),
    /// A copy of the repository, opened without replacements and grafts.
    Opened(Box<Repository>),
}

impl Deref for UngraftedRepository<'_> {
    type Target = Repository;

    fn deref(&self) -> &Repository {
        match self {
            UngraftedRepository::Same(repository) => repository,
            UngraftedRepository::Opened(repository) => repository,
        }
    }
}

impl Repository {
    /// Returns this repository without replacements (`refs/replace/`) and grafts. Packs for other
    /// repositories are made from the result, so that these repositories receive the original
    /// objects and histories. If this repository has replacements or grafts, the result is opened
    /// again and discards its notices.
    ///
    /// # Errors
    /// Fails if its refs, object store or grafts cannot be read.
    pub fn original(&self) -> Result<UngraftedRepository<'_>> {
        if !self.objects()?.has_replacements() && self.grafts()?.is_empty() {
            return Ok(UngraftedRepository::Same(self));
        }
        Ok(UngraftedRepository::Opened(Box::new(Repository {
            environment: self.environment.clone(),
            layout: self.layout.clone(),
            config: self.config.clone(),
            refs: References::new(&self.layout, &self.config, &self.environment)?,
            notices: NoticeReceiver::default(),
            objects: OnceLock::from(self.objects()?.without_replacements()),
            fsync: OnceLock::new(),
            shallow: OnceLock::new(),
            grafts: OnceLock::from(Grafts::default()),
            commit_graph: OnceLock::new(),
            lacking: self.lacking.clone(),
            has_index_hook: self.has_index_hook.clone(),
        })))
    }

    /// Returns the grafts of this repository. The file is read once; malformed lines are reported as
    /// notices and ignored.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if the file cannot be read, or [`ErrorKind::ConfigValue`] if
    /// `advice.graftFileDeprecated` is not a boolean.
    pub(crate) fn grafts(&self) -> Result<&Grafts> {
        if let Some(known) = self.grafts.get() {
            return Ok(known);
        }
        let named = self.environment().file("GIT_GRAFT_FILE");
        let path = named.unwrap_or_else(|| self.git_path("info/grafts"));
        let mut grafts = Grafts::default();
        match pronto_io::untrusted::content(&path) {
            Ok(text) => {
                if self.advice("graftfiledeprecated")? != Some(false) {
                    self.notify(Notice::GraftFileDeprecated);
                }
                for line in text.lines() {
                    self.read_graft(line, &mut grafts);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!("cannot read '{}'", path.display());
                return Err(Error::new(ErrorKind::Io, message).because(error));
            }
        }
        Ok(self.grafts.get_or_init(|| grafts))
    }

    fn read_graft(&self, line: &[u8], grafts: &mut Grafts) {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let ids = line.split(|&byte| byte == b' ').map(pronto_hash::parse_hex);
        match ids.collect::<Result<Vec<_>, _>>().as_deref() {
            Ok([commit, parents @ ..]) if commit.kind() == self.object_hash() => {
                grafts.0.entry(*commit).or_insert_with(|| parents.into());
            }
            _ => self.notify(Notice::MalformedGraft(line.into())),
        }
    }
}
