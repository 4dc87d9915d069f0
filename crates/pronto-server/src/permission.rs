//! Authentication and authorization of clients, with the same decisions for HTTP, HTTP/2, SSH,
//! `shell`, `git://`, netsync, the JSON API, archives and bundles.
//!
//! A protocol obtains the proof of identity of a client, and resolves the user here for each
//! request. Authorization is checked before a repository is opened ([`Setup::may`]), when its
//! configuration is available ([`Setup::may_in`]), and for each ref update ([`Setup::may_change`]).

use std::sync::Arc;

use crate::access::{AccessRole, RequestedRefChange};
use crate::certificate::CertificateNames;
use crate::config::DaemonPush;
use crate::keys::KeyHash;
use crate::names::RepositoryName;
use crate::open_repository::OpenRepository;
use crate::route::RequestedService;
use crate::state::Setup;
use crate::token::TokenHash;
use crate::{Error, ErrorKind, Result};

/// The proof that a client acts for a user.
#[derive(Clone, Copy)]
pub(crate) enum IdentityProof<'a> {
    /// A token.
    Token(&'a [u8]),
    /// A public key. The client has proved that it holds the private key.
    Key(&'a KeyHash),
    /// A client certificate. The client has proved that it holds the private key.
    Certificate(&'a CertificateNames),
    /// The name of the user, from another program that has authenticated the client.
    Name(&'a str),
}

/// The proof of the user of a request, for checking later whether the proof is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    Token(TokenHash),
    Key(KeyHash),
    /// A certificate, or authentication by another program. The user must exist.
    Name,
}

/// An action on a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepositoryAction {
    /// Read refs and objects, also as a bundle, or by netsync.
    Fetch,
    /// Create an archive.
    Archive,
    /// Update refs, by a push or by netsync.
    Push,
    /// Create or remove the repository.
    Manage,
}

impl From<RequestedService> for RepositoryAction {
    fn from(service: RequestedService) -> Self {
        match service {
            RequestedService::UploadPack => RepositoryAction::Fetch,
            RequestedService::UploadArchive => RepositoryAction::Archive,
            RequestedService::ReceivePack => RepositoryAction::Push,
        }
    }
}

/// A permission check: whether this client may perform this action on this repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The user, or `None` for a client without a user.
    pub(crate) user: Option<&'a str>,
    /// The protocol: `http`, `git`, `ssh` or `netsync`.
    pub(crate) protocol: &'static str,
    /// The repository.
    pub(crate) repository: &'a RepositoryName,
    /// The action.
    pub(crate) action: RepositoryAction,
}

impl Question<'_> {
    fn not_found(&self) -> Error {
        let message = format!("there is no repository '{}'", self.repository);
        Error::new(ErrorKind::NotFound, message)
    }

    /// Returns the setting of the repository that allows or forbids the action, if there is one:
    /// `http.*` for HTTP, and `daemon.*` for `git://` and for clients without a user in any other
    /// protocol.
    fn setting(&self) -> Option<&'static str> {
        match (self.protocol, self.user, self.action) {
            ("http", _, RepositoryAction::Fetch) => Some("http.uploadpack"),
            ("http", _, RepositoryAction::Archive) => Some("http.uploadarchive"),
            ("http", _, RepositoryAction::Push) => Some("http.receivepack"),
            (_, Some(_), _) | (_, _, RepositoryAction::Manage) => None,
            (_, None, RepositoryAction::Fetch) => Some("daemon.uploadpack"),
            (_, None, RepositoryAction::Archive) => Some("daemon.uploadarch"),
            (_, None, RepositoryAction::Push) => Some("daemon.receivepack"),
        }
    }
}

/// Returns the error for a client without a user that has no permissions.
pub(crate) fn needs_token() -> Error {
    let message = "authentication required: use a token as the password";
    Error::new(ErrorKind::Unauthenticated, message)
}

impl Setup {
    /// Returns the user that a proof identifies, if the file of users currently contains the user.
    pub(crate) fn user_of(&self, proof: IdentityProof<'_>) -> Option<Arc<str>> {
        self.users.find(|known| match proof {
            IdentityProof::Token(token) => known.user_of(token).cloned(),
            IdentityProof::Key(key) => known.user_of_key(key).cloned(),
            IdentityProof::Name(name) => known.named(name).cloned(),
            IdentityProof::Certificate(names) => {
                let user = self.config.certificate_user(names)?;
                known.named(user).cloned()
            }
        })
    }

    /// Returns whether the file of users still contains the user, and the token or key that
    /// identified the user.
    pub(crate) fn is_still(&self, user: &str, proven: &Proven) -> bool {
        let found = self.users.find(|known| match proven {
            Proven::Token(hash) => known.user_of_hash(hash).cloned(),
            Proven::Key(key) => known.user_of_key(key).cloned(),
            Proven::Name => known.named(user).cloned(),
        });
        found.is_some_and(|found| *found == *user)
    }

    /// Checks the roles for an action.
    ///
    /// # Errors
    /// - [`ErrorKind::Unauthenticated`] if the client has no user.
    /// - [`ErrorKind::NotFound`] for a user without read access, so that names of repositories stay
    ///   secret.
    /// - [`ErrorKind::Denied`] for any other user without permission.
    pub(crate) fn may(&self, question: &Question<'_>) -> Result<()> {
        let Question { user, action, .. } = question;
        let needed = match action {
            RepositoryAction::Fetch | RepositoryAction::Archive => AccessRole::Read,
            RepositoryAction::Push => AccessRole::Write,
            RepositoryAction::Manage => AccessRole::Admin,
        };
        let role = (self.config.access).role(*user, question.repository.as_str());
        if role.is_some_and(|role| role >= needed) {
            return Ok(());
        }
        if user.is_none() {
            return Err(needs_token());
        }
        if role.is_none() {
            return Err(question.not_found());
        }
        let message = match action {
            RepositoryAction::Fetch | RepositoryAction::Archive => {
                "you may not read this repository"
            }
            RepositoryAction::Push => "you may not push to this repository",
            RepositoryAction::Manage => "you may not manage this repository",
        };
        Err(Error::new(ErrorKind::Denied, message))
    }

    /// Checks the repository for an action: its export mark for clients without a user, and the
    /// services that its configuration allows. An archive costs the server more than a fetch, so
    /// the repository must allow archives for clients without a user.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`] if the existence of the repository is secret from the client.
    /// - [`ErrorKind::Denied`] if the configuration forbids the action.
    /// - [`ErrorKind::Failed`] if a setting is not a boolean.
    pub(crate) fn may_in(
        &self,
        question: &Question<'_>,
        repository: &OpenRepository,
    ) -> Result<()> {
        if question.user.is_none() && self.config.require_export_ok && !is_marked(repository) {
            return Err(question.not_found());
        }
        let Some(setting) = question.setting() else {
            return Ok(());
        };
        let by_default = match question.action {
            RepositoryAction::Archive => question.user.is_some(),
            RepositoryAction::Push if question.protocol == "git" => {
                self.config.daemon_push == DaemonPush::Always
            }
            _ => true,
        };
        let is_allowed = repository.config().bool_or(setting, by_default);
        match is_allowed.map_err(|error| error.map_kind(|_| ErrorKind::Failed))? {
            true => Ok(()),
            false => {
                let message = format!("the repository forbids this: see its setting {setting}");
                Err(Error::new(ErrorKind::Denied, message))
            }
        }
    }

    /// Returns the reason for which a client may not update a ref, or `None` if the update is
    /// allowed. A later check, [`forbids_force`](Self::forbids_force), decides about updates that
    /// are not fast-forwards.
    pub(crate) fn may_change(
        &self,
        question: &Question<'_>,
        change: &RequestedRefChange<'_>,
    ) -> Option<String> {
        let access = &self.config.access;
        access.refusal(question.user, question.repository.as_str(), change)
    }

    /// Returns the reason for which a ref accepts only fast-forwards, or `None` if other updates
    /// are allowed.
    pub(crate) fn forbids_force(&self, question: &Question<'_>, name: &[u8]) -> Option<String> {
        let access = &self.config.access;
        access.forbids_force(question.repository.as_str(), name)
    }
}

/// Returns whether a repository is marked for export to all clients: by a file, or by its
/// configuration in a store, which has no files.
fn is_marked(repository: &OpenRepository) -> bool {
    match repository.is_view() {
        false => repository
            .git_dir()
            .join(pronto_store::EXPORT_OK_FILE)
            .exists(),
        true => {
            let marked = repository.config().bool(pronto_store::EXPORT_OK);
            matches!(marked, Ok(Some(true)))
        }
    }
}
