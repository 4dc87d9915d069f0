//! Checks that a store has conditional creation, which commits rely on.

use bytes::Bytes;
use futures_util::future::join_all;

use crate::bucket::{Bucket, CreationResult};
use crate::{Error, ErrorKind, Result};

/// The number of concurrent creations.
const CREATORS: usize = 8;

/// Checks that an object is created only once, first with sequential calls and then with concurrent
/// ones. The concurrent calls detect a store that checks and writes in two steps, if the calls
/// overlap, which they nearly always do.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if an object is created more than once, and with the
/// errors of the store.
pub(crate) async fn check(bucket: &impl Bucket, name: &str) -> Result<()> {
    let checked = check_both(bucket, name).await;
    for suffix in ["", "-many"] {
        // A remaining object has no effect.
        let _ = bucket.delete(&format!("{name}{suffix}")).await;
    }
    checked
}

async fn check_both(bucket: &impl Bucket, name: &str) -> Result<()> {
    let refused = |error: Error| match error.kind() {
        ErrorKind::Unsupported => lacks("refuses").because(error),
        _ => error,
    };
    let create = |name: String, content: String| async move {
        let created = bucket.create(&name, Bytes::from(content));
        created.await.map_err(refused)
    };
    // The object may exist already, if a response was lost and the call retried.
    create(name.to_owned(), "first".to_owned()).await?;
    if create(name.to_owned(), "second".to_owned()).await? == CreationResult::Created {
        return Err(lacks("ignores"));
    }
    let creators = (0..CREATORS).map(|creator| create(format!("{name}-many"), creator.to_string()));
    let mut created = 0;
    for answer in join_all(creators).await {
        match answer {
            Ok(answer) => created += usize::from(answer == CreationResult::Created),
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            // Some services allow one write of a name in each second.
            Err(_) => {}
        }
    }
    match created {
        0 | 1 => Ok(()),
        _ => Err(lacks("does not reliably enforce")),
    }
}

fn lacks(what: &str) -> Error {
    let message = format!("the store {what} conditional creation of objects (If-None-Match: *)");
    let hint = "keep the generations in a database: use --generations \
                postgres://USER@HOST/DATABASE, or set 'generations' in the configuration of the \
                server";
    Error::new(ErrorKind::Unsupported, message).with_hint(hint)
}
