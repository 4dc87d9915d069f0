//! Bundles to start from: a clone or a fetch takes them before it asks the server for the rest.
//!
//! An address leads to a bundle or to a list of bundles ([`List`]), whose entries can be lists again. A
//! bundle that fits is taken in, and its refs become `refs/bundles/…`, which the negotiation offers to the
//! server. Nothing of this has to work: failures are reported to the progress of the [`Watch`], and what
//! is lacking comes from the server. See [`fetch`] and [`fetch_list`].
//!
//! # Untrusted addresses
//!
//! A list that came over a network can name web addresses only, and only those that the user's settings
//! allow without asking the user (`protocol.<name>.allow`). Passwords are looked up for each address by
//! itself; headers and `.netrc` follow the origin that the user named. A bundle is taken in only if all
//! that its objects link to is there, so that it cannot make a repository incomplete.

mod address;
mod download;
mod land;
mod list;
mod tokens;

use std::fs::File;
use std::path::PathBuf;

use bstr::{BStr, BString};
use pronto_io::watch::Watch;
use pronto_wire::url::{Origin, Url};

use crate::{Repository, Result};
pub use list::{BadList, Entry, Heuristic, List, Mode};

/// The largest number of lists within lists, as in Git.
const MOST_NESTED: u32 = 4;

/// The largest number of files that are downloaded for one address.
const MOST_FILES: usize = 4096;

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
/// # Errors
/// The operation was interrupted, or something cannot be written. Other failures are reported to the
/// progress of `watch` as Git reports them.
pub fn fetch(repository: &Repository, uri: &BStr, watch: &Watch<'_>) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    if uri.is_empty() {
        outcome.succeeded = true;
        return Ok(outcome);
    }
    let _region = pronto_io::region!("bundle-uri", "fetch");
    let mut taking = Taking::new(repository, watch);
    let root = Named {
        id: "<root>".into(),
        uri: uri.into(),
    };
    outcome.succeeded = taking.take(&root, &Provenance::of_user(uri), 0)?.is_taken();
    outcome.has_heuristic = taking.has_heuristic;
    if outcome.succeeded {
        taking.land_all()?;
    }
    Ok(outcome)
}

/// Takes the bundles of `list`, which the server at `url` named. Returns whether that could be done.
///
/// # Errors
/// As for [`fetch`].
pub fn fetch_list(
    repository: &Repository,
    list: &List,
    url: &BStr,
    watch: &Watch<'_>,
) -> Result<bool> {
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

/// The origin of an address, which decides what it may lead to.
#[derive(Clone, Debug)]
struct Provenance {
    /// Whether the user named it, or a file of the user: then it may lead to files.
    is_trusted: bool,
    /// The origin that the user named, if it is on the web.
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

    /// The provenance of addresses in the list at `uri`, whose own address comes from here.
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
#[derive(Clone, Debug)]
struct Named {
    id: BString,
    uri: BString,
}

/// A bundle that was downloaded.
struct Downloaded {
    id: BString,
    file: File,
    is_landed: bool,
}

/// The result of one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    /// A bundle, the last of those that wait to be taken in.
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
    /// The directory of the files, which have no names.
    directory: PathBuf,
    bundles: Vec<Downloaded>,
    files_left: usize,
    /// Whether a list had tokens.
    has_heuristic: bool,
}

impl<'a> Taking<'a> {
    fn new(repository: &'a Repository, watch: &'a Watch<'a>) -> Self {
        Taking {
            repository,
            watch,
            directory: repository.objects_dir().join("pack"),
            bundles: Vec::new(),
            files_left: MOST_FILES,
            has_heuristic: false,
        }
    }

    fn warn(&self, text: &str) {
        self.watch.progress().message(&format!("warning: {text}"));
    }

    fn report(&self, text: &str) {
        self.watch.progress().message(&format!("error: {text}"));
    }

    /// Downloads what `named` leads to: a bundle, or the bundles of a list.
    fn take(&mut self, named: &Named, from: &Provenance, depth: u32) -> Result<Taken> {
        let uri = &named.uri;
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
        let Some(file) = self.download(uri.as_ref(), from)? else {
            self.warn(&format!("failed to download bundle from URI '{uri}'"));
            return Ok(Taken::Nothing);
        };
        if download::is_bundle(&file) {
            self.bundles.push(Downloaded {
                id: named.id.clone(),
                file,
                is_landed: false,
            });
            return Ok(Taken::Bundle);
        }
        if self.take_file(&file, uri.as_ref(), from, depth)? {
            return Ok(Taken::List);
        }
        self.warn(&format!(
            "file at URI '{uri}' is not a bundle or bundle list"
        ));
        Ok(Taken::Nothing)
    }

    /// Takes the bundles of the list in `file`, which came from `uri`. Returns whether that could be done.
    fn take_file(
        &mut self,
        file: &File,
        uri: &BStr,
        from: &Provenance,
        depth: u32,
    ) -> Result<bool> {
        let text = match download::text_of(file) {
            Ok(text) => text,
            Err(error) => {
                self.report(&format!("cannot read the bundle list of '{uri}': {error}"));
                return Ok(false);
            }
        };
        let list = match List::parse(&text, address::directory_of(uri)) {
            Ok(list) => list,
            Err(bad) => {
                self.report(&format!("{bad} in file {uri}"));
                return Ok(false);
            }
        };
        self.warn_about_tokens(&list);
        let from = from.of_list(uri);
        if list.heuristic == Some(Heuristic::CreationToken) {
            self.has_heuristic = true;
            return self.take_by_tokens(&list, &from, depth);
        }
        self.take_list(&list, &from, depth)?;
        Ok(true)
    }

    /// Downloads the bundles of `list`: all, or one.
    fn take_list(&mut self, list: &List, from: &Provenance, depth: u32) -> Result<()> {
        for entry in list.in_order() {
            let Some(named) = entry.named() else {
                continue;
            };
            let is_taken = self.take(&named, from, depth + 1)?.is_taken();
            if is_taken && list.mode == Some(Mode::Any) {
                break;
            }
        }
        Ok(())
    }

    /// Warns of tokens that are no numbers.
    fn warn_about_tokens(&self, list: &List) {
        for value in &list.bad_tokens {
            self.warn(&format!(
                "could not parse bundle list key creationToken with value '{value}'"
            ));
        }
    }
}

impl Entry {
    fn named(&self) -> Option<Named> {
        self.uri.as_ref().map(|uri| Named {
            id: self.id.clone(),
            uri: uri.clone(),
        })
    }
}
