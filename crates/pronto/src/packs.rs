//! Packs on their way in: how configuration wants them indexed.

use pronto_hash::Kind;
use pronto_pack::idx::Version;
use pronto_pack::indexer::Options;

use crate::config::Config;
use crate::init::shared;
use crate::{Error, ErrorKind, Result};

/// How to index a pack of a repository whose objects are named by `hash`.
///
/// # Errors
/// A configured value is not of its type, or out of range.
pub fn indexer_options(config: &Config, hash: Kind) -> Result<Options> {
    let mut options = Options::default();
    options.kind = hash;
    options.reverse_index = config.bool_or("pack.writereverseindex", false)?;
    if let Some(threads) = config.i64("pack.threads")? {
        options.threads = usize::try_from(threads).map_err(|_| {
            let message = format!("invalid number of threads specified ({threads})");
            Error::new(ErrorKind::ConfigValue, message)
        })?;
    }
    options.index_version = match config.i64("pack.indexversion")? {
        None | Some(2) => Version::Two,
        Some(0 | 1) => Version::One,
        Some(version) => {
            let message = format!("bad pack.indexVersion={version}");
            return Err(Error::new(ErrorKind::ConfigValue, message));
        }
    };
    if let Some(bytes) = config.u64("core.bigfilethreshold")? {
        options.big_file_threshold_bytes = bytes;
    }
    if let Some(bytes) = config.u64("core.deltabasecachelimit")? {
        options.base_cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    options.permissions = shared::configured(config)?.adjust(0o444, false);
    Ok(options)
}

/// The error of the pack crate as one of this crate.
pub(crate) fn from_pack(error: pronto_pack::Error) -> Error {
    error.map_kind(|kind| match kind {
        pronto_pack::ErrorKind::Interrupted => ErrorKind::Interrupted,
        pronto_pack::ErrorKind::Io => ErrorKind::Io,
        _ => ErrorKind::Object,
    })
}
