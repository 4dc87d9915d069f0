//! Clones a repository: `git clone`.
//!
//! The new repository is created under a temporary name and renamed when its objects, refs,
//! configuration, index and files are complete. If the process ends before that, no directory is
//! left that looks like a repository. See [`clone`].

mod announce;
mod bundles;
mod checkout;
mod heads;
mod objects;
mod options;
mod outcome;
mod place;
mod references;
mod setup;
pub(crate) mod source;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use pronto_io::progress::ProgressMessage;
use pronto_io::watch::Watch;
use pronto_wire::client::FetchClient;

pub use options::{Options, ReferenceRepository};
pub use outcome::{CloneWarning, Outcome};
pub use source::{check_source, guess_directory, guess_directory_of_bundle, is_bundle};

use crate::bundle::Bundle;
use crate::config::{self, Config};
use crate::environment::Environment;
use crate::init::StorageChoice;
use crate::remote::connection;
use crate::repository::Notice;
use crate::support::{self, Operation};
use crate::{
    Error, ErrorKind, Repository, Result, checkout_tree, gitmodules, path, remote, sparse_checkout,
};
use announce::Announcement;
use heads::ClonedHeads;
use place::ClonePaths;
use pronto_config::safety;
use pronto_storage::local;

/// State that the steps of a clone share.
struct CloneRun<'a> {
    options: &'a Options,
    environment: &'a Environment,
    config: Config,
    /// The ref storage format of the new repository.
    storage: StorageChoice,
    source: source::CloneSource,
    origin: BString,
    /// The settings of connections, including those of the new remote.
    settings: connection::Settings,
    /// The reflog message.
    message: BString,
    /// Receives the progress, and stops the operation.
    watch: &'a Watch<'a>,
}

/// Clones the repository `name` (a URL or a path) into `directory`, like `git clone`.
///
/// A local path is not read by this process: except for a bundle, the clone starts `git upload-pack`
/// there, from the search path, or the program of [`Environment::set_server`]. The object files are
/// linked or copied. Other addresses start `ssh` or connect directly.
///
/// The pack is indexed while it is received. Apart from the tables of the indexer, the use of
/// memory does not depend on the size of the pack. Blocks until the clone is complete.
///
/// # Errors
/// - [`ErrorKind::NotARepository`] if `name` is a path without a repository.
/// - [`ErrorKind::AlreadyExists`] if `directory` exists and is not an empty directory.
/// - [`ErrorKind::InvalidInput`] if the address or the name of the remote is malformed, or options
///   contradict each other.
/// - [`ErrorKind::Refused`] if the source is shallow and [`Options::reject_shallow`] forbids that.
/// - [`ErrorKind::Unsupported`] if pronto does not support the scheme of the URL or a feature of
///   the server.
/// - [`ErrorKind::Io`] if a file cannot be written.
/// - Any kind of an error of the connection if the remote cannot be reached, or of the pack if the
///   pack is invalid or incomplete.
///
/// A failed clone removes all files that it has created. The messages are Git's. Files that cannot
/// be checked out are no error: see [`Outcome::checkout_failed`].
pub fn clone(
    name: &BStr,
    directory: &Path,
    options: &Options,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<Outcome> {
    let given_environment = environment;
    let mut environment = environment.clone();
    for variable in setup::REPOSITORY_VARIABLES {
        environment.remove(variable);
    }
    let what = if options.is_bare() {
        "bare repository "
    } else {
        ""
    };
    let line = format!("Cloning into {what}'{}'...", directory.display());
    let announcement = Announcement::new(watch, line);
    let announced = announcement.watch(watch);
    let work = CloneRun::prepare(name, options, &environment, &announced, &announcement)?;
    support::require_settings(Operation::Clone, &work.config, given_environment)?;
    let place = ClonePaths::check(directory, options, &environment)?;
    work.check_address()?;
    if !remote::is_valid_name(work.origin.as_bstr()) {
        announcement.say();
        let message = format!("'{}' is not a valid remote name", work.origin);
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let mut client = work.connect_first(&announcement)?;
    let mut refs = client
        .refs(&heads::request(&work)?)
        .map_err(connection::from_wire)?;
    refs.retain(|found| heads::is_usable(found.name.as_bstr()));
    let heads = ClonedHeads::choose(&refs, &work)?;
    let mut place = place.occupy()?;
    match work.build(client, &heads, &mut place) {
        Ok(outcome) => Ok(outcome),
        Err(error) => {
            place.give_up();
            Err(error)
        }
    }
}

impl<'a> CloneRun<'a> {
    fn prepare(
        name: &BStr,
        options: &'a Options,
        environment: &'a Environment,
        watch: &'a Watch<'a>,
        announcement: &Announcement,
    ) -> Result<Self> {
        let config = user_config(options, environment)?;
        let source = source::CloneSource::find(name, environment)?;
        let origin = match &options.origin {
            Some(origin) => origin.clone(),
            None => match config.string("clone.defaultremotename")? {
                Some(origin) => origin.into(),
                None => "origin".into(),
            },
        };
        let shown = connection::shown(source.url.as_bstr());
        let remote = remote::Remote::configured(&config, origin.as_bstr())?;
        Ok(CloneRun {
            settings: options.settings.for_remote(&remote, &config)?,
            options,
            environment,
            storage: choose_storage(options, &config, environment)
                .inspect_err(|_| announcement.say())?,
            config,
            message: format!("clone: from {shown}").into(),
            source,
            origin,
            watch,
        })
    }

    /// Returns the URL to connect to.
    fn address(&self) -> BString {
        match self.source.local.as_ref().or(self.source.bundle.as_ref()) {
            Some(local) => path::as_bytes(local).to_owned(),
            None => remote::rewritten(&self.config, self.source.url.as_bstr()),
        }
    }

    /// Checks that the scheme of the URL is supported.
    fn check_address(&self) -> Result<()> {
        match pronto_wire::address::RemoteAddress::parse(self.address().as_bstr()) {
            Err(error) if error.kind() == pronto_wire::ErrorKind::Unsupported => {
                Err(connection::from_wire(error))
            }
            // Other errors are reported when the URL is used.
            _ => Ok(()),
        }
    }

    /// Connects to the remote and prints the first line. Whether a web server is supported is only
    /// known from its response. If the server is not supported, nothing has been printed, and the
    /// call can be handed over to git.
    fn connect_first(&self, announcement: &Arc<Announcement>) -> Result<FetchClient> {
        let url = self.address();
        if !url.starts_with(b"http") {
            announcement.say();
            self.check_bundle()?;
            return self.connect();
        }
        let first = announcement.clone();
        let connected = connection::connect_with(
            url.as_bstr(),
            &self.settings,
            &self.config,
            self.environment,
            Box::new(move |helpers| first.before(helpers)),
            self.watch,
        );
        match &connected {
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            _ => announcement.say(),
        }
        connected
    }

    /// Rejects a bundle that has a filter. A file that is not a bundle is reported, and connecting
    /// then fails because the file is not a repository either.
    fn check_bundle(&self) -> Result<()> {
        let Some(file) = &self.source.bundle else {
            return Ok(());
        };
        match Bundle::open(path::as_bytes(file), self.environment) {
            Ok(bundle) if bundle.header().filter.is_some() => {
                let message = "cannot clone from filtered bundle";
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
            Ok(_) => Ok(()),
            Err(error) => {
                let message = ProgressMessage::Error(error.message());
                self.watch.progress().message(message);
                Ok(())
            }
        }
    }

    fn connect(&self) -> Result<FetchClient> {
        let url = self.address();
        let settings = &self.settings;
        connection::connect(
            url.as_bstr(),
            settings,
            &self.config,
            self.environment,
            self.watch,
        )
    }

    /// Returns whether object files are linked or copied instead of being fetched (`--local`).
    fn takes_files(&self, warnings: &mut Vec<CloneWarning>) -> Result<bool> {
        let Some(source) = &self.source.local else {
            if self.options.local == Some(true) {
                warnings.push(CloneWarning::LocalIgnored);
            }
            return Ok(false);
        };
        if self.options.local == Some(false) {
            return Ok(false);
        }
        let deepen = &self.options.deepen;
        let ignored = [
            ("--depth", deepen.depth.is_some()),
            ("--shallow-since", deepen.since.is_some()),
            ("--shallow-exclude", !deepen.not.is_empty()),
            ("--filter", self.options.filter.is_some()),
        ];
        for (option, _) in ignored.iter().filter(|(_, given)| *given) {
            warnings.push(CloneWarning::OptionIgnored(option));
        }
        if local::objects_of(source).with_file_name("shallow").exists() {
            if self.rejects_shallow()? {
                let message = "source repository is shallow, reject to clone.";
                return Err(Error::new(ErrorKind::Refused, message));
            }
            if self.options.local == Some(true) {
                warnings.push(CloneWarning::ShallowSource);
            }
            return Ok(false);
        }
        Ok(true)
    }

    fn rejects_shallow(&self) -> Result<bool> {
        match self.options.reject_shallow {
            Some(reject) => Ok(reject),
            None => self.config.bool_or("clone.rejectshallow", false),
        }
    }

    fn build(
        &self,
        mut client: FetchClient,
        heads: &ClonedHeads<'_>,
        place: &mut ClonePaths,
    ) -> Result<Outcome> {
        let mut warnings = heads.warnings.clone();
        if let Some(Notice::UnknownRefStorage(name)) = &self.storage.warning {
            warnings.push(CloneWarning::UnknownRefStorage(name.clone()));
        }
        let takes_files = self.takes_files(&mut warnings)?;
        self.make_repository(&client, heads, place, &mut warnings)?;
        let mut repository = place.open_partial(self.environment)?;
        let objects = repository.objects_dir();
        let missing_references = self.use_references(&objects)?;
        self.take_bundles(&mut client, &repository)?;
        let received = if takes_files {
            self.take_files(&objects)?;
            client.close().map_err(connection::from_wire)?;
            None
        } else {
            objects::fetch(self, client, heads, &repository)?
        };
        self.follow(&repository, heads)?;
        let store = objects::open(&repository)?;
        let head = references::write(self, heads, &repository, &store)?;
        warnings.extend(head.warning.clone());
        if self.options.sparse {
            sparse_checkout::begin(&mut repository)?;
        }
        let mut outcome = Outcome {
            detached: head.detached,
            has_submodules: false,
            was_local: takes_files,
            warnings,
            missing_references,
            checkout: checkout_tree::Outcome::default(),
            checkout_error: None,
            checkout_failed: false,
            checked_out: None,
            repository,
        };
        outcome.checked_out = self.check_out(&head, place, &store, &mut outcome)?;
        if let Some(received) = received {
            received.wait_for_disk()?;
        }
        place.name()?;
        outcome.repository = Repository::open(&place.git_dir, self.environment)?;
        Ok(outcome)
    }

    /// Returns the filter that the remote applies (`--filter`).
    fn filter(&self, client: &FetchClient) -> Option<BString> {
        let takes_files = self.source.local.is_some() && self.options.local != Some(false);
        self.options
            .filter
            .clone()
            .filter(|_| client.can_filter() && !takes_files)
    }

    /// Adds the reference repositories as alternates. Returns the optional ones that are missing.
    fn use_references(&self, objects: &Path) -> Result<Vec<PathBuf>> {
        let (mut directories, mut missing) = (Vec::new(), Vec::new());
        for reference in &self.options.references {
            let given = &reference.path;
            // Unlike the source, a reference is recorded by its real path.
            let named = self.environment.absolute(given);
            let real = std::fs::canonicalize(&named).unwrap_or(named);
            let found = source::CloneSource::find(path::as_bytes(&real), self.environment);
            match found.ok().and_then(|source| source.local) {
                Some(git_dir) => directories.push(local::objects_of(&git_dir)),
                None if reference.is_required => {
                    let shown = given.display();
                    let message =
                        format!("reference repository '{shown}' is not a local repository.");
                    return Err(Error::new(ErrorKind::InvalidInput, message));
                }
                None => missing.push(given.clone()),
            }
        }
        if !directories.is_empty() {
            local::add_alternates(&objects.join("info/alternates"), &directories)?;
        }
        Ok(missing)
    }

    fn take_files(&self, objects: &Path) -> Result<()> {
        let Some(source) = &self.source.local else {
            return Ok(());
        };
        // The owner of the source could replace files while they are copied, and could modify files
        // that are linked.
        let parts = safety::DiscoveredPaths {
            git_file: None,
            work_tree: None,
            git_dir: source,
        };
        safety::check_owner(&parts, self.environment)?;
        let theirs = local::objects_of(source);
        if self.options.shared {
            return local::add_alternates(&objects.join("info/alternates"), &[theirs]);
        }
        local::link_objects(&theirs, objects, self.options.hardlinks)
    }

    /// Checks out the files and writes the index. Returns the commit, if any.
    fn check_out(
        &self,
        head: &references::InitialHead,
        place: &ClonePaths,
        store: &pronto_odb::Store,
        outcome: &mut Outcome,
    ) -> Result<Option<ObjectId>> {
        let Some(work_tree) = place.work_tree.as_deref().filter(|_| self.options.checkout) else {
            return Ok(None);
        };
        let Some(commit) = head.id else {
            if head.is_dangling {
                outcome.warnings.push(CloneWarning::DanglingHead);
            }
            return Ok(None);
        };
        checkout::check_out(self, &head.name, commit, store, outcome)?;
        outcome.has_submodules = gitmodules::is_in(work_tree);
        Ok(Some(commit))
    }
}

/// Chooses the ref storage format. As in Git, the settings for the new repository (`-c`) have no
/// influence.
fn choose_storage(
    options: &Options,
    config: &Config,
    environment: &Environment,
) -> Result<StorageChoice> {
    if options.config.is_empty() {
        return StorageChoice::of_new(options.ref_storage, config, environment);
    }
    let config = config::without_repository(environment)?;
    StorageChoice::of_new(options.ref_storage, &config, environment)
}

/// Returns the user's configuration, overridden by the settings of `-c` for the new repository.
fn user_config(options: &Options, environment: &Environment) -> Result<Config> {
    let mut environment = environment.clone();
    for setting in &options.config {
        let (key, value) = match setting.split_once_str("=") {
            Some((key, value)) => (key, Some(value)),
            None => (setting.as_bytes(), None),
        };
        let value = value.map(|value| path::from_bytes(value).into_os_string());
        environment.add_config_parameter(&key.to_str_lossy(), value.as_deref());
    }
    config::without_repository(&environment)
}
