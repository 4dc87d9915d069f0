//! The tables.

use tokio_postgres::{Client, Error as SqlError};

/// The steps from nothing to the newest tables. The number of those that were taken is the version, so that steps are
/// only ever added.
const STEPS: [&str; 1] = [
    "CREATE TABLE pronto_generations (
        store text COLLATE \"C\" NOT NULL,
        repository text COLLATE \"C\" NOT NULL,
        number bigint NOT NULL CHECK (number > 0),
        created timestamptz NOT NULL DEFAULT clock_timestamp(),
        manifest bytea NOT NULL,
        PRIMARY KEY (store, repository, number));
    COMMENT ON TABLE pronto_generations IS
        'States of the Git repositories that pronto serves. Rows are the only copy: back them up.'",
];

/// Held by the one session that changes tables; the number is the bytes of 'pronto'. It is not taken within the
/// transaction, which would not notice the tables that another one made before the lock was free.
const LOCK: &str = "SELECT pg_advisory_lock(123636798092399)";

const UNLOCK: &str = "SELECT pg_advisory_unlock(123636798092399)";

/// Prepares a connection. Commits that are acknowledged must be on the disk, and on that of the standby if there is a
/// synchronous one, whatever the server does by default.
const SESSION: &str = "SET statement_timeout = '10s';
    SET idle_in_transaction_session_timeout = '30s';
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";

/// The result of a preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The tables are those of this program.
    Current,
    /// The tables are of a later version.
    Newer(i32),
}

/// The newest version.
pub(super) const VERSION: i32 = STEPS.len() as i32;

pub(super) async fn begin_session(client: &Client) -> Result<(), SqlError> {
    client.batch_execute(SESSION).await
}

/// Makes the tables, or brings them to the newest version. Several processes may do this at once.
pub(super) async fn prepare(client: &mut Client) -> Result<Found, SqlError> {
    // A user who may not create tables can use those that are there.
    match version(client).await? {
        VERSION => return Ok(Found::Current),
        found if found > VERSION => return Ok(Found::Newer(found)),
        _ => {}
    }
    client.batch_execute(LOCK).await?;
    let transaction = client.transaction().await?;
    let found = version(transaction.client()).await?;
    if found == 0 {
        let table = "CREATE TABLE IF NOT EXISTS pronto_schema (version integer NOT NULL)";
        transaction.batch_execute(table).await?;
    }
    let done = usize::try_from(found).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        transaction.batch_execute(step).await?;
    }
    if found < VERSION {
        let row =
            format!("DELETE FROM pronto_schema; INSERT INTO pronto_schema VALUES ({VERSION})");
        transaction.batch_execute(&row).await?;
    }
    transaction.commit().await?;
    // After an error the session ends, and so does its lock.
    client.batch_execute(UNLOCK).await?;
    Ok(match found > VERSION {
        true => Found::Newer(found),
        false => Found::Current,
    })
}

/// Returns the version of the tables; 0 if there are none.
async fn version(client: &Client) -> Result<i32, SqlError> {
    let table = "SELECT to_regclass('pronto_schema') IS NOT NULL";
    let exists: bool = client.query_typed_one(table, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = "SELECT coalesce(max(version), 0) FROM pronto_schema";
    client.query_typed_one(row, &[]).await?.try_get(0)
}
