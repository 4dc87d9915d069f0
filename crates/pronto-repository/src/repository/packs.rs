//! Options for indexing and writing packs, from the configuration.

use pronto_hash::Kind;
use pronto_pack::idx::PackIndexVersion;
use pronto_pack::indexer::Options;
use pronto_pack::writer;

pub use super::errors::from_pack;
use crate::config::Config;
use crate::durability::{Component, Fsync};
use crate::shared;
use crate::{Error, ErrorKind, Result};

/// Returns the options for indexing a received pack of a repository with the hash function `hash`
/// (`pack.threads`, `pack.indexVersion`, `pack.writeReverseIndex`).
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not of its type or out of range.
pub fn indexer_options(config: &Config, hash: Kind) -> Result<Options> {
    let mut options = Options::default();
    options.kind = hash;
    options.reverse_index = config.bool_or("pack.writereverseindex", true)?;
    if let Some(threads) = config.i64("pack.threads")? {
        options.threads = usize::try_from(threads).map_err(|_| {
            let message = format!("invalid number of threads specified ({threads})");
            Error::new(ErrorKind::ConfigValue, message)
        })?;
    }
    options.index_version = match config.i64("pack.indexversion")? {
        None | Some(2) => PackIndexVersion::Two,
        Some(0 | 1) => PackIndexVersion::One,
        Some(version) => {
            let message = format!("bad pack.indexVersion={version}");
            return Err(Error::new(ErrorKind::ConfigValue, message));
        }
    };
    // Git reads `core.bigFileThreshold` only for large objects, so that a malformed value has no
    // effect here.
    if let Ok(Some(bytes)) = config.u64("core.bigfilethreshold") {
        options.big_file_threshold_bytes = bytes;
    }
    if let Some(bytes) = config.u64("core.deltabasecachelimit")? {
        options.base_cache_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    options.permissions = shared::configured(config)?.adjust(0o444, false);
    let fsync = Fsync::configured(config)?;
    options.sync = fsync.of(Component::Pack);
    options.sync_indexes = fsync.of(Component::PackMetadata);
    Ok(options)
}

/// Returns the options for writing a pack of objects that would otherwise be written as loose objects:
/// those of [`writer_options`], without a reverse index. A later repack writes the reverse index, and
/// compresses better.
///
/// # Errors
/// As for [`writer_options`].
pub fn bulk_options(config: &Config, hash: Kind) -> Result<writer::Options> {
    let mut options = writer_options(config, hash)?;
    options.files.reverse_index = false;
    Ok(options)
}

/// Returns the options for writing a pack.
///
/// The compression level is `pack.compression` or `core.compression`, and otherwise that of loose
/// objects, which Git would write instead.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not of its type or out of range.
pub fn writer_options(config: &Config, hash: Kind) -> Result<writer::Options> {
    let files = indexer_options(config, hash)?;
    let level = match compression(config, "pack.compression")? {
        Some(level) => level,
        None => match compression(config, "core.compression")? {
            Some(level) => level,
            None => loose_compression(config)?,
        },
    };
    let mut options = writer::Options::default();
    options.level = level;
    options.count = None;
    options.files = files;
    Ok(options)
}

/// Returns the zlib level of loose objects: `core.looseCompression`, or `core.compression`, or 1.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if a value is not of its type or out of range.
pub(crate) fn loose_compression(config: &Config) -> Result<u8> {
    let general = compression(config, "core.compression")?;
    let own = compression(config, "core.loosecompression")?;
    Ok(own.or(general).unwrap_or(1))
}

/// Reads the zlib level of the setting `key`. The value -1 stands for zlib's default, 6. Returns `None`
/// if the setting is not set.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if the value is not a number or out of range.
pub fn compression(config: &Config, key: &str) -> Result<Option<u8>> {
    match config.i64(key)? {
        None => Ok(None),
        Some(-1) => Ok(Some(6)),
        Some(level @ 0..=9) => Ok(Some(level as u8)),
        Some(level) => {
            let message = format!("bad zlib compression level {level}");
            Err(Error::new(ErrorKind::ConfigValue, message))
        }
    }
}
