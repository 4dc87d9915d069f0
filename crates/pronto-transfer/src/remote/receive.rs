//! Receives and indexes the pack of the other side while it arrives.

use std::io::Read;
use std::path::Path;

use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;
use pronto_io::progress::Progress;
use pronto_io::sync::SyncMethod;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_pack::indexer::{Contents, Context, Existing, Inspect, Options, Outcome, index_stream};
use pronto_storage::fsck::{Inspector, Levels, Scope};
use pronto_wire::client::Pack;

use super::connection::from_wire;
use crate::config::Config;
use crate::packs::{self, from_pack};
use crate::{Repository, Result};
use pronto_repository::Notice;

/// The destination of a pack, and the checks on the way.
pub struct Receive<'a> {
    /// The directory for the pack and its indexes.
    pub directory: &'a Path,
    /// Whose pack it becomes. It is warned of what is not quite right.
    pub repository: &'a Repository,
    /// Existing objects: bases of thin packs, and objects that must not change.
    pub existing: Option<&'a Store>,
    /// Checks each received object, if that is wanted.
    pub inspect: Option<&'a dyn Inspect>,
    /// The content of the file that marks the pack as one whose links may be missing.
    pub promisor: Option<Vec<u8>>,
    /// The content of a `.keep` file for the pack, if it is to have one.
    pub keep: Option<Vec<u8>>,
    /// The number of objects from which a pack gets the `.keep` file; without it every pack does.
    pub keep_from: Option<u32>,
    /// Whether the files must be on the disk before they get their names.
    pub sync: bool,
    /// The store for the loose objects of small packs.
    pub unpack: Option<Unpack<'a>>,
    /// Receives the progress, and stops the operation.
    pub watch: &'a Watch<'a>,
}

/// Options for unpacking a small pack.
pub struct Unpack<'a> {
    /// The store that takes in the objects.
    pub store: &'a Store,
    /// A pack of as many objects stays a pack; `None` if none does.
    pub limit: Option<u32>,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

/// The number of objects from which a pack is kept, without configuration.
const UNPACK_LIMIT: i32 = 100;

/// `fetch.unpackLimit` or else `transfer.unpackLimit`; a negative one counts as none, and zero means
/// that no pack stays.
///
/// # Errors
/// One of them is no number.
pub fn unpack_limit(config: &Config) -> Result<Option<u32>> {
    let mut limit = UNPACK_LIMIT;
    for key in ["transfer.unpacklimit", "fetch.unpacklimit"] {
        if let Some(set @ 0..) = config.i32(key)? {
            limit = set;
        }
    }
    Ok(u32::try_from(limit).ok().filter(|limit| *limit > 0))
}

/// Whether what is fetched is to be checked as a whole: then a pack stays a pack.
///
/// # Errors
/// It is set to something else than a boolean.
pub fn checks_objects(config: &Config) -> Result<bool> {
    match config.bool("fetch.fsckobjects")? {
        Some(set) => Ok(set),
        None => config.bool_or("transfer.fsckobjects", false),
    }
}

/// The header of a pack: signature, version, and how many objects there are.
const HEADER_LEN: usize = 12;

/// Reads `pack` to its end and indexes or unpacks it as it arrives.
///
/// # Errors
/// The connection breaks, the pack is invalid, or the files cannot be written. Nothing stays.
pub fn receive_pack(pack: &mut Pack<'_>, receive: &Receive<'_>) -> Result<Outcome> {
    let mut options = options(receive)?;
    let levels = fsck_levels(receive.repository, receive.promisor.is_some())?;
    let checks = levels.as_ref().map(|levels| {
        let scope = Scope {
            objects: true,
            store: receive.existing,
            promised: receive.promisor.is_some(),
            ..Scope::default()
        };
        Inspector::new(receive.repository.object_hash(), levels, scope)
    });
    let both = Both {
        one: receive.inspect,
        other: checks.as_ref().map(|checks| checks as &dyn Inspect),
    };
    let readiness = pack.readiness();
    let ready = readiness.as_deref();
    let context = Context {
        existing: receive.existing.map(|store| store as &dyn Existing),
        inspect: both.is_needed().then_some(&both),
        progress: receive.watch.progress(),
        interrupt: Some(receive.watch.interrupt()),
        ready: ready.map(|ready| ready as &(dyn Fn() -> bool + Sync)),
        ..Context::default()
    };
    let taken = match receive.unpack.is_some() || receive.keep_from.is_some() {
        true => {
            let mut header = Vec::with_capacity(HEADER_LEN);
            // What broke off here breaks off again.
            let _ = pack.take(HEADER_LEN as u64).read_to_end(&mut header);
            let unpack = receive.unpack.as_ref();
            let unpack = unpack.filter(|unpack| is_below(unpack.limit, &header));
            if receive.keep_from.is_some() && is_below(receive.keep_from, &header) {
                options.keep = None;
                // Only the pack with that file names in its other file what was requested.
                options.promisor = options.promisor.map(|_| Vec::new());
            }
            let mut whole = header.chain(&mut *pack);
            take_in(&mut whole, receive, &options, &context, unpack)
        }
        false => take_in(pack, receive, &options, &context, None),
    };
    for report in checks.iter().flat_map(Inspector::take_reports) {
        if let (Some(message), false) = (report.message, report.is_error) {
            receive.repository.notify(Notice::MalformedObject {
                object: report.object,
                check: message.name(),
                detail: report.detail,
            });
        }
    }
    // Why the connection broke says more than that the pack ended too early.
    if taken.is_err()
        && let Some(error) = pack.take_failure()
    {
        return Err(from_wire(error));
    }
    let outcome = taken?;
    pack.finish(&outcome.leftover).map_err(from_wire)?;
    Ok(outcome)
}

/// A pack that comes from a file, and the checks on the way.
pub(crate) struct Stream<'a> {
    /// The directory for the pack and its indexes.
    pub(crate) directory: &'a Path,
    /// The content of the file that marks the pack as one whose links may be missing.
    pub(crate) promisor: Option<Vec<u8>>,
    /// Checks each object, if that is wanted.
    pub(crate) inspect: Option<&'a dyn Inspect>,
}

/// Reads a pack from `source` to its end and indexes it, with bases of `repository`.
///
/// # Errors
/// The pack is invalid, or the files cannot be written. Nothing stays.
pub(crate) fn receive_stream(
    repository: &Repository,
    source: &mut dyn Read,
    stream: Stream<'_>,
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
    let context = Context {
        existing: Some(store as &dyn Existing),
        inspect: stream.inspect,
        progress: watch.progress(),
        interrupt: Some(watch.interrupt()),
        ..Context::default()
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
    context: &Context<'_>,
    unpack: Option<&Unpack<'_>>,
) -> Result<Outcome> {
    match unpack {
        Some(unpack) => {
            let context = Context {
                progress: unpack.progress,
                ..*context
            };
            let unpacked = unpack.store.unpack(pack, options, &context);
            unpacked.map_err(from_pack)
        }
        None => index_stream(pack, receive.directory, options, context).map_err(from_pack),
    }
}

/// Returns the severities of findings, if what is fetched is checked.
///
/// # Errors
/// A setting is malformed.
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

/// Two inspections of every object.
pub struct Both<'a> {
    /// The first one, if there is one.
    pub one: Option<&'a dyn Inspect>,
    /// The second one.
    pub other: Option<&'a dyn Inspect>,
}

impl Both<'_> {
    /// Returns whether there is an inspection at all.
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

    fn complete(&self, contents: &dyn Contents) -> Result<(), pronto_pack::Error> {
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
