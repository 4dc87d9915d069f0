//! The policy of a connection: login attempts, and the start of requests.

use std::sync::Arc;

use russh::keys::PublicKey;
use russh::server::{Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelOpenFailure, Error, Pty};

use super::exec::Exec;
use super::link::{OpenChannel, REFUSED, SshConnection};
use crate::access::ANONYMOUS;
use crate::keys::{KeyHash, hash, is_accepted};
use crate::permission::{IdentityProof, Proven};
use crate::work::LONGEST_PROTOCOL;

/// The largest number of channels of a connection over its lifetime. The library keeps some memory
/// for each channel.
const MOST_CHANNELS: usize = 1024;

/// The smallest packet size of a client that is served, because each packet costs the server work.
const SMALLEST_PACKET: u32 = 1024;

/// A user who has authenticated.
#[derive(Clone)]
pub(super) struct SshLogin {
    user: Arc<str>,
    key: KeyHash,
}

/// The handler of a connection.
pub(super) struct SshSession {
    link: Arc<SshConnection>,
    /// The authenticated user, or `None` for anonymous, and before the login.
    login: Option<SshLogin>,
    /// The number of channels that the client has opened over the lifetime of the connection.
    channels: usize,
}

impl SshSession {
    pub(super) fn new(link: &Arc<SshConnection>) -> Self {
        SshSession {
            link: Arc::clone(link),
            login: None,
            channels: 0,
        }
    }

    /// Returns the user of a key, if the server accepts login attempts from the address.
    fn user_of(&self, key: &PublicKey) -> Option<SshLogin> {
        let setup = self.link.state.setup();
        (setup.admission)
            .may_authenticate(self.link.address.ip())
            .ok()?;
        let key = hash(key);
        let user = setup.user_of(IdentityProof::Key(&key))?;
        Some(SshLogin { user, key })
    }

    /// Checks that the channel has a request.
    ///
    /// # Errors
    /// Fails if the channel still waits for its request.
    fn check_has_request(&self, channel: ChannelId) -> Result<(), Error> {
        match self.link.change(channel, |_| ()) {
            true => Err(Error::Inconsistent),
            false => Ok(()),
        }
    }

    fn refuse(&self) -> Auth {
        self.link.refused();
        Auth::reject()
    }

    /// Returns the user, or an error if the user has lost the key since the login.
    fn user(&self) -> Result<Option<Arc<str>>, crate::Error> {
        let Some(login) = &self.login else {
            return Ok(None);
        };
        let found = self
            .link
            .state
            .setup()
            .user_of(IdentityProof::Key(&login.key));
        match found.filter(|found| *found == login.user) {
            Some(user) => Ok(Some(user)),
            None => {
                let message = "the key of this connection was removed";
                Err(crate::Error::new(crate::ErrorKind::Denied, message))
            }
        }
    }
}

impl Handler for SshSession {
    type Error = Error;

    /// Records the end of the handshake. The banner is an error message if login attempts from the
    /// address are refused.
    async fn authentication_banner(&mut self) -> Result<Option<String>, Error> {
        self.link.encrypted();
        let setup = self.link.state.setup();
        let checked = setup.admission.may_authenticate(self.link.address.ip());
        Ok(checked.err().map(|error| format!("{}\n", error.message())))
    }

    /// Accepts the method `none` only for anonymous. Clients try this method first, so its success
    /// would prevent authentication with a key.
    async fn auth_none(&mut self, user: &str) -> Result<Auth, Error> {
        let setup = self.link.state.setup();
        if user == ANONYMOUS && setup.config.access.knows_anonymous() {
            self.link.authenticated(None);
            return Ok(Auth::Accept);
        }
        Ok(Auth::reject())
    }

    async fn auth_password(&mut self, _user: &str, _password: &str) -> Result<Auth, Error> {
        Ok(self.refuse())
    }

    async fn auth_publickey_offered(
        &mut self,
        _user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Error> {
        let is_good = is_accepted(offer.algorithm) && self.user_of(offer.public_key).is_some();
        Ok(match is_good {
            true => Auth::Accept,
            false => self.refuse(),
        })
    }

    async fn auth_publickey(
        &mut self,
        _user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Error> {
        let login = is_accepted(key.algorithm).then(|| self.user_of(key.public_key));
        self.login = login.flatten();
        Ok(match &self.login {
            Some(login) => {
                self.link.authenticated(Some(&login.user));
                Auth::Accept
            }
            None => self.refuse(),
        })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        self.channels += 1;
        if self.channels > 2 * MOST_CHANNELS {
            return Err(Error::RequestDenied);
        }
        let is_late = self.link.is_draining() || self.channels > MOST_CHANNELS;
        match OpenChannel::new(&self.link) {
            Some(open) if !is_late => {
                self.link.wait(channel, open);
                reply.accept().await;
            }
            _ => reply.reject(ChannelOpenFailure::ResourceShortage).await,
        }
        Ok(())
    }

    async fn channel_close(
        &mut self,
        channel: ChannelId,
        _session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        self.link.take(channel);
        Ok(())
    }

    /// Passes data to a request. Data without a request is refused, because it would stay in
    /// memory.
    async fn data(
        &mut self,
        channel: ChannelId,
        _data: &[u8],
        _session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        self.check_has_request(channel)
    }

    async fn extended_data(
        &mut self,
        channel: ChannelId,
        _code: u32,
        _data: &[u8],
        _session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        self.check_has_request(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        name: &str,
        value: &str,
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        let is_taken = name == "GIT_PROTOCOL"
            && value.len() <= LONGEST_PROTOCOL
            && self.link.change(channel, |waiting| {
                waiting.protocol = Some(value.to_owned());
            });
        match is_taken {
            true => session.channel_success(channel),
            false => session.channel_failure(channel),
        }
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        command: &[u8],
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        let Some(waiting) = self.link.take(channel) else {
            return session.channel_failure(channel);
        };
        if session.max_packet_size(&channel) < SMALLEST_PACKET {
            session.channel_failure(channel)?;
            return session.close(channel);
        }
        session.channel_success(channel)?;
        let exec = Exec {
            user: self.user(),
            proven: match &self.login {
                Some(login) => Proven::Key(login.key),
                None => Proven::Name,
            },
            command: command.to_vec(),
            handle: session.handle(),
            waiting,
        };
        tokio::spawn(exec.run(Arc::clone(&self.link)));
        Ok(())
    }

    /// Answers with the name of the user, so that users can test their keys.
    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        if self.link.take(channel).is_none() {
            return session.channel_failure(channel);
        }
        session.channel_success(channel)?;
        let text = match self.user() {
            Ok(user) => {
                let user = user.as_deref().unwrap_or(ANONYMOUS);
                format!("You are {user}. This server serves Git repositories and has no shell.\r\n")
            }
            Err(error) => format!("pronto: {}\r\n", error.message()),
        };
        session.extended_data(channel, 1, text.into_bytes())?;
        session.exit_status_request(channel, REFUSED)?;
        session.eof(channel)?;
        session.close(channel)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        _name: &str,
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        session.channel_failure(channel)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        session.channel_failure(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _single_connection: bool,
        _protocol: &str,
        _cookie: &str,
        _screen: u32,
        session: &mut russh::server::Session,
    ) -> Result<(), Error> {
        session.channel_failure(channel)
    }
}
