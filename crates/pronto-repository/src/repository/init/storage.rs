//! The storage of refs of a new repository.

use bstr::{BStr, ByteSlice};

use super::Options;
use crate::config::Config;
use crate::environment::Environment;
use crate::refs::{RefName, bad_name};
use crate::repository::notice::unknown_storage;
use crate::repository::{Notice, RefStorage, RepositoryFormat};
use crate::{Error, ErrorKind, Repository, Result};

/// The selected storage of refs.
#[derive(Debug)]
#[non_exhaustive]
pub struct StorageChoice {
    /// The storage format (`files` or `reftable`).
    pub storage: RefStorage,
    /// A warning about an unknown configured value.
    pub warning: Option<Notice>,
}

impl StorageChoice {
    /// Selects the storage of an existing or new repository: that of the existing repository,
    /// `options`, `GIT_DEFAULT_REF_FORMAT`, `init.defaultRefFormat` or `feature.experimental`, in this
    /// order.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if the requested storage is unknown, or differs from that
    /// of the existing repository.
    pub(super) fn of(
        existing: Option<&RepositoryFormat>,
        options: &Options,
        config: &Config,
        environment: &Environment,
    ) -> Result<StorageChoice> {
        let Some(format) = existing else {
            return Self::of_new(options.ref_storage, config, environment);
        };
        let storage = options.ref_storage.unwrap_or(format.ref_storage);
        if storage != format.ref_storage {
            let message =
                "attempt to reinitialize repository with different reference storage format";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(StorageChoice {
            storage,
            warning: None,
        })
    }

    /// Selects the storage of a new repository: `wanted`, or else the one that the environment or
    /// configuration names.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::InvalidInput`] if `GIT_DEFAULT_REF_FORMAT` names an unknown storage, or
    /// [`ErrorKind::ConfigValue`] if a setting is not of its type.
    pub fn of_new(
        wanted: Option<RefStorage>,
        config: &Config,
        environment: &Environment,
    ) -> Result<StorageChoice> {
        let plain = |storage| StorageChoice {
            storage,
            warning: None,
        };
        if let Some(wanted) = wanted {
            return Ok(plain(wanted));
        }
        if let Some(name) = environment.bytes("GIT_DEFAULT_REF_FORMAT") {
            let unknown = || Error::new(ErrorKind::InvalidInput, unknown_storage(name.as_bstr()));
            let named = RefStorage::named(name.as_bstr());
            return named.map(plain).ok_or_else(unknown);
        }
        let name = config.string("init.defaultrefformat")?;
        if let Some(named) = name.and_then(RefStorage::named) {
            return Ok(plain(named));
        }
        let storage = match name.is_none() && config.bool_or("feature.experimental", false)? {
            true => RefStorage::Reftable,
            false => RefStorage::Files,
        };
        Ok(StorageChoice {
            storage,
            warning: name.map(|name| Notice::UnknownRefStorage(name.to_owned())),
        })
    }
}

/// Points `HEAD` of a new repository with reftables to `branch`.
pub(super) fn write_first_head(repository: &Repository, branch: &BStr) -> Result<()> {
    let full = [b"refs/heads/", branch.as_bytes()].concat();
    let mut transaction = repository.transaction();
    transaction.set_symbolic("HEAD", RefName::new(full).map_err(bad_name)?, None);
    transaction.commit()
}
