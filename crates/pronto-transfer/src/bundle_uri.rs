//! Bundles to start from: a clone or a fetch takes them before it asks the server for the rest.
//!
//! An address leads to a bundle or to a list of bundles ([`List`]), whose entries can be lists again.
//! [`fetch`] and [`fetch_list`] store the objects of each bundle that fits, and write its refs as
//! `refs/bundles/…`, which the negotiation offers to the server. A bundle that cannot be used is reported to
//! the progress of the [`Watch`]; its objects then come from the server.
//!
//! # Untrusted addresses
//!
//! A list from a network can name web addresses only, and only those that the user's settings allow without
//! asking the user (`protocol.<name>.allow`). Passwords are looked up for each address by itself.
//! Headers (`http.extraHeader`) and `~/.netrc` are for the origin that the user named; if the user named a
//! path, or a server of another protocol, no address gets them. A bundle is taken only if the repository then
//! has every object to which the objects of the bundle link.

mod address;
mod download;
mod land;
mod list;
mod spool;
mod tokens;

use bstr::{BStr, BString};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_pack::bundle::Header;
use pronto_wire::url::{Origin, Url};

use crate::support::{self, Operation};
use crate::{Repository, Result};
pub use list::{BadList, Entry, Heuristic, List, Mode};
use spool::{Section, Spool};

/// The largest number of lists within lists, as in Git.
const MOST_NESTED: u32 = 4;

/// The largest number of files that are downloaded for one address.
const MOST_FILES: usize = 4096;

/// The size that the headers of all bundles of one address may have. They are kept in memory.
const MOST_HEADER_BYTES: u64 = 128 << 20;

/// The result of taking bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the address could be used.
    pub succeeded: bool,
    /// Whether later fetches should ask the same address (`fetch.bundleURI`).
    pub has_heuristic: bool,
}

/// Takes the bundles of `uri`, which the user named: a path or an address of a web server.
///
/// Costs the download of at most 4,096 files into one temporary file beside the packs, and indexing the
/// bundles. The headers of the bundles are in memory: at most 128 MiB of text. So is each list on the way from
/// `uri` to a bundle: at most 16 MiB of text and 16 MiB of addresses.
///
/// # Errors
/// The operation was interrupted, or a setting is malformed. All other failures cost bundles, and are reported
/// to the progress of `watch` in Git's words.
pub fn fetch(repository: &Repository, uri: &BStr, watch: &Watch<'_>) -> Result<Outcome> {
    support::require(Operation::Connect, repository)?;
    let mut outcome = Outcome::default();
    if uri.is_empty() {
        outcome.succeeded = true;
        return Ok(outcome);
    }
    let _region = pronto_io::region!("bundle-uri", "fetch");
    let mut taking = Taking::new(repository, watch);
    let root = Named {
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

/// Takes the bundles of `list`, which the server at `url` named. Returns whether that could be done.
///
/// Costs as much as [`fetch`].
///
/// # Errors
/// As for [`fetch`].
pub fn fetch_list(
    repository: &Repository,
    list: &List,
    url: &BStr,
    watch: &Watch<'_>,
) -> Result<bool> {
    support::require(Operation::Connect, repository)?;
    let _region = pronto_io::region!("bundle-uri", "fetch_list");
    let mut taking = Taking::new(repository, watch);
    let from = Provenance::of_server(url);
    taking.warn_about_tokens(list);
    if list.heuristic == Some(Heuristic::CreationToken) {
        return taking.take_by_tokens(list, &from, 0);
    }
    taking.take_list(list, &from, 0)?;
    taking.land_all()?;
    Ok(true)
}

/// The provenance of an address: it decides which files the address may name, and which secrets its server gets.
#[derive(Clone, Debug)]
struct Provenance {
    /// Whether the user named the address, or a file of this machine did: then it may be a path.
    is_trusted: bool,
    /// The only origin that gets the user's headers and logins. `None` if the user named no web address.
    origin: Option<Origin>,
}

impl Provenance {
    fn of_user(uri: &BStr) -> Self {
        Provenance {
            is_trusted: true,
            origin: origin(uri),
        }
    }

    /// The provenance of addresses that the server at `url` names.
    fn of_server(url: &BStr) -> Self {
        let is_here = pronto_wire::address::is_local(url) || url.starts_with(b"file://");
        Provenance {
            is_trusted: is_here,
            origin: origin(url),
        }
    }

    /// The provenance of addresses in the list at `uri`, whose own address has this provenance.
    fn of_list(&self, uri: &BStr) -> Self {
        Provenance {
            is_trusted: self.is_trusted && !address::is_web(uri),
            origin: self.origin.clone(),
        }
    }
}

fn origin(uri: &BStr) -> Option<Origin> {
    let url = address::is_web(uri).then(|| Url::parse(uri))?;
    url.ok().map(|url| url.origin().clone())
}

/// An address with the name that a list gives it.
#[derive(Clone, Copy, Debug)]
struct Named<'l> {
    id: &'l BStr,
    uri: &'l BStr,
}

/// A bundle that was downloaded.
struct Downloaded {
    id: BString,
    /// `None` once the bundle is landed or found unusable.
    waiting: Option<Waiting>,
}

/// A bundle that waits to be landed.
struct Waiting {
    header: Header,
    /// The place of its pack.
    pack: Section,
    /// A commit that the bundle requires, and that the repository lacked at the last try.
    lacking: Option<ObjectId>,
}

/// The result of landing a bundle: of storing its objects and its refs in the repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Landing {
    /// The repository lacks commits that the bundle requires. Another bundle may bring them.
    Waiting,
    /// The repository has the objects.
    Landed,
    /// The bundle is malformed, or cannot be stored.
    Unusable,
}

/// The result of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// A bundle, which is now the last of the downloaded ones.
    Bundle,
    /// A list, of which everything possible was done.
    List,
    /// Nothing that can be used.
    Nothing,
}

impl Taken {
    fn is_taken(self) -> bool {
        self != Taken::Nothing
    }
}

/// Bundles on their way into a repository.
struct Taking<'a> {
    repository: &'a Repository,
    watch: &'a Watch<'a>,
    spool: Spool,
    bundles: Vec<Downloaded>,
    files_left: usize,
    header_bytes_left: u64,
    /// Whether a list had tokens.
    has_heuristic: bool,
}

impl<'a> Taking<'a> {
    fn new(repository: &'a Repository, watch: &'a Watch<'a>) -> Self {
        Taking {
            repository,
            watch,
            spool: Spool::new(repository.objects_dir().join("pack")),
            bundles: Vec::new(),
            files_left: MOST_FILES,
            header_bytes_left: MOST_HEADER_BYTES,
            has_heuristic: false,
        }
    }

    fn warn(&self, text: &str) {
        self.watch.progress().message(&format!("warning: {text}"));
    }

    fn report(&self, text: &str) {
        self.watch.progress().message(&format!("error: {text}"));
    }

    /// Downloads the bundle at the address of `named`, or the bundles of the list there.
    fn take(&mut self, named: Named<'_>, from: &Provenance, depth: u32) -> Result<Taken> {
        let uri = named.uri;
        let Some(left) = self.files_left.checked_sub(1) else {
            return Ok(Taken::Nothing);
        };
        self.files_left = left;
        if left == 0 {
            self.report("too many bundles");
        }
        if depth >= MOST_NESTED {
            self.warn(&format!(
                "exceeded bundle URI recursion limit ({MOST_NESTED})"
            ));
            return Ok(Taken::Nothing);
        }
        let Some(section) = self.download(uri, from)? else {
            self.warn(&format!("failed to download bundle from URI '{uri}'"));
            return Ok(Taken::Nothing);
        };
        match self.read_header(section, uri) {
            Ok(None) => {}
            Ok(Some(waiting)) => {
                self.bundles.push(Downloaded {
                    id: named.id.to_owned(),
                    waiting: Some(waiting),
                });
                return Ok(Taken::Bundle);
            }
            Err(error) => {
                self.report(error.message());
                self.spool.truncate(section);
                return Ok(Taken::Nothing);
            }
        }
        let list = self.read_list(section, uri);
        self.spool.truncate(section);
        if let Some(list) = list
            && self.take_nested(&list, &from.of_list(uri), depth)?
        {
            return Ok(Taken::List);
        }
        self.warn(&format!(
            "file at URI '{uri}' is not a bundle or bundle list"
        ));
        Ok(Taken::Nothing)
    }

    /// Takes the bundles of a list that was downloaded. Returns whether that could be done.
    fn take_nested(&mut self, list: &List, from: &Provenance, depth: u32) -> Result<bool> {
        self.warn_about_tokens(list);
        if list.heuristic == Some(Heuristic::CreationToken) {
            self.has_heuristic = true;
            return self.take_by_tokens(list, from, depth);
        }
        self.take_list(list, from, depth)?;
        Ok(true)
    }

    /// Downloads the bundles of `list`: all, or one.
    fn take_list(&mut self, list: &List, from: &Provenance, depth: u32) -> Result<()> {
        for named in list.in_order().into_iter().filter_map(Entry::named) {
            let is_taken = self.take(named, from, depth + 1)?.is_taken();
            if is_taken && list.mode == Some(Mode::Any) {
                break;
            }
        }
        Ok(())
    }

    /// Warns of tokens that are not numbers.
    fn warn_about_tokens(&self, list: &List) {
        for value in &list.bad_tokens {
            self.warn(&format!(
                "could not parse bundle list key creationToken with value '{value}'"
            ));
        }
    }
}

impl Entry {
    fn named(&self) -> Option<Named<'_>> {
        self.uri.as_ref().map(|uri| Named {
            id: self.id.as_ref(),
            uri: uri.as_ref(),
        })
    }
}
