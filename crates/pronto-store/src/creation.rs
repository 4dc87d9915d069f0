//! The check that a store has conditional creation, on which commits rest.

use bytes::Bytes;
use futures_util::future::join_all;

use crate::bucket::{Bucket, Creation};
use crate::{Error, ErrorKind, Result};

/// The number of creators that come together.
const CREATORS: usize = 8;

/// Checks that an object is created once: first one call after the other, then several together. A store that
/// looks first and writes then is found by the second if its calls come together, as they do nearly always.
///
/// # Errors
/// [`ErrorKind::Unsupported`]: it is not. Those of the store.
pub(crate) async fn check(bucket: &impl Bucket, name: &str) -> Result<()> {
    let checked = check_both(bucket, name).await;
    for suffix in ["", "-many"] {
        // What stays there disturbs nobody.
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
    // It may exist: an answer was lost, and the call repeated.
    create(name.to_owned(), "first".to_owned()).await?;
    if create(name.to_owned(), "second".to_owned()).await? == Creation::Created {
        return Err(lacks("ignores"));
    }
    let creators = (0..CREATORS).map(|creator| create(format!("{name}-many"), creator.to_string()));
    let mut created = 0;
    for answer in join_all(creators).await {
        match answer {
            Ok(answer) => created += usize::from(answer == Creation::Created),
            Err(error) if *error.kind() == ErrorKind::Unsupported => return Err(error),
            // Some services take one write of a name in a second.
            Err(_) => {}
        }
    }
    match created {
        0 | 1 => Ok(()),
        _ => Err(lacks("is too slow to honour")),
    }
}

fn lacks(what: &str) -> Error {
    let message = format!(
        "the store {what} the condition that an object does not exist yet (If-None-Match: *)"
    );
    let hint = "keep the generations in a database: --generations postgres://USER@HOST/DATABASE, or the setting \
                `generations` of a server";
    Error::new(ErrorKind::Unsupported, message).with_hint(hint)
}
