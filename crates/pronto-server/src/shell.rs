//! A single request of a client that another SSH server has authenticated, which runs this code as
//! its forced command.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use pronto::Environment;
use pronto_io::interrupt::Interrupt;

use crate::admission::Admission;
use crate::config::ServerConfig;
use crate::directory::UserDirectory;
use crate::permission::{IdentityProof, Proven};
use crate::repositories::Repositories;
use crate::service::{GitService, RequestStreams};
use crate::state::Setup;
use crate::work::{AdmittedRequest, LONGEST_PROTOCOL, Requester, Services};
use crate::{Error, ErrorKind, Result, command};

/// The client, and the interfaces that the request uses.
pub struct Shell<'a> {
    /// The name of the user.
    pub user: &'a str,
    /// The address of the client.
    pub address: IpAddr,
    /// The value of `GIT_PROTOCOL`.
    pub protocol: Option<String>,
    /// The environment with which the repository is opened.
    pub environment: Environment,
    /// The implementation of the Git services.
    pub service: &'a dyn GitService,
    /// The flag that ends the request.
    pub interrupt: &'a Interrupt,
}

/// Serves a command with the rules of a configuration: `git-upload-pack 'PATH'` or another command
/// that [`command::parse`] accepts.
///
/// # Errors
/// Fails if the user does not exist or has no permission, the command is not supported, the
/// repository does not exist, or the service fails.
/// repository; or the service fails.
pub fn serve_command(
    shell: &Shell<'_>,
    config: ServerConfig,
    command: &[u8],
    streams: RequestStreams<'_>,
) -> Result<()> {
    let users = UserDirectory::open(config.users.clone())?;
    let repositories = match &config.store {
        Some(store) => {
            Repositories::of_store_for_command(store, &shell.environment, shell.interrupt)?
        }
        None => Repositories::open(&config.root, &shell.environment)?,
    };
    let setup = Setup {
        repositories,
        users,
        tls: None,
        ssh: None,
        admission: Arc::new(Admission::new(&config.limits)),
        certificate_end: None,
        config,
        successor: OnceLock::new(),
    };
    let Some(user) = setup.user_of(IdentityProof::Name(shell.user)) else {
        let message = format!("no user '{}'", shell.user);
        return Err(Error::new(ErrorKind::Denied, message));
    };
    let target = command::parse(command)?;
    let protocol = shell.protocol.clone();
    let work = AdmittedRequest {
        setup: Arc::new(setup),
        requester: Requester {
            user: Some(user),
            proven: Proven::Name,
            address: shell.address,
            protocol: "ssh",
            connection: None,
        },
        target,
        protocol: protocol.filter(|text| text.len() <= LONGEST_PROTOCOL),
        tally: Arc::default(),
        allowance: OnceLock::new(),
    };
    work.check()?;
    let repository = work.open()?;
    let services = Services {
        service: shell.service,
        interrupt: shell.interrupt,
    };
    work.converse(&repository, &services, streams)
}
