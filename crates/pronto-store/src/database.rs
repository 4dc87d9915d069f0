//! Generations in a PostgreSQL database, for stores without conditional creation. See `docs/design/store.md`.

mod address;
mod connector;
mod failure;
mod hosts;
mod password;
mod pool;
mod schema;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::bucket::{Bucket, CallKind, CallMeter, CallObserver, CreationResult, UploadContent};
use crate::generations::{
    GenerationStore, GenerationSummary, MOST_LISTED, MOST_MANIFEST_BYTES, marker,
};
use crate::{Error, ErrorKind, Result, name};

pub use address::DatabaseAddress;
use pool::ConnectionPool;

const NEWEST: &str = "SELECT number, (extract(epoch FROM created) * 1000)::bigint \
    FROM pronto_generations WHERE store = $1 AND repository = $2 ORDER BY number DESC LIMIT 1";

const LIST: &str = "SELECT number, (extract(epoch FROM created) * 1000)::bigint \
    FROM pronto_generations WHERE store = $1 AND repository = $2 ORDER BY number DESC";

const READ: &str = "SELECT substr(manifest, 1, $4) FROM pronto_generations \
    WHERE store = $1 AND repository = $2 AND number = $3";

// The primary key makes the creation conditional. A generation is only inserted after its
// predecessor, so that a server that knows a generation which a restored database lacks cannot
// continue from that generation.
const CREATE: &str = "WITH made AS (\
        INSERT INTO pronto_generations (store, repository, number, manifest) \
        SELECT $1, $2, $3, $4 WHERE $3 = 1 OR EXISTS (\
            SELECT 1 FROM pronto_generations \
            WHERE store = $1 AND repository = $2 AND number = $3 - 1) \
        ON CONFLICT DO NOTHING RETURNING 1) \
    SELECT EXISTS (SELECT 1 FROM made), $3 = 1 OR EXISTS (\
        SELECT 1 FROM pronto_generations \
        WHERE store = $1 AND repository = $2 AND number >= $3 - 1)";

const REMOVE: &str =
    "DELETE FROM pronto_generations WHERE store = $1 AND repository = $2 AND number = $3";

const TIME: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

// Skips from name to name in the index, independent of the number of generations.
const REPOSITORIES: &str = "WITH RECURSIVE names AS (\
        (SELECT repository FROM pronto_generations WHERE store = $1 ORDER BY repository LIMIT 1) \
        UNION ALL \
        SELECT (SELECT next.repository FROM pronto_generations AS next \
                WHERE next.store = $1 AND next.repository > names.repository \
                ORDER BY next.repository LIMIT 1) \
        FROM names WHERE names.repository IS NOT NULL) \
    SELECT repository FROM names WHERE repository IS NOT NULL LIMIT $2";

/// Generations as rows of a database table. All other data is in the store.
pub struct Database<B> {
    bucket: Arc<B>,
    pool: ConnectionPool,
    /// The name that distinguishes the rows of this store from those of other stores.
    store: String,
    meter: CallMeter,
}

impl<B: Bucket> Database<B> {
    /// Prepares the use of the database at `address` for the store `bucket`, whose URL is `url`,
    /// without a call of the database. Calls need a tokio runtime.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Options`] if the certificates of authorities cannot be read.
    pub fn new(bucket: Arc<B>, address: DatabaseAddress, url: &str) -> Result<Self> {
        let store = address.store.clone();
        Ok(Database {
            bucket,
            store: store.unwrap_or_else(|| url.trim_end_matches('/').to_owned()),
            pool: ConnectionPool::new(address)?,
            meter: CallMeter::default(),
        })
    }

    /// Reports all calls of the database to `observer` from now on. A second observer is ignored.
    pub fn observe(&self, observer: Arc<dyn CallObserver>) {
        self.meter.observe(observer);
    }

    /// Checks with one call that the database responds.
    ///
    /// # Errors
    /// Fails with the errors of the database.
    pub async fn check(&self) -> Result<()> {
        self.ask(CallKind::DatabaseRead, TIME, &[]).await.map(drop)
    }

    async fn ask(
        &self,
        kind: CallKind,
        statement: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>> {
        let call = self.pool.ask(statement, parameters);
        self.meter.measure(kind, call, |_| 0).await
    }

    fn malformed(&self, error: impl fmt::Display) -> Error {
        let message = format!(
            "{} has a malformed row in pronto_generations",
            self.pool.name()
        );
        Error::new(ErrorKind::Corrupt, message).because(error.to_string())
    }

    fn listed(&self, row: &Row) -> Result<GenerationSummary> {
        let get = |at| row.try_get::<_, i64>(at).map_err(|e| self.malformed(e));
        let number = |value| u64::try_from(value).map_err(|error| self.malformed(error));
        Ok(GenerationSummary {
            number: number(get(0)?)?,
            created: Duration::from_millis(number(get(1)?)?),
        })
    }
}

impl<B: Bucket> GenerationStore for Database<B> {
    async fn newest(&self, prefix: &str) -> Result<Option<GenerationSummary>> {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.store, Type::TEXT), (&prefix, Type::TEXT)];
        let rows = self
            .ask(CallKind::DatabaseList, NEWEST, &parameters)
            .await?;
        rows.first().map(|row| self.listed(row)).transpose()
    }

    async fn read(&self, prefix: &str, number: u64) -> Result<Option<Bytes>> {
        let Ok(number) = i64::try_from(number) else {
            return Ok(None);
        };
        // Reading one more byte than allowed detects a manifest that is too large.
        let most = i32::try_from(MOST_MANIFEST_BYTES + 1).unwrap_or(i32::MAX);
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.store, Type::TEXT),
            (&prefix, Type::TEXT),
            (&number, Type::INT8),
            (&most, Type::INT4),
        ];
        let call = async {
            let rows = self.pool.ask(READ, &parameters).await?;
            let Some(row) = rows.first() else {
                return Ok(None);
            };
            let bytes: &[u8] = row.try_get(0).map_err(|error| self.malformed(error))?;
            if bytes.len() as u64 > MOST_MANIFEST_BYTES {
                return Err(self.malformed("the manifest is too large"));
            }
            Ok(Some(Bytes::copy_from_slice(bytes)))
        };
        let len = |found: &Option<Bytes>| found.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.meter.measure(CallKind::DatabaseRead, call, len).await
    }

    async fn create(&self, prefix: &str, number: u64, manifest: Bytes) -> Result<CreationResult> {
        let number = i64::try_from(number).map_err(|error| self.malformed(error))?;
        let bytes = &*manifest;
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&self.store, Type::TEXT),
            (&prefix, Type::TEXT),
            (&number, Type::INT8),
            (&bytes, Type::BYTEA),
        ];
        let call = async {
            let rows = self.pool.ask(CREATE, &parameters).await?;
            let answer = |at| {
                let row = rows
                    .first()
                    .ok_or_else(|| self.malformed("no row returned"))?;
                row.try_get::<_, bool>(at).map_err(|e| self.malformed(e))
            };
            match (answer(0)?, answer(1)?) {
                (true, _) => Ok(CreationResult::Created),
                (false, true) => Ok(CreationResult::Exists),
                (false, false) => {
                    let message = format!(
                        "{} lacks the generation before {number} of '{}': it was restored from a \
                         backup, or a standby took over without that generation",
                        self.pool.name(),
                        prefix.trim_end_matches(".git/")
                    );
                    let hint = "stop all servers, run 'pronto store verify', then start them with \
                                empty caches";
                    Err(Error::new(ErrorKind::Restored, message).with_hint(hint))
                }
            }
        };
        let size = bytes.len() as u64;
        let call = self.meter.measure(CallKind::DatabaseCreate, call, |_| size);
        call.await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<GenerationSummary>> {
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.store, Type::TEXT), (&prefix, Type::TEXT)];
        let rows = self.ask(CallKind::DatabaseList, LIST, &parameters).await?;
        rows.iter().map(|row| self.listed(row)).collect()
    }

    async fn remove(&self, prefix: &str, number: u64) -> Result<()> {
        let number = i64::try_from(number).map_err(|error| self.malformed(error))?;
        let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
            (&self.store, Type::TEXT),
            (&prefix, Type::TEXT),
            (&number, Type::INT8),
        ];
        let removed = self.ask(CallKind::DatabaseDelete, REMOVE, &parameters);
        removed.await.map(drop)
    }

    async fn time(&self, _: &str) -> Result<Duration> {
        let rows = self.ask(CallKind::DatabaseRead, TIME, &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| self.malformed("no time returned"))?;
        let millis: i64 = row.try_get(0).map_err(|error| self.malformed(error))?;
        let millis = u64::try_from(millis).map_err(|error| self.malformed(error))?;
        Ok(Duration::from_millis(millis))
    }

    async fn claim(&self, prefix: &str) -> Result<()> {
        let repository = prefix.trim_end_matches(".git/");
        let file = format!("{prefix}{}", name::DATABASE);
        let is_new = match marker(&*self.bucket, prefix).await? {
            Some(found) if found == self.store => false,
            Some(found) => {
                let message = format!(
                    "the generations of '{repository}' are in a database under the store name \
                     '{found}'"
                );
                let hint = format!("add pronto_store={found} to the database URL");
                return Err(Error::new(ErrorKind::Misplaced, message).with_hint(hint));
            }
            None => {
                let content = UploadContent::Bytes(Bytes::from(format!("{}\n", self.store)));
                self.bucket.put(&file, &content).await?;
                true
            }
        };
        // A process without a database checks for the marker before it creates the first
        // generation. So at least one of the two processes detects the other one.
        let place = format!("{prefix}{}", name::GENERATIONS);
        let own = self.bucket.list(&place, 1, None).await?;
        if own.entries.is_empty() {
            return Ok(());
        }
        if is_new {
            self.bucket.delete(&file).await?;
        }
        let message = format!(
            "the generations of '{repository}' are in the object store, not in the database"
        );
        let hint = "omit the database, or move the repository into it with 'pronto store copy'";
        Err(Error::new(ErrorKind::Misplaced, message).with_hint(hint))
    }

    async fn repositories(&self) -> Result<Vec<String>> {
        let most = i64::try_from(MOST_LISTED).unwrap_or(i64::MAX);
        let parameters: [(&(dyn ToSql + Sync), Type); 2] =
            [(&self.store, Type::TEXT), (&most, Type::INT8)];
        let call = self.ask(CallKind::DatabaseList, REPOSITORIES, &parameters);
        let mut names = Vec::new();
        for row in &call.await? {
            let prefix: &str = row.try_get(0).map_err(|error| self.malformed(error))?;
            names.extend(prefix.strip_suffix(".git/").map(str::to_owned));
        }
        Ok(names)
    }
}
