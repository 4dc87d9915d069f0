//! Users and permissions of clients: the same answers for HTTP, HTTP/2, SSH, `shell`, `git://`, netsync, the
//! interface for programs, archives and bundles.
//!
//! A protocol finds the proof of a client, and asks here who that is, at each request. It asks here whether a request is
//! allowed, before a repository is opened ([`Setup::may`]) and when its configuration is known
//! ([`Setup::may_in`]), and for each change of a ref ([`Setup::may_change`]).

use std::sync::Arc;

use crate::access::{RefChange, Role};
use crate::certificate::CertificateNames;
use crate::config::DaemonPush;
use crate::keys::KeyHash;
use crate::names::RepositoryName;
use crate::opened::Opened;
use crate::route::Service;
use crate::state::Setup;
use crate::token::TokenHash;
use crate::{Error, ErrorKind, Result};

/// The proof of a client that it acts for a user.
#[derive(Clone, Copy)]
pub(crate) enum Proof<'a> {
    /// A token.
    Token(&'a [u8]),
    /// A public key whose private key the client has.
    Key(&'a KeyHash),
    /// A certificate whose private key the client has.
    Certificate(&'a CertificateNames),
    /// The name of the user, from another program that has authenticated the client.
    Name(&'a str),
}

/// The proof of the user of a request, to ask again whether it still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    Token(TokenHash),
    Key(KeyHash),
    /// A certificate, or another program: the user has to exist.
    Name,
}

/// An action on a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// To read refs and objects, also as a bundle, or by netsync.
    Fetch,
    /// To have an archive made.
    Archive,
    /// To change refs, by a push or by netsync.
    Push,
    /// To create or remove the repository.
    Manage,
}

impl From<Service> for Action {
    fn from(service: Service) -> Self {
        match service {
            Service::UploadPack => Action::Fetch,
            Service::UploadArchive => Action::Archive,
            Service::ReceivePack => Action::Push,
        }
    }
}

/// A question: whether this client may do this to this repository.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The user; `None` for a client without one.
    pub(crate) user: Option<&'a str>,
    /// The protocol: `http`, `git`, `ssh` or `netsync`.
    pub(crate) protocol: &'static str,
    /// The repository.
    pub(crate) repository: &'a RepositoryName,
    /// The action.
    pub(crate) action: Action,
}

impl Question<'_> {
    fn not_found(&self) -> Error {
        let message = format!("there is no repository '{}'", self.repository);
        Error::new(ErrorKind::NotFound, message)
    }

    /// Returns the setting of the repository that allows or forbids the action, if there is one: that of HTTP for HTTP,
    /// and that of the daemon for `git://` and for clients without a user in any other protocol.
    fn setting(&self) -> Option<&'static str> {
        match (self.protocol, self.user, self.action) {
            ("http", _, Action::Fetch) => Some("http.uploadpack"),
            ("http", _, Action::Archive) => Some("http.uploadarchive"),
            ("http", _, Action::Push) => Some("http.receivepack"),
            (_, Some(_), _) | (_, _, Action::Manage) => None,
            (_, None, Action::Fetch) => Some("daemon.uploadpack"),
            (_, None, Action::Archive) => Some("daemon.uploadarch"),
            (_, None, Action::Push) => Some("daemon.receivepack"),
        }
    }
}

/// The error for a client without a user who may do nothing.
pub(crate) fn needs_token() -> Error {
    let message = "a token is needed: use it as the password";
    Error::new(ErrorKind::Unauthenticated, message)
}

impl Setup {
    /// Returns the user that a proof stands for, if the file of users has it at this moment.
    pub(crate) fn user_of(&self, proof: Proof<'_>) -> Option<Arc<str>> {
        self.users.find(|known| match proof {
            Proof::Token(token) => known.user_of(token).cloned(),
            Proof::Key(key) => known.user_of_key(key).cloned(),
            Proof::Name(name) => known.named(name).cloned(),
            Proof::Certificate(names) => {
                let user = self.config.certificate_user(names)?;
                known.named(user).cloned()
            }
        })
    }

    /// Returns whether the file of users still has a user, and the token or key that has proved it.
    pub(crate) fn is_still(&self, user: &str, proven: &Proven) -> bool {
        let found = self.users.find(|known| match proven {
            Proven::Token(hash) => known.user_of_hash(hash).cloned(),
            Proven::Key(key) => known.user_of_key(key).cloned(),
            Proven::Name => known.named(user).cloned(),
        });
        found.is_some_and(|found| *found == *user)
    }

    /// Answers a question as far as roles do.
    ///
    /// # Errors
    /// [`ErrorKind::Unauthenticated`] without a user; [`ErrorKind::NotFound`] for a user who may not
    /// even read, so that names of repositories stay unknown; else [`ErrorKind::Denied`].
    pub(crate) fn may(&self, question: &Question<'_>) -> Result<()> {
        let Question { user, action, .. } = question;
        let needed = match action {
            Action::Fetch | Action::Archive => Role::Read,
            Action::Push => Role::Write,
            Action::Manage => Role::Admin,
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
            Action::Fetch | Action::Archive => "you may not read this repository",
            Action::Push => "you may not push to this repository",
            Action::Manage => "you may not manage this repository",
        };
        Err(Error::new(ErrorKind::Denied, message))
    }

    /// Answers a question as far as the repository itself does: by its mark for clients without a user, and by the
    /// services that its configuration allows. An archive costs the server more than a fetch, so a repository has to
    /// allow it to clients without a user.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: the client may not know that there is such a repository. [`ErrorKind::Denied`]. A
    /// setting is no boolean.
    pub(crate) fn may_in(&self, question: &Question<'_>, repository: &Opened) -> Result<()> {
        if question.user.is_none() && self.config.require_export_ok && !is_marked(repository) {
            return Err(question.not_found());
        }
        let Some(setting) = question.setting() else {
            return Ok(());
        };
        let by_default = match question.action {
            Action::Archive => question.user.is_some(),
            Action::Push if question.protocol == "git" => {
                self.config.daemon_push == DaemonPush::Always
            }
            _ => true,
        };
        let is_allowed = repository.config().bool_or(setting, by_default);
        match is_allowed.map_err(|error| error.map_kind(|_| ErrorKind::Failed))? {
            true => Ok(()),
            false => {
                let message = format!("the repository does not allow this: {setting}");
                Err(Error::new(ErrorKind::Denied, message))
            }
        }
    }

    /// Returns why a client may not change a ref; `None` if it may. Whether the change is a fast-forward is known later:
    /// [`forbids_force`](Self::forbids_force).
    pub(crate) fn may_change(
        &self,
        question: &Question<'_>,
        change: &RefChange<'_>,
    ) -> Option<String> {
        let access = &self.config.access;
        access.refusal(question.user, question.repository.as_str(), change)
    }

    /// Returns why a ref may only be fast-forwarded; `None` if it may be forced.
    pub(crate) fn forbids_force(&self, question: &Question<'_>, name: &[u8]) -> Option<String> {
        let access = &self.config.access;
        access.forbids_force(question.repository.as_str(), name)
    }
}

/// Returns whether a repository is marked for everyone: by a file, or in a store, which has no files, by its
/// configuration.
fn is_marked(repository: &Opened) -> bool {
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
