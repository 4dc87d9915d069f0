//! Fetches missing objects of a partial clone before an operation needs them.

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_odb::Store;
use pronto_storage::pack_objects::SelectedObjects;
use pronto_wire::client::FetchClient;
use pronto_wire::fetch::{Nothing, Request};

use super::connection::{self, Settings, from_wire};
use super::{PackLinks, Receive, Remote, keep_linked_objects, receive_pack, shallow};
use crate::objects::from_odb;
use crate::support::{self, Operation};
use crate::{Error, ErrorKind, Repository, Result};

/// A fetch of exactly the requested objects, without those reachable from them.
pub struct Exact<'a> {
    /// The repository that receives the objects.
    pub repository: &'a Repository,
    /// Receives the progress, and stops the operation.
    pub watch: &'a Watch<'a>,
}

impl Exact<'_> {
    /// Fetches the objects that `request` names, without the objects reachable from them, from the
    /// promisor remote.
    ///
    /// # Errors
    /// Fails if the remote refuses or fails, or the pack cannot be written.
    pub fn fetch(&self, mut client: FetchClient, request: Request) -> Result<()> {
        let request = Request {
            filter: Some(BString::from("blob:none")),
            ..request
        };
        let mut response = client
            .fetch(&request, &mut Nothing, self.watch.progress())
            .map_err(from_wire)?;
        let (repository, directory) = (self.repository, self.repository.objects_dir().join("pack"));
        let cut = shallow::read(repository)?;
        let links = PackLinks::new(repository.object_hash(), &cut);
        receive_pack(
            &mut response.pack,
            &Receive {
                directory: &directory,
                repository,
                existing: None,
                inspect: Some(&links),
                promisor: Some(Vec::new()),
                keep: None,
                keep_from: None,
                sync: true,
                unpack: None,
                watch: self.watch,
            },
        )?;
        let ids = links.into_ids();
        if !ids.is_empty() {
            let store = repository.objects()?;
            store.refresh().map_err(from_odb)?;
            let quiet = self.watch.quiet();
            keep_linked_objects(repository, store, &ids, &directory, &quiet)?;
        }
        client.close().map_err(from_wire)
    }

    /// Fetches the objects of `ids` that are missing from `objects`, if the repository is a partial
    /// clone: sends one request to each promisor remote, until no object is missing. Does nothing
    /// if `GIT_NO_LAZY_FETCH` is set.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object is still missing, with
    /// [`ErrorKind::Unsupported`] if only git supports the settings for a connection, with
    /// [`ErrorKind::Interrupted`] if the operation is interrupted, and with other kinds if the
    /// configuration or `objects` cannot be read.
    pub fn fetch_promised(
        &self,
        ids: impl IntoIterator<Item = ObjectId>,
        objects: &Store,
    ) -> Result<()> {
        let repository = self.repository;
        if !repository.has_promisor()?
            || repository
                .environment()
                .boolean("GIT_NO_LAZY_FETCH", false)?
        {
            return Ok(());
        }
        let mut missing: Vec<ObjectId> = ids.into_iter().collect();
        missing.sort_unstable();
        missing.dedup();
        missing = absent(missing, objects)?;
        let mut reason = None;
        for name in promisors(repository) {
            if missing.is_empty() {
                break;
            }
            match self.fetch_from(name.as_bstr(), &missing) {
                Ok(()) => {}
                Err(error) if stops(&error) => return Err(error),
                Err(error) => reason = Some(error),
            }
            objects.refresh().map_err(from_odb)?;
            missing = absent(missing, objects)?;
        }
        let Some(first) = missing.first() else {
            return Ok(());
        };
        let message = format!("could not fetch {first} from promisor remote");
        let error = Error::new(ErrorKind::MissingObject, message);
        Err(match reason {
            Some(reason) => error.because(reason),
            None => error,
        })
    }

    /// Selects objects with `select`, which reports missing objects, and fetches these like
    /// [`fetch_promised`](Self::fetch_promised), until no object is missing. Received trees may
    /// link to further missing objects. Missing trees of the receiver are fetched first, because
    /// the receiver may have all other missing objects. `objects` is the store from which `select`
    /// selects.
    ///
    /// Costs no request if no object is missing; otherwise at most one request for each level of
    /// missing trees, and one for blobs.
    ///
    /// # Errors
    /// Fails with the errors of `fetch_promised` and `select`, and with [`ErrorKind::Object`] if an
    /// object is missing although fetching is disabled.
    pub fn select(
        &self,
        objects: &Store,
        mut select: impl FnMut(&Watch<'_>) -> Result<SelectedObjects>,
    ) -> Result<SelectedObjects> {
        let quiet = self.watch.quiet();
        let exact = Exact {
            repository: self.repository,
            watch: &quiet,
        };
        let mut selection = select(self.watch)?;
        while let Some(first) = selection.missing.first() {
            let first = *first;
            let wanted = match selection.unknown.is_empty() {
                true => selection.missing,
                false => selection.unknown,
            };
            exact.fetch_promised(wanted.iter().copied(), objects)?;
            if !absent(wanted, objects)?.is_empty() {
                let message =
                    format!("object {first} is missing, and fetching missing objects is disabled");
                return Err(Error::new(ErrorKind::MissingObject, message));
            }
            selection = select(&quiet)?;
        }
        Ok(selection)
    }

    fn fetch_from(&self, name: &BStr, ids: &[ObjectId]) -> Result<()> {
        let repository = self.repository;
        support::require(repository, Operation::Connect)?;
        let (config, environment) = (repository.config(), repository.environment());
        let remote = Remote::known(repository, name)?;
        let settings = Settings::default().for_remote(&remote, config)?;
        let url = remote.url()?;
        connection::check(url, &settings, config, environment)?;
        let client = connection::connect(url, &settings, config, environment, self.watch)?;
        let request = Request {
            wants: ids.to_vec(),
            no_progress: true,
            server_options: remote.server_options,
            ..Request::default()
        };
        self.fetch(client, request)
    }
}

/// Checks that pronto supports the settings for connections to promisor remotes. Connects to no
/// remote.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if only git supports a setting.
pub fn check_promisors(repository: &Repository) -> Result<()> {
    let (config, environment) = (repository.config(), repository.environment());
    let fetches = !environment.boolean("GIT_NO_LAZY_FETCH", false)?;
    for name in promisors(repository) {
        if fetches {
            support::require(repository, Operation::Connect)?;
        }
        let check = || {
            let remote = Remote::known(repository, name.as_bstr())?;
            let settings = Settings::default().for_remote(&remote, config)?;
            connection::check(remote.url()?, &settings, config, environment)
        };
        match check() {
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            // Other errors only matter if an object is missing.
            _ => {}
        }
    }
    Ok(())
}

/// Whether no other remote is tried after `error`.
fn stops(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unsupported | ErrorKind::Interrupted
    )
}

fn absent(ids: Vec<ObjectId>, objects: &Store) -> Result<Vec<ObjectId>> {
    // With no ids, no pack need be opened.
    if ids.is_empty() {
        return Ok(ids);
    }
    let found = objects.contains_batch(&ids).map_err(from_odb)?;
    let absent = ids.into_iter().zip(found).filter(|(_, found)| !found);
    Ok(absent.map(|(id, _)| id).collect())
}

/// Returns the names of the promisor remotes, in the order in which Git queries them: that of
/// `extensions.partialClone` is the last.
fn promisors(repository: &Repository) -> Vec<BString> {
    let config = repository.config();
    let last = config
        .raw("extensions.partialclone")
        .filter(|name| !name.is_empty());
    let key = |name: &BStr, variable: &str| {
        [b"remote.", name.as_bytes(), b".", variable.as_bytes()].concat()
    };
    let is_promisor = |name: &BStr| {
        config.contains(key(name, "partialclonefilter"))
            || config
                .bool_or(key(name, "promisor"), false)
                .unwrap_or(false)
    };
    let names = config.subsections("remote").into_iter();
    names
        .filter(|name| is_promisor(name) && Some(*name) != last)
        .chain(last)
        .map(BStr::to_owned)
        .collect()
}
