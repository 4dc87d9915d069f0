//! Connecting to a remote with the user's settings.

use std::path::PathBuf;

use bstr::{BStr, ByteSlice};
use pronto_io::interrupt::Interrupt;
use pronto_io::progress::Progress;
use pronto_wire::address::Address;
use pronto_wire::advertisement::Version;
use pronto_wire::client::Client;
use pronto_wire::policy::{Allow, Policy};
use pronto_wire::transport::http::{Credentials, Redirects};
use pronto_wire::transport::{Family, Options, Ssh, http};

use super::credentials::Helpers;
use crate::config::{Config, NormalUrl};
use crate::environment::Environment;
use crate::{Error, ErrorKind, Result};

/// What is said about a connection for one operation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The program that serves on the other side (`--upload-pack`).
    pub upload_pack: Option<bstr::BString>,
    /// The HTTP proxy; an empty one means none.
    pub proxy: Option<bstr::BString>,
    /// Which kind of internet address to use.
    pub family: Family,
    /// The program that serves local repositories when called with `upload-pack`; `git` if that is
    /// not said.
    pub server: Option<PathBuf>,
}

/// Connects to the repository at `url`.
///
/// # Errors
/// The address or a setting is not well formed, the transport is not allowed, or nobody answers.
pub fn connect(
    url: &BStr,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
    watch: (&dyn Progress, &Interrupt),
) -> Result<Client> {
    connect_with(url, settings, (config, environment), watch, |helpers| {
        helpers
    })
}

/// As [`connect`], with what `wrap` makes of those who know the user's passwords.
pub(crate) fn connect_with(
    url: &BStr,
    settings: &Settings,
    (config, environment): (&Config, &Environment),
    watch: (&dyn Progress, &Interrupt),
    wrap: impl FnOnce(Box<dyn Credentials>) -> Box<dyn Credentials>,
) -> Result<Client> {
    let address = Address::parse(url).map_err(from_wire)?;
    let options = options(&address, settings, config, environment)?;
    let credentials = match &address {
        Address::Http { url } => {
            let helpers = Helpers::new(url, config, environment)?;
            Some(wrap(Box::new(helpers)))
        }
        _ => None,
    };
    let (progress, interrupt) = watch;
    Client::connect(&address, &options, credentials, progress, interrupt).map_err(from_wire)
}

/// The error of the crate below as one of this crate.
pub(crate) fn from_wire(error: pronto_wire::Error) -> Error {
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
    let changes = environment.changes();
    let changes =
        changes.map(|(name, value)| (name.to_owned(), value.map(|value| value.to_owned())));
    let mut options = Options {
        version: version(config)?,
        command: settings.upload_pack.clone(),
        environment: changes.collect(),
        family: settings.family,
        policy: policy(config, environment)?,
        ..Options::default()
    };
    if let Some(server) = &settings.server {
        options.git.clone_from(server);
        // What the other side leaves to git is not for this side to say.
        options
            .environment
            .insert("PRONTO_NO_FALLBACK".into(), None);
    }
    match address {
        Address::Ssh { .. } => options.ssh = ssh(config, environment)?,
        Address::Http { url } => options.http = web(url, settings, config, environment)?,
        _ => {}
    }
    Ok(options)
}

fn version(config: &Config) -> Result<Version> {
    match config.string("protocol.version")? {
        None => Ok(Version::V2),
        Some(value) => match value.as_bytes() {
            b"0" => Ok(Version::V0),
            b"1" => Ok(Version::V1),
            b"2" => Ok(Version::V2),
            _ => {
                let message = format!("unknown value for config 'protocol.version': {value}");
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        },
    }
}

/// Which transports the user allows.
pub(crate) fn policy(config: &Config, environment: &Environment) -> Result<Policy> {
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
    if let Some(value) = config.string("protocol.allow")? {
        policy.default = Some(parse("protocol.allow", value)?);
    }
    for name in config.subsections("protocol") {
        let key = format!("protocol.{name}.allow");
        if let Some(value) = config.string(&key)? {
            policy.by_name.insert(name.to_string(), parse(&key, value)?);
        }
    }
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

fn web(
    url: &str,
    settings: &Settings,
    config: &Config,
    environment: &Environment,
) -> Result<http::Options> {
    let normal = NormalUrl::parse(url.into())?;
    let text = |name: &str| -> Result<Option<String>> {
        let entry = config.for_url("http", name, &normal);
        let value = entry.map(|entry| entry.string()).transpose()?;
        Ok(value.map(|value| value.to_string()))
    };
    let boolean = |name: &str, default: bool| -> Result<bool> {
        let entry = config.for_url("http", name, &normal);
        Ok(entry
            .map(|entry| entry.bool())
            .transpose()?
            .unwrap_or(default))
    };
    let file = |variable: &str, name: &str| -> Result<Option<PathBuf>> {
        if let Some(path) = environment.path(variable) {
            return Ok(Some(environment.absolute(path)));
        }
        let entry = config.for_url("http", name, &normal);
        let path = entry
            .map(|entry| entry.path(environment.home()))
            .transpose()?;
        Ok(path.flatten().map(|path| environment.absolute(path)))
    };
    let proxy = match &settings.proxy {
        Some(proxy) => Some(proxy.to_string()),
        None => text("proxy")?.or_else(|| proxy_from(environment, url)),
    };
    let no_verify = environment.get("GIT_SSL_NO_VERIFY").is_some();
    let follow_redirects = match text("followredirects")?.as_deref() {
        None | Some("initial") => Redirects::Initial,
        _ if boolean("followredirects", true)? => Redirects::Initial,
        _ => Redirects::Never,
    };
    Ok(http::Options {
        proxy,
        no_proxy: first_of(environment, &["no_proxy", "NO_PROXY"]),
        ssl_verify: !no_verify && boolean("sslverify", true)?,
        ssl_ca_info: file("GIT_SSL_CAINFO", "sslcainfo")?,
        ssl_ca_path: file("GIT_SSL_CAPATH", "sslcapath")?,
        ssl_cert: file("GIT_SSL_CERT", "sslcert")?,
        ssl_key: file("GIT_SSL_KEY", "sslkey")?,
        extra_headers: extra_headers(config, &normal),
        user_agent: match environment.text("GIT_HTTP_USER_AGENT") {
            Some(agent) => Some(agent.to_owned()),
            None => text("useragent")?,
        },
        follow_redirects,
        accept_language: None,
    })
}

/// The headers of the sections for this URL, or else the general ones.
fn extra_headers(config: &Config, url: &NormalUrl) -> Vec<String> {
    let mut headers = Vec::new();
    for entry in config.iter() {
        let key = crate::config::Key::split(entry.key);
        let meant = key.section == "http"
            && key.variable == "extraheader"
            && key
                .subsection
                .is_none_or(|pattern| url.matched_by(pattern).is_some());
        match entry.value {
            Some(value) if meant && value.is_empty() => headers.clear(),
            Some(value) if meant => headers.push(value.to_string()),
            _ => {}
        }
    }
    headers
}

/// The proxy that the environment names for `url`. `HTTP_PROXY` in capitals is not looked at: web
/// servers set it from a header for programs they run.
fn proxy_from(environment: &Environment, url: &str) -> Option<String> {
    match url.starts_with("https:") {
        true => first_of(
            environment,
            &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
        ),
        false => first_of(environment, &["http_proxy", "all_proxy", "ALL_PROXY"]),
    }
}

fn first_of(environment: &Environment, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| environment.text(name).filter(|value| !value.is_empty()))
        .map(str::to_owned)
}

/// The address of `url` as other messages show it: without a password.
pub fn shown(url: &BStr) -> bstr::BString {
    pronto_wire::address::without_credentials(url)
}
