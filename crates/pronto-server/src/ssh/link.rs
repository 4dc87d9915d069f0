//! The state that the tasks of a connection share.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use russh::server::Msg;
use russh::{Channel, ChannelId};

use crate::activity::Activity;
use crate::admission::AdmittedConnection;
use crate::connection::Accepted;
use crate::state::ServerState;

/// The largest number of open channels of a connection.
pub(crate) const MOST_CHANNELS: usize = 8;

/// The exit status of a command that is refused.
pub(super) const REFUSED: u32 = 128;

/// The shared state of a connection.
pub(super) struct SshConnection {
    pub(super) state: Arc<ServerState>,
    pub(super) address: SocketAddr,
    pub(super) connection: Arc<AdmittedConnection>,
    pub(super) activity: Arc<Activity>,
    is_draining: AtomicBool,
    is_encrypted: AtomicBool,
    is_authenticated: AtomicBool,
    refused_logins: AtomicUsize,
    open: AtomicUsize,
    /// The channels without a request. They are stored here so that they can be dropped: the
    /// connection waits for the readers of its channels.
    waiting: Mutex<HashMap<ChannelId, IdleChannel>>,
}

/// A channel without a request.
pub(super) struct IdleChannel {
    pub(super) channel: Channel<Msg>,
    /// The value of `GIT_PROTOCOL`.
    pub(super) protocol: Option<String>,
    pub(super) open: OpenChannel,
}

/// A guard that counts an open channel.
pub(super) struct OpenChannel(Arc<SshConnection>);

impl OpenChannel {
    /// Counts one more channel. Returns `None` if the connection has too many channels.
    pub(super) fn new(link: &Arc<SshConnection>) -> Option<Self> {
        let counted = OpenChannel(Arc::clone(link));
        (link.open.fetch_add(1, Relaxed) < MOST_CHANNELS).then_some(counted)
    }
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl SshConnection {
    pub(super) fn new(state: &Arc<ServerState>, client: Accepted) -> Self {
        let Accepted {
            address,
            connection,
            ..
        } = client;
        SshConnection {
            state: Arc::clone(state),
            address,
            connection,
            activity: Arc::new(Activity::new()),
            is_draining: AtomicBool::new(false),
            is_encrypted: AtomicBool::new(false),
            is_authenticated: AtomicBool::new(false),
            refused_logins: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }

    /// Records that the key exchange is finished.
    pub(super) fn encrypted(&self) {
        self.is_encrypted.store(true, Relaxed);
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.is_encrypted.load(Relaxed)
    }

    /// Records that no more requests are accepted.
    pub(super) fn drain(&self) {
        self.is_draining.store(true, Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Relaxed)
    }

    /// Records a successful login, of a user or of anonymous.
    pub(super) fn authenticated(&self, user: Option<&Arc<str>>) {
        self.is_authenticated.store(true, Relaxed);
        let owner = self.state.setup().owner(user, self.address.ip());
        self.connection.belongs_to(&owner);
    }

    /// Records a refused login attempt.
    pub(super) fn refused(&self) {
        self.refused_logins.fetch_add(1, Relaxed);
    }

    /// Adds a channel without a request.
    pub(super) fn wait(&self, channel: Channel<Msg>, open: OpenChannel) {
        let waiting = IdleChannel {
            channel,
            protocol: None,
            open,
        };
        self.waiting().insert(waiting.channel.id(), waiting);
    }

    /// Changes a channel without a request. Returns whether there is one.
    pub(super) fn change(&self, id: ChannelId, change: impl FnOnce(&mut IdleChannel)) -> bool {
        self.waiting().get_mut(&id).map(change).is_some()
    }

    /// Removes and returns a channel without a request.
    pub(super) fn take(&self, id: ChannelId) -> Option<IdleChannel> {
        self.waiting().remove(&id)
    }

    /// Drops the channels for which the connection waits, and counts a failed login. `reason`
    /// describes a fault of the client after its login.
    pub(super) fn end(&self, reason: Option<&'static str>) {
        let waiting = std::mem::take(&mut *self.waiting());
        drop(waiting);
        if self.is_authenticated.load(Relaxed) {
            if let Some(reason) = reason {
                self.state.refused(self.address, reason);
            }
            return;
        }
        let reason = match self.refused_logins.load(Relaxed) {
            0 => "handshake",
            _ => {
                self.state.setup().admission.wrong_token(self.address.ip());
                "no user has this key"
            }
        };
        // A connection that is closed to admit another one has a separate reason.
        if !self.connection.is_evicted() {
            self.state.refused(self.address, reason);
        }
    }

    /// Locks the map. A panic of another thread does not make it inconsistent, because each change
    /// is a single step.
    fn waiting(&self) -> MutexGuard<'_, HashMap<ChannelId, IdleChannel>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
