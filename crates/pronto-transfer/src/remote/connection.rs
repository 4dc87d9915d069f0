//! Connecting to a remote with the user's settings.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::watch::Watch;
use pronto_wire::address::{Address, is_local, is_url};
use pronto_wire::advertisement::Version;
use pronto_wire::archive::Client as ArchiveClient;
use pronto_wire::client::Client;
use pronto_wire::policy::{Allow, Policy};
use pronto_wire::push::Pusher;
use pronto_wire::transport::http::{self, Unset};
use pronto_wire::transport::{LOCAL_VARIABLES, Options, Ssh};
use pronto_wire::url::Origin;

use super::bundle;
use super::web::{self, Logins, WebSettings, Wrap};

pub use super::settings::Settings;
use crate::config::Config;
use crate::environment::Environment;
use crate::{Error, ErrorKind, Repository, Result};

/// Fails if what is set for the connection to `url` is malformed, or cannot be obeyed. Sends
/// nothing.
///
/// # Errors
/// As said; with [`ErrorKind::Unsupported`] if git can obey it.
pub fn check(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<()> {
    match Address::parse(url).map_err(from_wire)? {
        Address::Http { url } => web::check(&url, settings, config, environment),
        _ => Ok(()),
    }
}

/// Whether `url` is the path of a bundle.
pub fn is_bundle(url: &BStr, environment: &Environment) -> bool {
    is_path(url) && bundle::open(url, environment).is_some()
}

/// Whether `url` is a path. One with `file://` always means a repository, as in Git.
fn is_path(url: &BStr) -> bool {
    !is_url(url) && is_local(url)
}

/// Connects to the repository at `url`.
///
/// # Errors
/// The address or a setting is malformed, the transport is not allowed, or the server does not
/// answer.
pub fn connect(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<Client> {
    let wrap: Wrap = Box::new(|helpers| helpers);
    connect_with(url, settings, config, environment, watch, wrap)
}

/// Like [`connect`], with what `wrap` makes of those who know the user's passwords.
///
/// # Errors
/// As for [`connect`].
pub fn connect_with(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
    wrap: Wrap,
) -> Result<Client> {
    let address = Address::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    if is_path(url)
        && !settings.no_bundles
        && let Some(opened) = bundle::open(url, environment)
    {
        options
            .policy
            .check(address.protocol())
            .map_err(from_wire)?;
        return Ok(Client::of_bundle(
            opened.header,
            opened.pack,
            watch.interrupt(),
        ));
    }
    let web: Box<dyn http::Settings> = match &address {
        Address::Http { .. } => Box::new(WebSettings {
            config: config.clone(),
            environment: environment.clone(),
            settings: settings.clone(),
            wrap,
            logins: Logins::OfFirst,
        }),
        _ => Box::new(Unset),
    };
    Client::connect(&address, &options, web, watch.progress(), watch.interrupt()).map_err(from_wire)
}

/// Connects to the repository at `url` to push to it; the program of `settings` is the one that
/// receives.
///
/// # Errors
/// As for [`connect`].
pub(crate) fn connect_to_push(
    url: &BStr,
    settings: &Settings,
    repository: &Repository,
    watch: &Watch<'_>,
) -> Result<Pusher> {
    let (config, environment) = (repository.config(), repository.environment());
    let address = Address::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    let web = web_settings(&address, settings, config, environment);
    Pusher::connect(&address, &options, web, watch.progress(), watch.interrupt()).map_err(from_wire)
}

/// Connects to the repository at `url` for an archive; the program of `settings` is the one that makes it.
///
/// # Errors
/// As for [`connect`].
pub(crate) fn connect_to_archive(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<ArchiveClient> {
    let address = Address::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    let web = web_settings(&address, settings, config, environment);
    ArchiveClient::connect(&address, &options, web, watch.progress(), watch.interrupt())
        .map_err(from_wire)
}

/// Returns what the user has set for the servers of HTTP.
fn web_settings(
    address: &Address,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Box<dyn http::Settings> {
    match address {
        Address::Http { .. } => Box::new(WebSettings {
            config: config.clone(),
            environment: environment.clone(),
            settings: settings.clone(),
            wrap: Box::new(|helpers| helpers),
            logins: Logins::OfFirst,
        }),
        _ => Box::new(Unset),
    }
}

/// Returns the options and the user's settings for a download from the web. Only requests to `named`, the
/// origin of the user's address, use `~/.netrc`; none does if that address is not on the web.
///
/// # Errors
/// A setting is malformed.
pub(crate) fn for_download(
    named: Option<&Origin>,
    policy: Policy,
    config: &Config,
    environment: &Environment,
) -> Result<(Options, Box<dyn http::Settings>)> {
    let mut options = Options::default();
    options.policy = policy;
    let settings = WebSettings {
        config: config.clone(),
        environment: environment.clone(),
        settings: Settings::default(),
        wrap: Box::new(|helpers| helpers),
        logins: Logins::Of(named.cloned()),
    };
    Ok((options, Box::new(settings)))
}

/// The error of the crate below as one of this crate.
pub fn from_wire(error: pronto_wire::Error) -> Error {
    use pronto_wire::ErrorKind as Wire;
    error.map_kind(|kind| match kind {
        Wire::Unsupported => ErrorKind::Unsupported,
        Wire::Interrupted => ErrorKind::Interrupted,
        Wire::Address => ErrorKind::InvalidInput,
        _ => ErrorKind::Transport,
    })
}

fn options(
    address: &Address,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<Options> {
    // Variables that tie this process to its repository do not concern the server. Options before
    // the command are among them, as in Git.
    let is_own = |name: &std::ffi::OsStr| LOCAL_VARIABLES.iter().any(|own| name == *own);
    let changes = environment.changes().filter(|(name, _)| !is_own(name));
    let changes =
        changes.map(|(name, value)| (name.to_owned(), value.map(|value| value.to_owned())));
    let mut options = Options::default();
    options.version = version(config, environment)?;
    options.command = settings.upload_pack.clone();
    options.directory = Some(environment.working_dir().to_owned());
    options.environment = changes.collect();
    options.family = settings.family;
    // Git reads the setting when it asks for objects: see `check_session_id`.
    options.session_id = session_id(config, environment).unwrap_or_default();
    options.policy = policy(config, environment, address.protocol())?;
    if let Some(server) = settings.server.as_deref().or(environment.server()) {
        server.clone_into(&mut options.git);
        // The server decides by itself whether it calls git.
        options
            .environment
            .insert("PRONTO_NO_FALLBACK".into(), None);
    }
    match address {
        Address::Ssh { .. } => options.ssh = ssh(config, environment)?,
        Address::Git { host, .. } => {
            let program = web::git_proxy(host.as_bytes().into(), config, environment);
            options.git_proxy = program.map(|program| OsString::from_vec(program.into()));
        }
        _ => {}
    }
    Ok(options)
}

/// The id of this session, if other sides are to be told (`transfer.advertiseSID`).
///
/// # Errors
/// The setting is not a boolean.
pub(crate) fn session_id(config: &Config, environment: &Environment) -> Result<Option<BString>> {
    let is_told = config.bool_or("transfer.advertisesid", false)?;
    Ok(environment
        .session_id()
        .filter(|_| is_told)
        .map(BString::from))
}

/// The version of the protocol to ask for: as configured, else as Git's own tests say, else 2.
fn version(config: &Config, environment: &Environment) -> Result<Version> {
    let for_tests = "GIT_TEST_PROTOCOL_VERSION";
    let (value, what) = match config.string("protocol.version")? {
        Some(value) => (value, "config 'protocol.version'"),
        None => match environment.bytes(for_tests) {
            Some(value) if !value.is_empty() => (value.as_bstr(), for_tests),
            _ => return Ok(Version::V2),
        },
    };
    match value.as_bytes() {
        b"0" => Ok(Version::V0),
        b"1" => Ok(Version::V1),
        b"2" => Ok(Version::V2),
        _ => {
            let message = format!("unknown value for {what}: {value}");
            Err(Error::new(ErrorKind::ConfigValue, message))
        }
    }
}

/// Checks the value of `transfer.advertiseSID`, which Git reads when it asks for objects.
///
/// # Errors
/// The setting is not a boolean.
pub fn check_session_id(config: &Config) -> Result<()> {
    config.bool("transfer.advertisesid").map(|_| ())
}

/// Returns which transports the user allows. The transport of `protocol` is about to be used: only its settings have to be
/// well formed, and others that are malformed allow nothing.
///
/// # Errors
/// A configured value about `protocol` is none that Git knows.
pub fn policy(config: &Config, environment: &Environment, protocol: &str) -> Result<Policy> {
    let parse = |key: &str, value: &BStr| {
        Allow::from_name(&value.to_str_lossy()).ok_or_else(|| {
            let message = format!("unknown value for config '{key}': {value}");
            Error::new(ErrorKind::ConfigValue, message)
        })
    };
    let mut policy = Policy {
        only: environment
            .text("GIT_ALLOW_PROTOCOL")
            .map(|list| list.split(':').map(str::to_owned).collect()),
        from_user: environment.boolean("GIT_PROTOCOL_FROM_USER", true)?,
        ..Policy::default()
    };
    let read = |key: &str| -> Result<Option<Allow>> {
        let value = config.string(key)?;
        value.map(|value| parse(key, value)).transpose()
    };
    let is_restricted = policy.only.is_some();
    for name in config.subsections("protocol") {
        let allow = match read(&format!("protocol.{name}.allow")) {
            Err(error) if name == protocol && !is_restricted => return Err(error),
            Err(_) => Some(Allow::Never),
            Ok(allow) => allow,
        };
        policy
            .by_name
            .extend(allow.map(|allow| (name.to_string(), allow)));
    }
    policy.default = match read("protocol.allow") {
        Err(error) if !policy.by_name.contains_key(protocol) && !is_restricted => {
            return Err(error);
        }
        Err(_) => Some(Allow::Never),
        Ok(allow) => allow,
    };
    Ok(policy)
}

fn ssh(config: &Config, environment: &Environment) -> Result<Ssh> {
    let command = match environment.bytes("GIT_SSH_COMMAND") {
        Some(command) => Some(command.into()),
        None => config.string("core.sshcommand")?.map(BStr::to_owned),
    };
    let variant = match environment.text("GIT_SSH_VARIANT") {
        Some(variant) => Some(variant.to_owned()),
        None => config
            .string("ssh.variant")?
            .map(|variant| variant.to_string()),
    };
    Ok(Ssh {
        command,
        program: environment.path("GIT_SSH").map(PathBuf::from),
        variant,
    })
}

/// The address of `url` as other messages show it: without a password.
pub fn shown(url: &BStr) -> BString {
    pronto_wire::address::without_credentials(url)
}
