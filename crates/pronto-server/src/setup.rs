//! The setup of a server: what follows from its configuration, and what a reload replaces.

use std::sync::{Arc, OnceLock};

use pronto::Environment;

use crate::admission::Admission;
use crate::config::ServerConfig;
use crate::directory::UserDirectory;
use crate::repositories::Repositories;
use crate::secret::MissingKey;
use crate::state::Setup;
use crate::{Error, ErrorKind, Result, cache_directory, ssh, tls};

/// The only user of a server without a file of users.
#[derive(Clone, Debug)]
pub struct ImplicitUser {
    /// The name of the user.
    pub name: String,
    /// The token of the user.
    pub token: String,
}

/// The purpose for which a setup is created.
pub(crate) enum SetupPurpose<'a> {
    /// The start of a server, with its only user if it has no file of users.
    Start(Option<&'a ImplicitUser>),
    /// A reload, which replaces this setup.
    Reload(&'a Setup),
}

/// Creates the setup of a configuration.
///
/// # Errors
/// Fails if a file or directory does not exist, or cannot be used.
pub(crate) fn setup(
    config: ServerConfig,
    environment: &Environment,
    purpose: &SetupPurpose<'_>,
) -> Result<Setup> {
    let users = match purpose {
        SetupPurpose::Start(Some(owner)) => UserDirectory::with_one(&owner.name, &owner.token),
        _ => UserDirectory::open(config.users.clone())?,
    };
    // A reload keeps the counts of connections and requests if the limits are unchanged.
    let admission = match purpose {
        SetupPurpose::Reload(before) if before.config.limits == config.limits => {
            Arc::clone(&before.admission)
        }
        SetupPurpose::Reload(before) => Arc::new(before.admission.with_limits(&config.limits)),
        SetupPurpose::Start(_) => Arc::new(Admission::new(&config.limits)),
    };
    // Without a configuration, the directory is only a default. If it cannot be used, packs that need it
    // are not cached. A reload does not change the directory.
    if let SetupPurpose::Start(None) = purpose {
        cache_directory::prepare(&config.cache)?;
    }
    let has_ssh = !config.ssh.listen.is_empty();
    let ssh = match purpose {
        SetupPurpose::Start(_) if has_ssh => Some(ssh::setup(&config.ssh, MissingKey::Make)?),
        SetupPurpose::Start(_) => None,
        // A reload does not change the addresses, and therefore not the key.
        SetupPurpose::Reload(before) if has_ssh && before.ssh.is_some() => {
            Some(ssh::setup(&config.ssh, MissingKey::Refuse)?)
        }
        SetupPurpose::Reload(before) => before.ssh.clone(),
    };
    let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
    let certificate_end = config.tls.as_ref().map(tls::end).transpose()?.flatten();
    Ok(Setup {
        repositories: repositories(&config, environment, purpose)?,
        tls,
        ssh,
        users,
        admission,
        certificate_end,
        config,
        successor: OnceLock::new(),
    })
}

/// Opens the repositories of a configuration.
fn repositories(
    config: &ServerConfig,
    environment: &Environment,
    purpose: &SetupPurpose<'_>,
) -> Result<Repositories> {
    check_netsync(config)?;
    match (purpose, &config.store) {
        (SetupPurpose::Start(_), None) => Repositories::open(&config.root, environment),
        (SetupPurpose::Start(_), Some(store)) => {
            let found = Repositories::of_store_with_cache(store, environment)?;
            match found.store() {
                Some(store) => store.check_start().map(|()| found.clone()),
                None => Ok(found),
            }
        }
        (SetupPurpose::Reload(before), store) => match (before.repositories.store(), store) {
            (None, None) => Repositories::open(&config.root, environment),
            (Some(running), Some(store)) => {
                running.reload(store);
                Ok(before.repositories.clone())
            }
            // A reload neither begins nor ends the use of a store.
            (Some(_), None) | (None, Some(_)) => Ok(before.repositories.clone()),
        },
    }
}

/// Checks that netsync is not to serve a store.
///
/// # Errors
/// Fails with [`ErrorKind::Config`] if it is.
pub(crate) fn check_netsync(config: &ServerConfig) -> Result<()> {
    if config.store.is_some() && !config.netsync.listen.is_empty() {
        let message = "netsync cannot serve repositories in a store; remove the section [netsync]";
        return Err(Error::new(ErrorKind::Config, message));
    }
    Ok(())
}
