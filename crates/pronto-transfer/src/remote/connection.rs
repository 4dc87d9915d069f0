//! Connects to remotes with the user's settings.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use pronto_io::watch::Watch;
use pronto_wire::address::{RemoteAddress, is_local, is_url};
use pronto_wire::advertisement::ProtocolVersion;
use pronto_wire::archive::RemoteArchive as ArchiveClient;
use pronto_wire::client::FetchClient;
use pronto_wire::policy::{Allow, TransportPolicy};
use pronto_wire::push::Pusher;
use pronto_wire::transport::http::{self, Unset};
use pronto_wire::transport::{LOCAL_VARIABLES, Options, SshOptions};
use pronto_wire::url::UrlOrigin;

use super::bundle;
use super::web::{self, Logins, WebSettings, Wrap};

pub use super::settings::Settings;
use crate::config::Config;
use crate::environment::Environment;
use crate::{Error, ErrorKind, Repository, Result};

/// Checks that the settings for a connection to `url` are valid and supported. Sends nothing.
///
/// # Errors
/// Fails with [`ErrorKind::Unsupported`] if only git supports a setting, and with
/// [`ErrorKind::ConfigValue`] or [`ErrorKind::InvalidInput`] if a setting or the URL is malformed.
pub fn check(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<()> {
    match RemoteAddress::parse(url).map_err(from_wire)? {
        RemoteAddress::Http { url } => web::check(&url, settings, config, environment),
        _ => Ok(()),
    }
}

/// Whether `url` is the path of a bundle.
pub fn is_bundle(url: &BStr, environment: &Environment) -> bool {
    is_path(url) && bundle::open(url, environment).is_some()
}

/// Whether `url` is a path. As in Git, a URL with `file://` always names a repository.
fn is_path(url: &BStr) -> bool {
    !is_url(url) && is_local(url)
}

/// Connects to the repository at `url`.
///
/// # Errors
/// Fails with [`ErrorKind::InvalidInput`] if the URL is malformed, with [`ErrorKind::ConfigValue`]
/// if a setting is malformed, and with [`ErrorKind::Transport`] or [`ErrorKind::Unsupported`] if
/// the transport is not allowed or not supported, or the server does not respond.
pub fn connect(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<FetchClient> {
    let wrap: Wrap = Box::new(|helpers| helpers);
    connect_with(url, settings, config, environment, wrap, watch)
}

/// Does the same as [`connect`], with the credentials that `wrap` returns.
///
/// # Errors
/// The same as for [`connect`].
pub fn connect_with(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    wrap: Wrap,
    watch: &Watch<'_>,
) -> Result<FetchClient> {
    let address = RemoteAddress::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    if is_path(url)
        && !settings.no_bundles
        && let Some(opened) = bundle::open(url, environment)
    {
        options
            .policy
            .check(address.protocol())
            .map_err(from_wire)?;
        return Ok(FetchClient::of_bundle(
            opened.header,
            opened.pack,
            watch.interrupt(),
        ));
    }
    let web: Box<dyn http::Settings> = match &address {
        RemoteAddress::Http { .. } => Box::new(WebSettings {
            config: config.clone(),
            environment: environment.clone(),
            settings: settings.clone(),
            wrap,
            logins: Logins::OfFirst,
        }),
        _ => Box::new(Unset),
    };
    FetchClient::connect(&address, &options, web, watch.progress(), watch.interrupt())
        .map_err(from_wire)
}

/// Connects to the repository at `url` for a push. The program of `settings` is that of
/// `receive-pack`.
///
/// # Errors
/// The same as for [`connect`].
pub(crate) fn connect_to_push(
    url: &BStr,
    settings: &Settings,
    repository: &Repository,
    watch: &Watch<'_>,
) -> Result<Pusher> {
    let (config, environment) = (repository.config(), repository.environment());
    let address = RemoteAddress::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    let web = web_settings(&address, settings, config, environment);
    Pusher::connect(&address, &options, web, watch.progress(), watch.interrupt()).map_err(from_wire)
}

/// Connects to the repository at `url` for an archive. The program of `settings` is that of
/// `upload-archive`.
///
/// # Errors
/// The same as for [`connect`].
pub(crate) fn connect_to_archive(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: &Watch<'_>,
) -> Result<ArchiveClient> {
    let address = RemoteAddress::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    let web = web_settings(&address, settings, config, environment);
    ArchiveClient::connect(&address, &options, web, watch.progress(), watch.interrupt())
        .map_err(from_wire)
}

/// Returns the user's HTTP settings.
fn web_settings(
    address: &RemoteAddress,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Box<dyn http::Settings> {
    match address {
        RemoteAddress::Http { .. } => Box::new(WebSettings {
            config: config.clone(),
            environment: environment.clone(),
            settings: settings.clone(),
            wrap: Box::new(|helpers| helpers),
            logins: Logins::OfFirst,
        }),
        _ => Box::new(Unset),
    }
}

/// Returns the options and the user's settings for an HTTP download. Only requests to `named`, the
/// origin of the user's URL, use `~/.netrc`; no request does if the user's URL is not an HTTP URL.
///
/// # Errors
/// Fails if a setting is malformed.
pub(crate) fn for_download(
    named: Option<&UrlOrigin>,
    policy: TransportPolicy,
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

/// Converts an error of `pronto-wire` into one of this crate.
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
    address: &RemoteAddress,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<Options> {
    // The environment variables that select this process's repository are not passed to the server.
    // As in Git, the `-c` options of the command line are among them.
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
    // A malformed value has no effect here, because Git reads `transfer.advertiseSID` only when it
    // requests objects: see `check_session_id`.
    options.session_id = session_id(config, environment).unwrap_or_default();
    options.policy = policy(config, environment, address.protocol())?;
    if let Some(server) = settings.server.as_deref().or(environment.server()) {
        server.clone_into(&mut options.git);
        // The server decides itself whether it calls git.
        options
            .environment
            .insert("PRONTO_NO_FALLBACK".into(), None);
    }
    match address {
        RemoteAddress::Ssh { .. } => options.ssh = ssh(config, environment)?,
        RemoteAddress::Git { host, .. } => {
            let program = web::git_proxy(host.as_bytes().into(), config, environment);
            options.git_proxy = program.map(|program| OsString::from_vec(program.into()));
        }
        _ => {}
    }
    Ok(options)
}

/// Returns the id of this session, if `transfer.advertiseSID` is set.
///
/// # Errors
/// Fails if the setting is not a boolean.
pub(crate) fn session_id(config: &Config, environment: &Environment) -> Result<Option<BString>> {
    let is_advertised = config.bool_or("transfer.advertisesid", false)?;
    Ok(environment
        .session_id()
        .filter(|_| is_advertised)
        .map(BString::from))
}

/// Returns the protocol version to request: as configured (`protocol.version`), else as the
/// variable of Git's own tests, else 2.
fn version(config: &Config, environment: &Environment) -> Result<ProtocolVersion> {
    let for_tests = "GIT_TEST_PROTOCOL_VERSION";
    let (value, what) = match config.string("protocol.version")? {
        Some(value) => (value, "config 'protocol.version'"),
        None => match environment.bytes(for_tests) {
            Some(value) if !value.is_empty() => (value.as_bstr(), for_tests),
            _ => return Ok(ProtocolVersion::V2),
        },
    };
    match value.as_bytes() {
        b"0" => Ok(ProtocolVersion::V0),
        b"1" => Ok(ProtocolVersion::V1),
        b"2" => Ok(ProtocolVersion::V2),
        _ => {
            let message = format!("unknown value for {what}: {value}");
            Err(Error::new(ErrorKind::ConfigValue, message))
        }
    }
}

/// Checks the value of `transfer.advertiseSID`, which Git reads when it requests objects.
///
/// # Errors
/// Fails if the setting is not a boolean.
pub fn check_session_id(config: &Config) -> Result<()> {
    config.bool("transfer.advertisesid").map(|_| ())
}

/// Returns the policy of transports that the user allows (`protocol.allow`, `protocol.NAME.allow`).
/// The caller is about to use the transport of `protocol`, so that only the settings for `protocol`
/// must be well formed. Another transport with a malformed setting is not allowed.
///
/// # Errors
/// Fails with [`ErrorKind::ConfigValue`] if the setting for `protocol` has a value that Git does
/// not know.
pub fn policy(
    config: &Config,
    environment: &Environment,
    protocol: &str,
) -> Result<TransportPolicy> {
    let parse = |key: &str, value: &BStr| {
        Allow::from_name(&value.to_str_lossy()).ok_or_else(|| {
            let message = format!("unknown value for config '{key}': {value}");
            Error::new(ErrorKind::ConfigValue, message)
        })
    };
    let mut policy = TransportPolicy {
        only: environment
            .text("GIT_ALLOW_PROTOCOL")
            .map(|list| list.split(':').map(str::to_owned).collect()),
        from_user: environment.boolean("GIT_PROTOCOL_FROM_USER", true)?,
        ..TransportPolicy::default()
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

fn ssh(config: &Config, environment: &Environment) -> Result<SshOptions> {
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
    Ok(SshOptions {
        command,
        program: environment.path("GIT_SSH").map(PathBuf::from),
        variant,
    })
}

/// Returns `url` without a password, as messages show it.
pub fn shown(url: &BStr) -> BString {
    pronto_wire::address::without_credentials(url)
}
