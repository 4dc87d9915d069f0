//! Bundle URIs: a clone or a fetch downloads bundles before it requests the remaining objects from
//! the server.
//!
//! A bundle URI is the URL of a bundle or of a bundle list ([`BundleList`]), whose entries can be lists
//! again. [`fetch`] and [`fetch_list`] store the objects of each bundle whose prerequisites exist,
//! and write its refs as `refs/bundles/…`, which the negotiation sends as haves. A bundle that
//! cannot be used is reported to the progress of the [`Watch`]; its objects are then fetched from
//! the server.
//!
//! # Untrusted addresses
//!
//! A list from a network may contain only HTTP URLs, and only those that the user's settings allow
//! without a prompt (`protocol.<name>.allow`). Credentials are looked up for each URL separately.
//! Headers (`http.extraHeader`) and `~/.netrc` are used only for the origin that the user named. If
//! the user named a path, or a server of another protocol, they are used for no URL. A bundle is
//! stored only if the repository then has all objects that the objects of the bundle link to.

mod address;
mod download;
mod land;
mod list;
mod spool;
mod tokens;

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::progress::ProgressMessage;
use pronto_io::watch::Watch;
use pronto_pack::bundle::BundleHeader;
use pronto_wire::url::{Url, UrlOrigin};

use crate::support::{self, Operation};
use crate::{Repository, Result};
pub use list::{BadList, BundleList, Entry, Heuristic, Mode};
use spool::{DownloadSpool, SpoolRange};

/// The limit for the nesting of lists, as in Git.
const MOST_NESTED: u32 = 4;

/// The limit for the number of files that are downloaded for one bundle URI.
const MOST_FILES: usize = 4096;

/// The limit for the total size of bundle headers for one bundle URI. The headers are kept in
/// memory.
const MOST_HEADER_BYTES: u64 = 128 << 20;

/// The result of fetching bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the bundle URI could be used.
    pub succeeded: bool,
    /// Whether later fetches should use the same bundle URI (`fetch.bundleURI`).
    pub has_heuristic: bool,
}

/// Fetches the bundles of `uri`, which the user named (`--bundle-uri`): a path or an HTTP URL.
///
/// Costs the download of at most 4,096 files into one temporary file beside the packs, and indexing
/// the bundles. The headers of the bundles are in memory: at most 128 MiB of text. Each list on the
/// path from `uri` to a bundle is also in memory: at most 16 MiB of text and 16 MiB of URLs.
///
/// # Errors
/// Fails with `ErrorKind::Interrupted` if the operation is interrupted, and with other kinds if a
/// setting is malformed. All other failures only make bundles unusable, and are reported to the
/// progress of `watch` in Git's words.
pub fn fetch(repository: &Repository, uri: &BStr, watch: &Watch<'_>) -> Result<Outcome> {
    support::require(repository, Operation::Connect)?;
    let mut outcome = Outcome::default();
    if uri.is_empty() {
        outcome.succeeded = true;
        return Ok(outcome);
    }
    let _region = pronto_io::region!("bundle-uri", "fetch");
    let mut taking = BundleImport::new(repository, watch);
    let root = NamedAddress {
        id: "<root>".into(),
        uri,
    };
    outcome.succeeded = taking.take(root, &Provenance::of_user(uri), 0)?.is_taken();
    outcome.has_heuristic = taking.has_heuristic;
    if outcome.succeeded {
        taking.land_all()?;
    }
    Ok(outcome)
}

/// Fetches the bundles of `list`, which the server at `url` advertised (`transfer.bundleURI`).
/// Returns whether that succeeded.
///
/// Costs as much as [`fetch`].
///
/// # Errors
/// The same as for [`fetch`].
pub fn fetch_list(
    repository: &Repository,
    list: &BundleList,
    url: &BStr,
    watch: &Watch<'_>,
) -> Result<bool> {
    support::require(repository, Operation::Connect)?;
    let _region = pronto_io::region!("bundle-uri", "fetch_list");
    let mut taking = BundleImport::new(repository, watch);
    let from = Provenance::of_server(url);
    taking.warn_about_tokens(list);
    if list.heuristic == Some(Heuristic::CreationToken) {
        return taking.take_by_tokens(list, &from, 0);
    }
    taking.take_list(list, &from, 0)?;
    taking.land_all()?;
    Ok(true)
}

/// The provenance of a URL. It decides which files the URL may name, and which credentials its
/// server receives.
#[derive(Clone, Debug)]
struct Provenance {
    /// Whether the user or a local file named the URL. Only then it may be a path.
    is_trusted: bool,
    /// The only origin that receives the user's headers and credentials of `~/.netrc`. `None` if
    /// the user named no HTTP URL.
    origin: Option<UrlOrigin>,
}

impl Provenance {
    fn of_user(uri: &BStr) -> Self {
        Provenance {
            is_trusted: true,
            origin: origin(uri),
        }
    }

    /// Returns the provenance of URLs that the server at `url` advertises.
    fn of_server(url: &BStr) -> Self {
        let is_here = pronto_wire::address::is_local(url) || url.starts_with(b"file://");
        Provenance {
            is_trusted: is_here,
            origin: origin(url),
        }
    }

    /// Returns the provenance of URLs in the list at `uri`, whose own URL has the provenance
    /// `self`.
    fn of_list(&self, uri: &BStr) -> Self {
        Provenance {
            is_trusted: self.is_trusted && !address::is_web(uri),
            origin: self.origin.clone(),
        }
    }
}

fn origin(uri: &BStr) -> Option<UrlOrigin> {
    let url = address::is_web(uri).then(|| Url::parse(uri))?;
    url.ok().map(|url| url.origin().clone())
}

/// A URL with its id in a list.
#[derive(Clone, Copy, Debug)]
struct NamedAddress<'l> {
    id: &'l BStr,
    uri: &'l BStr,
}

/// A bundle that was downloaded.
struct Downloaded {
    id: BString,
    /// `None` when the bundle was landed or found to be unusable.
    waiting: Option<PendingBundle>,
}

/// A bundle that is not landed yet.
struct PendingBundle {
    header: BundleHeader,
    /// The position of its pack in the spool.
    pack: SpoolRange,
    /// A prerequisite of the bundle that the repository lacked at the last attempt.
    lacking: Option<ObjectId>,
}

/// The result of landing a bundle, that is, storing its objects and its refs in the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BundleResult {
    /// The repository lacks prerequisites of the bundle. Another bundle may contain them.
    Waiting,
    /// The repository has the objects.
    Landed,
    /// The bundle is malformed, or cannot be stored.
    Unusable,
}

/// The result of downloading one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressResult {
    /// A bundle, which is now the last one of the downloaded bundles.
    Bundle,
    /// A list, whose bundles were downloaded as far as possible.
    List,
    /// The content cannot be used.
    Nothing,
}

impl AddressResult {
    fn is_taken(self) -> bool {
        self != AddressResult::Nothing
    }
}

/// The state of fetching bundles into a repository.
struct BundleImport<'a> {
    repository: &'a Repository,
    watch: &'a Watch<'a>,
    spool: DownloadSpool,
    bundles: Vec<Downloaded>,
    files_left: usize,
    header_bytes_left: u64,
    /// Whether a list had creation tokens.
    has_heuristic: bool,
}

impl<'a> BundleImport<'a> {
    fn new(repository: &'a Repository, watch: &'a Watch<'a>) -> Self {
        BundleImport {
            repository,
            watch,
            spool: DownloadSpool::new(repository.objects_dir().join("pack")),
            bundles: Vec::new(),
            files_left: MOST_FILES,
            header_bytes_left: MOST_HEADER_BYTES,
            has_heuristic: false,
        }
    }

    fn warn(&self, text: &str) {
        self.watch
            .progress()
            .message(ProgressMessage::Warning(text));
    }

    fn report(&self, text: &str) {
        self.watch.progress().message(ProgressMessage::Error(text));
    }

    /// Downloads the bundle at the URL of `named`, or the bundles of the list at that URL.
    fn take(
        &mut self,
        named: NamedAddress<'_>,
        from: &Provenance,
        depth: u32,
    ) -> Result<AddressResult> {
        let uri = named.uri;
        let Some(left) = self.files_left.checked_sub(1) else {
            return Ok(AddressResult::Nothing);
        };
        self.files_left = left;
        if left == 0 {
            self.report("too many bundles");
        }
        if depth >= MOST_NESTED {
            self.warn(&format!(
                "exceeded bundle URI recursion limit ({MOST_NESTED})"
            ));
            return Ok(AddressResult::Nothing);
        }
        let Some(section) = self.download(uri, from)? else {
            self.warn(&format!("failed to download bundle from URI '{uri}'"));
            return Ok(AddressResult::Nothing);
        };
        match self.read_header(section, uri) {
            Ok(None) => {}
            Ok(Some(waiting)) => {
                self.bundles.push(Downloaded {
                    id: named.id.to_owned(),
                    waiting: Some(waiting),
                });
                return Ok(AddressResult::Bundle);
            }
            Err(error) => {
                self.report(error.message());
                self.spool.truncate(section);
                return Ok(AddressResult::Nothing);
            }
        }
        let list = self.read_list(section, uri);
        self.spool.truncate(section);
        if let Some(list) = list
            && self.take_nested(&list, &from.of_list(uri), depth)?
        {
            return Ok(AddressResult::List);
        }
        self.warn(&format!(
            "file at URI '{uri}' is not a bundle or bundle list"
        ));
        Ok(AddressResult::Nothing)
    }

    /// Fetches the bundles of a downloaded list. Returns whether that succeeded.
    fn take_nested(&mut self, list: &BundleList, from: &Provenance, depth: u32) -> Result<bool> {
        self.warn_about_tokens(list);
        if list.heuristic == Some(Heuristic::CreationToken) {
            self.has_heuristic = true;
            return self.take_by_tokens(list, from, depth);
        }
        self.take_list(list, from, depth)?;
        Ok(true)
    }

    /// Downloads the bundles of `list`: all of them, or any one (`bundle.mode`).
    fn take_list(&mut self, list: &BundleList, from: &Provenance, depth: u32) -> Result<()> {
        for named in list.in_order().into_iter().filter_map(Entry::named) {
            let is_taken = self.take(named, from, depth + 1)?.is_taken();
            if is_taken && list.mode == Some(Mode::Any) {
                break;
            }
        }
        Ok(())
    }

    /// Warns of creation tokens that are not numbers.
    fn warn_about_tokens(&self, list: &BundleList) {
        for value in &list.bad_tokens {
            self.warn(&format!(
                "could not parse bundle list key creationToken with value '{value}'"
            ));
        }
    }
}

impl Entry {
    fn named(&self) -> Option<NamedAddress<'_>> {
        self.uri.as_ref().map(|uri| NamedAddress {
            id: self.id.as_ref(),
            uri: uri.as_ref(),
        })
    }
}
