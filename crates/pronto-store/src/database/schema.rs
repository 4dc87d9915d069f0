//! The schema of the database.

use tokio_postgres::{Client, Error as SqlError};

/// The migrations from an empty database to the current schema. The version is the number of
/// applied migrations, so migrations are only ever appended.
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

/// The advisory lock of the session that changes tables; the number consists of the bytes of
/// 'pronto'. The lock is taken outside of the transaction, whose snapshot would not include the
/// tables that another session created before the lock was released.
const LOCK: &str = "SELECT pg_advisory_lock(123636798092399)";

const UNLOCK: &str = "SELECT pg_advisory_unlock(123636798092399)";

/// The setup of a connection. Acknowledged commits must be on the disk, and on the disk of a
/// synchronous standby, whatever the defaults of the server are.
const SESSION: &str = "SET statement_timeout = '10s';
    SET idle_in_transaction_session_timeout = '30s';
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')";

/// The result of [`prepare`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// The tables have the version of this program.
    Current,
    /// The tables have a later version.
    Newer(i32),
}

/// The newest version of the schema.
pub(super) const VERSION: i32 = STEPS.len() as i32;

pub(super) async fn begin_session(client: &Client) -> Result<(), SqlError> {
    client.batch_execute(SESSION).await
}

/// Creates the tables, or migrates them to the newest version. Several processes may do this
/// concurrently.
pub(super) async fn prepare(client: &mut Client) -> Result<SchemaState, SqlError> {
    // A user without the right to create tables can use existing ones.
    match version(client).await? {
        VERSION => return Ok(SchemaState::Current),
        found if found > VERSION => return Ok(SchemaState::Newer(found)),
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
    // After an error the session ends, and with it the lock.
    client.batch_execute(UNLOCK).await?;
    Ok(match found > VERSION {
        true => SchemaState::Newer(found),
        false => SchemaState::Current,
    })
}

/// Returns the version of the tables, or 0 if there are no tables.
async fn version(client: &Client) -> Result<i32, SqlError> {
    let table = "SELECT to_regclass('pronto_schema') IS NOT NULL";
    let exists: bool = client.query_typed_one(table, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(0);
    }
    let row = "SELECT coalesce(max(version), 0) FROM pronto_schema";
    client.query_typed_one(row, &[]).await?.try_get(0)
}
