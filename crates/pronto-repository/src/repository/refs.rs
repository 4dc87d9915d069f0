//! Refs and reflogs of a repository: reading them, and changing them in transactions.

use std::ffi::OsStr;

use bstr::{BStr, BString};
use pronto_hash::{ObjectId, oid};

use crate::config::Config;
use crate::durability::Fsync;
use crate::identity::{self, Care, IdentityRole};
use crate::objects::from_odb;
use crate::repository::Notice;
use crate::{Error, Repository, Result, hooks};

pub use pronto_refs::store::*;
pub use pronto_refs::{BadName, RefName, RefNameRef, name};

const HOOK: &str = "reference-transaction";

impl Repository {
    /// Returns the state of `HEAD`.
    ///
    /// # Errors
    /// Fails with [`Reference`](crate::ErrorKind::Reference) if `HEAD` is malformed, or [`Io`](crate::ErrorKind::Io).
    pub fn head(&self) -> Result<HeadValue> {
        self.refs().head()
    }

    /// Creates a ref transaction without edits.
    pub fn transaction(&self) -> Transaction<'_> {
        Transaction::new(self)
    }

    /// Deletes the refs `names` in one transaction. Returns `None` after success, or the error if a ref
    /// cannot be deleted.
    ///
    /// # Errors
    /// Fails with [`Hook`](crate::ErrorKind::Hook) if the hook `reference-transaction` refuses, or with
    /// [`Interrupted`](crate::ErrorKind::Interrupted).
    pub fn delete_refs(&self, names: &[BString]) -> Result<Option<Error>> {
        let mut transaction = self.transaction();
        for name in names {
            transaction.delete(name, ExpectedValue::Anything);
        }
        let Err(error) = transaction.commit() else {
            return Ok(None);
        };
        if error.kind().ends_command() {
            return Err(error);
        }
        let message = match names {
            [name] => format!("could not delete reference {name}: {error}"),
            _ => format!("could not delete references: {error}"),
        };
        Ok(Some(Error::new(error.kind(), message)))
    }

    /// Packs refs like `git pack-refs`.
    ///
    /// # Errors
    /// As for the method of the same name of [`RefHost`].
    pub fn pack_refs(&self, options: &PackRefsOptions) -> Result<PackRefsReport> {
        (self as &dyn RefHost).pack_refs(options)
    }

    /// Moves all refs and reflogs to another storage (`git refs migrate`). The repository must be
    /// opened again afterwards.
    ///
    /// # Errors
    /// As for the method of the same name of [`RefHost`].
    pub fn migrate_refs(&self, options: &MigrateOptions) -> Result<MigrateReport> {
        (self as &dyn RefHost).migrate_refs(options)
    }

    /// Returns whether [`pack_refs`](Self::pack_refs) with these options and `auto` would pack refs.
    ///
    /// # Errors
    /// Fails with [`Reference`](crate::ErrorKind::Reference) or [`Io`](crate::ErrorKind::Io) if `packed-refs` cannot be read, or
    /// [`Object`](crate::ErrorKind::Object) if an object cannot be read.
    pub fn should_pack_refs(&self, options: &PackRefsOptions) -> Result<bool> {
        (self as &dyn RefHost).should_pack_refs(options)
    }
}

impl RefHost for Repository {
    fn refs(&self) -> &References {
        self.refs()
    }

    fn config(&self) -> &Config {
        self.config()
    }

    fn fsync(&self) -> Result<Fsync> {
        self.fsync()
    }

    fn begin_writing(&self) -> Result<()> {
        self.objects()?.begin_writing().map_err(from_odb)
    }

    fn has_object(&self, id: &oid) -> Result<bool> {
        Ok(self.objects()?.header(id).map_err(from_odb)?.is_some())
    }

    fn check_storable(&self, name: &BStr, id: &oid) -> Result<()> {
        self.check_storable(name, id)
    }

    fn peel_tag(&self, id: ObjectId) -> Result<Option<ObjectId>> {
        self.peel_tag(id)
    }

    fn log_signature(&self) -> Result<String> {
        let (config, environment) = (self.config(), self.environment());
        let signature =
            identity::signature(IdentityRole::Committer, Care::Lenient, config, environment)?;
        Ok(signature.to_string())
    }

    fn has_hook(&self) -> bool {
        hooks::has_programs(self, HOOK)
    }

    fn run_hook(&self, state: &str, input: Vec<u8>) -> Result<Option<i32>> {
        let call = hooks::HookCall {
            arguments: vec![OsStr::new(state)],
            input,
            ..hooks::HookCall::default()
        };
        hooks::run(self, HOOK, &call)
    }

    fn note_missing_target(&self, name: &BStr) {
        self.notify(Notice::MissingTarget(name.to_owned()));
    }
}
