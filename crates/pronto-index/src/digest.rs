//! The checksum at the end of an index file.

use crate::error::Error;
use pronto_hash::{Kind, ObjectId, TrailerDigester};

pub(crate) fn digest(kind: Kind, content: &[u8]) -> Result<ObjectId, Error> {
    let mut digester = TrailerDigester::new(kind);
    digester.update(content);
    Ok(digester.finish())
}
