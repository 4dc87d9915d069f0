//! A Git request with an identified user: its authorization, slot, limits and repository. The code
//! is the same for each protocol.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use pronto::receive_pack::{PackLimit, PushBounds};
use pronto_io::budget::RequestBudget;
use pronto_io::interrupt::Interrupt;

use crate::access::RequestedRefChange;
use crate::admission::{AdmittedConnection, RequestSlot, SlotOwner};
use crate::bridge::{Bounded, ClientPatience};
use crate::open_repository::OpenRepository;
use crate::permission::{Proven, Question, RepositoryAction, needs_token};
use crate::quota::Allowance;
use crate::repositories::PushClient;
use crate::route::{RequestTarget, RequestedService};
use crate::service::{self, GitService, PushPolicy, RequestStreams};
use crate::state::{ServerState, Setup};
use crate::store::Tally;
use crate::watched::{self, RevocableInput};
use crate::{Error, ErrorKind, Result};

/// The largest length of the value of `GIT_PROTOCOL` and its equivalents.
pub(crate) const LONGEST_PROTOCOL: usize = 1024;

/// The client of a request.
#[derive(Clone, Debug)]
pub(crate) struct Requester {
    /// The name of the user, if the client has authenticated.
    pub(crate) user: Option<Arc<str>>,
    /// The proof of the user.
    pub(crate) proven: Proven,
    /// The address of the client.
    pub(crate) address: IpAddr,
    /// The protocol: `http`, `git`, `ssh` or `netsync`.
    pub(crate) protocol: &'static str,
    /// The connection, if it belongs to this server.
    pub(crate) connection: Option<Arc<AdmittedConnection>>,
}

/// The Git services, and the flag that ends their requests.
pub(crate) struct Services<'a> {
    pub(crate) service: &'a dyn GitService,
    pub(crate) interrupt: &'a Interrupt,
}

impl<'a> Services<'a> {
    /// Returns the services of a server.
    pub(crate) fn of(state: &'a ServerState) -> Self {
        Services {
            service: state.service.as_ref(),
            interrupt: &state.stop,
        }
    }
}

/// A request that is authorized.
pub(crate) struct AdmittedRequest {
    pub(crate) setup: Arc<Setup>,
    pub(crate) requester: Requester,
    pub(crate) target: RequestTarget,
    /// The value of the header `Git-Protocol`, or its equivalent.
    pub(crate) protocol: Option<String>,
    /// The counts of calls of the store.
    pub(crate) tally: Arc<Tally>,
    /// The remaining quotas for a push, after the repository was measured.
    pub(crate) allowance: OnceLock<Option<Allowance>>,
}

impl AdmittedRequest {
    /// Returns the permission check for the request.
    pub(crate) fn question(&self) -> Question<'_> {
        Question {
            user: self.user(),
            protocol: self.requester.protocol,
            repository: &self.target.name,
            action: self.target.service.into(),
        }
    }

    /// Checks the role of the client.
    ///
    /// # Errors
    /// Fails for the same reasons as [`Setup::may`].
    pub(crate) fn check(&self) -> Result<()> {
        self.setup.may(&self.question())
    }

    /// Waits for a slot.
    ///
    /// # Errors
    /// Fails if the queue is full, the wait exceeds its timeout, or the connection has ended.
    pub(crate) async fn slot(&self) -> Result<RequestSlot> {
        let connection = self.requester.connection.as_ref();
        self.setup.admission.slot(&self.owner(), connection).await
    }

    /// Returns the memory budget of the request.
    pub(crate) fn budget(&self) -> Arc<RequestBudget> {
        Arc::new(self.setup.admission.budget(&self.owner()))
    }

    fn owner(&self) -> SlotOwner {
        let user = self.requester.user.as_ref();
        self.setup.owner(user, self.requester.address)
    }

    /// Returns the timeouts of the client from now on. The client may lose its slot before they
    /// expire.
    pub(crate) fn patience(&self, slot: &RequestSlot) -> ClientPatience {
        ClientPatience::of(&self.setup.config.limits, slot.peer())
    }

    /// Returns the flag that ends the request. An archive may wait for a program and not only for
    /// its client, so this flag is also triggered by the timeout of the request.
    pub(crate) fn interrupt(&self, server: &Interrupt) -> Interrupt {
        match self.target.service {
            RequestedService::UploadArchive => {
                server.until(Instant::now() + self.setup.config.limits.request)
            }
            RequestedService::UploadPack | RequestedService::ReceivePack => server.clone(),
        }
    }

    /// Returns the largest number of bytes that the client may send.
    pub(crate) fn most_bytes(&self) -> u64 {
        let limits = &self.setup.config.limits;
        match self.target.service {
            RequestedService::UploadPack | RequestedService::UploadArchive => limits.fetch_bytes,
            RequestedService::ReceivePack => limits.push_bytes,
        }
    }

    /// Opens the repository. A push creates a missing repository if the configuration allows it
    /// (`create_on_push`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::NotFound`] if the repository does not exist and may not be created,
    /// and for other reasons if it cannot be opened.
    pub(crate) fn open(&self) -> Result<OpenRepository> {
        let entered = self.tally.enter();
        let repository = self.find_or_create().and_then(|repository| {
            self.setup.may_in(&self.question(), &repository)?;
            Ok(repository)
        });
        let repository = repository.map_err(|error| self.unknown(error))?;
        Ok(repository.holding(Box::new(entered)))
    }

    fn find_or_create(&self) -> Result<OpenRepository> {
        let (config, name) = (&self.setup.config, &self.target.name);
        match self.find() {
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && self.target.service == RequestedService::ReceivePack
                    && config.create_on_push =>
            {
                let managing = Question {
                    action: RepositoryAction::Manage,
                    ..self.question()
                };
                self.setup.may(&managing)?;
                match self.setup.create(name) {
                    // Another push has created the repository in the meantime.
                    Err(error) if error.kind() != ErrorKind::Exists => Err(error),
                    _ => self.find(),
                }
            }
            found => found,
        }
    }

    /// Converts the error about a missing repository. If repositories are hidden from clients
    /// without a user, HTTP clients are asked to authenticate, whether or not the repository
    /// exists.
    fn unknown(&self, error: Error) -> Error {
        let may_have_user = self.requester.user.is_none() && self.requester.protocol == "http";
        let is_unknown = error.kind() == ErrorKind::NotFound;
        match self.setup.config.require_export_ok && may_have_user && is_unknown {
            true => needs_token(),
            false => error,
        }
    }

    fn find(&self) -> Result<OpenRepository> {
        let (repositories, name) = (&self.setup.repositories, &self.target.name);
        match self.target.service {
            RequestedService::UploadPack | RequestedService::UploadArchive => {
                repositories.find(name)
            }
            RequestedService::ReceivePack => {
                let client = PushClient {
                    user: self.user(),
                    address: self.requester.address,
                    protocol: self.requester.protocol,
                };
                repositories.find_for_push(name, &client)
            }
        }
    }

    /// Serves the request on its own connection, from the advertisement to its end.
    ///
    /// # Errors
    /// Fails if the client violates the protocol, or the service fails.
    pub(crate) fn converse(
        &self,
        repository: &OpenRepository,
        services: &Services<'_>,
        streams: RequestStreams<'_>,
    ) -> Result<()> {
        let RequestStreams { input, output } = streams;
        let interrupt = self.interrupt(services.interrupt);
        let request = service::Request {
            repository,
            protocol: self.protocol.as_deref(),
            interrupt: &interrupt,
            budget: &self.budget(),
        };
        let is_revoked = || self.is_revoked();
        let mut input = Bounded::new(RevocableInput::new(input, is_revoked), self.most_bytes());
        let streams = RequestStreams {
            input: &mut input,
            output,
        };
        let served = match self.target.service {
            RequestedService::UploadPack => services.service.serve_fetch(&request, streams),
            RequestedService::UploadArchive => services.service.serve_archive(&request, streams),
            RequestedService::ReceivePack => services.service.serve_push(&request, self, streams),
        };
        let served = watched::judged(input.judged(served), is_revoked);
        let flushed = output.flush().map_err(|error| {
            Error::new(ErrorKind::Failed, "lost the connection to the client").because(error)
        });
        served.and(flushed)
    }

    /// Returns whether the request has lost its authorization, because its user, token or key was
    /// removed, or a reload has removed the role.
    pub(crate) fn is_revoked(&self) -> bool {
        let newest = self.setup.newest();
        if newest.is_some_and(|newest| newest.may(&self.question()).is_err()) {
            return true;
        }
        let setup = newest.unwrap_or(&self.setup);
        let proven = &self.requester.proven;
        self.user()
            .is_some_and(|user| !setup.is_still(user, proven))
    }

    fn user(&self) -> Option<&str> {
        self.requester.user.as_deref()
    }
}

impl PushPolicy for AdmittedRequest {
    fn pack_limit(&self, repository: &OpenRepository) -> Result<Option<PackLimit>> {
        let name = self.target.name.as_str();
        let allowance = Allowance::of(&self.setup.config.quotas, name, repository)?;
        // A request contains one push.
        let allowance = self.allowance.get_or_init(|| allowance);
        Ok(allowance.as_ref().and_then(Allowance::pack_limit))
    }

    fn bounds(&self) -> PushBounds {
        let allowance = self.allowance.get().and_then(Option::as_ref);
        allowance.map(Allowance::bounds).unwrap_or_default()
    }

    fn command_bytes(&self) -> u64 {
        self.setup.config.limits.command_bytes
    }

    fn refusal(&self, change: &RequestedRefChange<'_>) -> Option<String> {
        let refused = self.setup.may_change(&self.question(), change);
        let allowance = self.allowance.get().and_then(Option::as_ref);
        refused.or_else(|| allowance.and_then(|allowance| allowance.refusal(change)))
    }

    fn forbids_force(&self, name: &[u8]) -> Option<String> {
        self.setup.forbids_force(&self.question(), name)
    }
}

/// A guard that counts a request with a slot as in flight.
pub(crate) struct UnderWay(Arc<ServerState>);

impl UnderWay {
    pub(crate) fn new(state: &Arc<ServerState>) -> Self {
        state.metrics.under_way.inc();
        UnderWay(Arc::clone(state))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.metrics.under_way.dec();
    }
}
