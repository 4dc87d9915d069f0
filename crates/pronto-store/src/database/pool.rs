//! A pool of a few connections to the database, which reconnects with growing pauses.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error as SqlError, NoTls, Row};

use super::address::DatabaseAddress;
use super::connector::DatabaseTls;
use super::failure::{ends_connection, failed, not_connected};
use super::hosts::with_addresses;
use super::schema::{self, SchemaState};
use crate::{Error, ErrorKind, Result};

/// The largest number of connections of a process. A call takes about a millisecond.
const CONNECTIONS: usize = 8;

/// The connect timeout.
const CONNECT: Duration = Duration::from_secs(5);

/// The longest wait for a free connection.
const WAIT: Duration = Duration::from_secs(10);

/// The timeout of a response. The server aborts statements earlier.
const ANSWER: Duration = Duration::from_secs(15);

/// The first pause after a failed connection attempt.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause between connection attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Connections to one database.
pub(super) struct ConnectionPool {
    address: DatabaseAddress,
    connector: Option<DatabaseTls>,
    turns: Semaphore,
    idle: Mutex<Vec<PooledConnection>>,
    outage: Mutex<Outage>,
    /// Whether the tables have been checked.
    is_prepared: tokio::sync::Mutex<bool>,
}

/// A connection. Dropping it aborts its task, even if the server never responds.
struct PooledConnection {
    client: Client,
    task: AbortHandle,
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A series of failed connection attempts.
#[derive(Default)]
struct Outage {
    /// The time before which no connection is attempted, and the reason.
    wait: Option<(Instant, String)>,
    pause: Duration,
}

impl ConnectionPool {
    /// Prepares a pool without a connection.
    pub(super) fn new(address: DatabaseAddress) -> Result<Self> {
        let is_encrypted = address.config.get_ssl_mode() == SslMode::Require;
        let connector = is_encrypted
            .then(|| DatabaseTls::new(&address))
            .transpose()?;
        let mut address = address;
        let config = &mut address.config;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(ANSWER);
        }
        Ok(ConnectionPool {
            address,
            connector,
            turns: Semaphore::new(CONNECTIONS),
            idle: Mutex::default(),
            outage: Mutex::default(),
            is_prepared: tokio::sync::Mutex::new(false),
        })
    }

    /// Returns the name of the database for messages.
    pub(super) fn name(&self) -> &str {
        &self.address.name
    }

    /// Executes a statement in a separate transaction, with one round trip. A failed statement may
    /// have taken effect, or may take effect later.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unavailable`] if a retry may succeed, and otherwise with
    /// [`ErrorKind::Denied`], [`ErrorKind::NoStore`] or [`ErrorKind::Unsupported`].
    pub(super) async fn ask(
        &self,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>> {
        let Ok(turn) = timeout(WAIT, self.turns.acquire()).await else {
            return Err(self.silent("is overloaded: too many calls of this process are waiting"));
        };
        let connected = match self.take_idle() {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let client = &connected.client;
        let answer = timeout(ANSWER, client.query_typed(statement, parameters)).await;
        let Ok(answer) = answer else {
            // The response may still be received later, so the connection is unusable.
            return Err(self.silent("does not respond"));
        };
        let is_sound = match &answer {
            Ok(_) => true,
            Err(error) => error.code().is_some_and(|code| !ends_connection(code)),
        };
        if is_sound && !client.is_closed() {
            self.idle().push(connected);
        }
        drop(turn);
        answer.map_err(|error| failed(&error, self.name()))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<PooledConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<PooledConnection> {
        let mut idle = self.idle();
        idle.retain(|connected| !connected.client.is_closed());
        idle.pop()
    }

    fn outage(&self) -> MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn silent(&self, what: &str) -> Error {
        Error::new(ErrorKind::Unavailable, format!("{} {what}", self.name()))
    }

    async fn connect(&self) -> Result<PooledConnection> {
        let begun = Instant::now();
        if let Some((until, reason)) = &self.outage().wait
            && begun < *until
        {
            return Err(self.silent("cannot be reached").because(reason.clone()));
        }
        // A host may have addresses of two families, and each address has a separate timeout.
        let config = &self.address.config;
        let each = config.get_connect_timeout().copied().unwrap_or(CONNECT);
        let hosts = u32::try_from(config.get_hosts().len()).unwrap_or(1);
        let most = each * hosts.saturating_mul(2).saturating_add(1);
        let connected = match timeout(most, self.connect_now()).await {
            Ok(connected) => connected,
            Err(_) => Err(self.silent("does not accept connections in time")),
        };
        let mut outage = self.outage();
        match &connected {
            Ok(_) => *outage = Outage::default(),
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                // Concurrent failures count as one failure.
                let is_new = outage
                    .wait
                    .as_ref()
                    .is_none_or(|(until, _)| *until <= begun);
                if is_new {
                    outage.pause = (outage.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                    outage.wait = Some((Instant::now() + outage.pause, error.to_string()));
                }
            }
            Err(_) => {}
        }
        connected
    }

    async fn connect_now(&self) -> Result<PooledConnection> {
        let to_error = |error: SqlError| failed(&error, self.name());
        let refused = |error: SqlError| not_connected(&error, self.name());
        let config = with_addresses(&self.address.config, CONNECT).await;
        let config = config.map_err(|error| self.silent("cannot be reached").because(error))?;
        // The client notices the end of the connection.
        let (client, task) = match &self.connector {
            Some(connector) => {
                let connected = config.connect(connector.clone()).await;
                let (client, connection) = connected.map_err(refused)?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
            None => {
                let (client, connection) = config.connect(NoTls).await.map_err(refused)?;
                (client, tokio::spawn(async move { drop(connection.await) }))
            }
        };
        let mut connected = PooledConnection {
            client,
            task: task.abort_handle(),
        };
        let client = &mut connected.client;
        schema::begin_session(client).await.map_err(to_error)?;
        let mut is_prepared = self.is_prepared.lock().await;
        if !*is_prepared {
            match schema::prepare(client).await.map_err(to_error)? {
                SchemaState::Current => *is_prepared = true,
                SchemaState::Newer(version) => {
                    let message = format!(
                        "{} has tables of version {version}, but this program supports only \
                         versions up to {}",
                        self.name(),
                        schema::VERSION
                    );
                    let hint = "upgrade pronto on this machine";
                    return Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint));
                }
            }
        }
        drop(is_prepared);
        Ok(connected)
    }
}
