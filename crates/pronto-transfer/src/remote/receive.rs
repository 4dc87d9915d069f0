//! Receives the pack of a remote, and indexes it while it is received.

use std::io::Read;
use std::path::Path;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::progress::Progress;
use pronto_io::sync::SyncMethod;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_pack::indexer::{
    ExistingObjects, IndexContext, IndexedObjects, Inspect, Options, Outcome, index_stream,
};
use pronto_storage::fsck::{FsckInspector, InspectionScope, Levels};
use pronto_wire::client::IncomingPack;

use super::connection::from_wire;
use crate::config::Config;
use crate::packs::{self, from_pack};
use crate::{Repository, Result};
use pronto_repository::Notice;

/// The destination of a received pack, and the checks of its objects.
pub struct Receive<'a> {
    /// The directory for the pack and its indexes.
    pub directory: &'a Path,
    /// The repository that receives the pack, and the notices about its objects.
    pub repository: &'a Repository,
    /// The existing objects: bases of thin packs, and objects to compare on collisions.
    pub existing: Option<&'a Store>,
    /// The check of each received object, if there is one.
    pub inspect: Option<&'a dyn Inspect>,
    /// The content of the `.promisor` file, if the pack is a promisor pack.
    pub promisor: Option<Vec<u8>>,
    /// The content of the `.keep` file, if the pack gets one.
    pub keep: Option<Vec<u8>>,
    /// The number of objects from which on a pack gets the `.keep` file; unset, every pack does.
    pub keep_from: Option<u32>,
    /// Flush the files to disk before they are renamed (`core.fsync`).
    pub sync: bool,
    /// The options for unpacking small packs; `None` if packs are not unpacked.
    pub unpack: Option<Unpack<'a>>,
    /// Receives the progress, and stops the operation.
    pub watch: &'a Watch<'a>,
}

/// Options for unpacking a small pack.
pub struct Unpack<'a> {
    /// The store that receives the loose objects.
    pub store: &'a Store,
    /// The number of objects from which on a pack is kept (`fetch.unpackLimit`); `None` if every
    /// pack is unpacked.
    pub limit: Option<u32>,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// The default of `fetch.unpackLimit`.
const UNPACK_LIMIT: i32 = 100;

/// Returns `fetch.unpackLimit`, or else `transfer.unpackLimit`. A negative value counts as unset,
/// and `None` (zero) means that no pack is kept.
///
/// # Errors
/// Fails if one of the settings is not a number.
pub fn unpack_limit(config: &Config) -> Result<Option<u32>> {
    let mut limit = UNPACK_LIMIT;
    for key in ["transfer.unpacklimit", "fetch.unpacklimit"] {
        if let Some(set @ 0..) = config.i32(key)? {
            limit = set;
        }
    }
    Ok(u32::try_from(limit).ok().filter(|limit| *limit > 0))
}

/// Returns whether received objects are checked (`fetch.fsckObjects`, `transfer.fsckObjects`). In
/// that case packs are not unpacked.
///
/// # Errors
/// Fails if a setting is not a boolean.
pub fn checks_objects(config: &Config) -> Result<bool> {
    match config.bool("fetch.fsckobjects")? {
        Some(set) => Ok(set),
        None => config.bool_or("transfer.fsckobjects", false),
    }
}

/// The length of a pack header: signature, version, and number of objects.
const HEADER_LEN: usize = 12;

/// Reads `pack` to its end, and indexes or unpacks it while it is received.
///
/// # Errors
/// Fails if the connection breaks, the pack is invalid, or the files cannot be written. All created
/// files are removed then.
pub fn receive_pack(pack: &mut IncomingPack<'_>, receive: &Receive<'_>) -> Result<Outcome> {
    let mut options = options(receive)?;
    let levels = fsck_levels(receive.repository, receive.promisor.is_some())?;
    let checks = levels.as_ref().map(|levels| {
        let scope = InspectionScope {
            objects: true,
            store: receive.existing,
            promised: receive.promisor.is_some(),
            ..InspectionScope::default()
        };
        FsckInspector::new(receive.repository.object_hash(), levels, scope)
    });
    let both = Both {
        one: receive.inspect,
        other: checks.as_ref().map(|checks| checks as &dyn Inspect),
    };
    let readiness = pack.readiness();
    let ready = readiness.as_deref();
    let context = IndexContext {
        existing: receive.existing.map(|store| store as &dyn ExistingObjects),
        inspect: both.is_needed().then_some(&both),
        progress: receive.watch.progress(),
        interrupt: Some(receive.watch.interrupt()),
        ready: ready.map(|ready| ready as &(dyn Fn() -> bool + Sync)),
        ..IndexContext::default()
    };
    let taken = match receive.unpack.is_some() || receive.keep_from.is_some() {
        true => {
            let mut header = Vec::with_capacity(HEADER_LEN);
            // A failure of this read is repeated by the next read.
            let _ = pack.take(HEADER_LEN as u64).read_to_end(&mut header);
            let unpack = receive.unpack.as_ref();
            let unpack = unpack.filter(|unpack| is_below(unpack.limit, &header));
            if receive.keep_from.is_some() && is_below(receive.keep_from, &header) {
                options.keep = None;
                // The `.promisor` file lists the requested refs only if the pack has a `.keep`
                // file, too.
                options.promisor = options.promisor.map(|_| Vec::new());
            }
            let mut whole = header.chain(&mut *pack);
            take_in(&mut whole, receive, &options, &context, unpack)
        }
        false => take_in(pack, receive, &options, &context, None),
    };
    for report in checks.iter().flat_map(FsckInspector::take_reports) {
        if let (Some(message), false) = (report.message, report.is_error) {
            receive.repository.notify(Notice::MalformedObject {
                object: report.object,
                check: message.name(),
                detail: report.detail,
            });
        }
    }
    // The error of the connection is more helpful than the early end of the pack.
    if taken.is_err()
        && let Some(error) = pack.take_failure()
    {
        return Err(from_wire(error));
    }
    let outcome = taken?;
    pack.finish(&outcome.leftover).map_err(from_wire)?;
    Ok(outcome)
}

/// The destination of a pack that is read from a file, and the checks of its objects.
pub(crate) struct ReceivedFile<'a> {
    /// The directory for the pack and its indexes.
    pub(crate) directory: &'a Path,
    /// The content of the `.promisor` file, if the pack is a promisor pack.
    pub(crate) promisor: Option<Vec<u8>>,
    /// The check of each object, if there is one.
    pub(crate) inspect: Option<&'a dyn Inspect>,
}

/// Reads a pack from `source` to its end and indexes it, with delta bases from `repository`.
///
/// # Errors
/// Fails if the pack is invalid, or the files cannot be written. All created files are removed
/// then.
pub(crate) fn receive_stream(
    repository: &Repository,
    source: &mut dyn Read,
    stream: ReceivedFile<'_>,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let store = repository.objects()?;
    let receive = Receive {
        directory: stream.directory,
        repository,
        existing: Some(store),
        inspect: None,
        promisor: stream.promisor,
        keep: None,
        keep_from: None,
        sync: true,
        unpack: None,
        watch,
    };
    let mut options = options(&receive)?;
    options.title = "Unbundling objects";
    let context = IndexContext {
        existing: Some(store as &dyn ExistingObjects),
        inspect: stream.inspect,
        progress: watch.progress(),
        interrupt: Some(watch.interrupt()),
        ..IndexContext::default()
    };
    index_stream(source, receive.directory, &options, &context).map_err(from_pack)
}

fn is_below(limit: Option<u32>, header: &[u8]) -> bool {
    let count = header
        .get(8..HEADER_LEN)
        .and_then(|bytes| bytes.try_into().ok());
    let count = count.map(u32::from_be_bytes);
    count.is_some_and(|count| limit.is_none_or(|limit| count < limit))
}

fn take_in(
    pack: &mut dyn Read,
    receive: &Receive<'_>,
    options: &Options,
    context: &IndexContext<'_>,
    unpack: Option<&Unpack<'_>>,
) -> Result<Outcome> {
    match unpack {
        Some(unpack) => {
            let context = IndexContext {
                progress: unpack.progress,
                ..*context
            };
            let unpacked = unpack.store.unpack(pack, options, &context);
            unpacked.map_err(from_pack)
        }
        None => index_stream(pack, receive.directory, options, context).map_err(from_pack),
    }
}

/// Returns the severities of fsck findings, if received objects are checked.
///
/// # Errors
/// Fails if a setting is malformed.
pub(crate) fn fsck_levels(repository: &Repository, is_promised: bool) -> Result<Option<Levels>> {
    let config = repository.config();
    if !checks_objects(config)? {
        return Ok(None);
    }
    let mut levels = Levels::strict();
    // The configured levels do not apply to a promisor remote.
    if !is_promised {
        let home = repository.environment().home();
        let warn = &mut |check| repository.notify(Notice::UnknownFsckCheck(check));
        levels.configure(config, "fetch.fsck.", home, warn)?;
    }
    Ok(Some(levels))
}

/// Runs two checks on every object.
pub struct Both<'a> {
    /// The first check, if there is one.
    pub one: Option<&'a dyn Inspect>,
    /// The second check, if there is one.
    pub other: Option<&'a dyn Inspect>,
}

impl Both<'_> {
    /// Returns whether there is at least one check.
    pub fn is_needed(&self) -> bool {
        self.one.is_some() || self.other.is_some()
    }

    fn each(
        &self,
        look: impl Fn(&dyn Inspect) -> Result<(), pronto_pack::Error>,
    ) -> Result<(), pronto_pack::Error> {
        self.one.map_or(Ok(()), &look)?;
        self.other.map_or(Ok(()), &look)
    }
}

impl Inspect for Both<'_> {
    fn object(
        &self,
        kind: ObjectKind,
        id: &ObjectId,
        content: &[u8],
    ) -> Result<(), pronto_pack::Error> {
        self.each(|inspect| inspect.object(kind, id, content))
    }

    fn large_blob(&self, id: &ObjectId, size_bytes: u64) -> Result<(), pronto_pack::Error> {
        self.each(|inspect| inspect.large_blob(id, size_bytes))
    }

    fn complete(&self, contents: &dyn IndexedObjects) -> Result<(), pronto_pack::Error> {
        self.each(|inspect| inspect.complete(contents))
    }
}

fn options(receive: &Receive<'_>) -> Result<Options> {
    let repository = receive.repository;
    let config = repository.config();
    let mut options = packs::indexer_options(config, repository.object_hash())?;
    options.fix_thin = receive.existing.is_some();
    if !receive.sync {
        options.sync = SyncMethod::No;
        options.sync_indexes = SyncMethod::No;
    }
    options.promisor.clone_from(&receive.promisor);
    options.keep.clone_from(&receive.keep);
    Ok(options)
}
