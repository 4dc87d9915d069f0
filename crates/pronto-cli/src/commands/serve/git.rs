//! `serve`: serves Git clients over HTTP, SSH and `git://`, and netsync peers on another port.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pronto::Environment;
use pronto_io::interrupt::Interrupt;
use pronto_io::{hosts, signals};
use pronto_server::access::{self, EVERY_REPOSITORY, Grant};
use pronto_server::bundles::Bundles;
use pronto_server::config::{
    DEFAULT_TEXT, LogFormatSetting, ReadConfig, SecretText, ServerConfig, StoreConfig, StoreRole,
    TlsFiles,
};
use pronto_server::listings::Listings;
use pronto_server::packs::ServerPackCache;
use pronto_server::service::{GitProgram, Native};
use pronto_server::users::{self, Users};
use pronto_server::{
    ConfigFindings, Control, Error, ErrorKind, Event, ImplicitUser, Options, Started, check,
    generate_token, serve,
};

use super::listen::LOOK_UP;
use super::log::{self, ServeLog};
use super::{Args, LogFormatName, StoreDuty};
use crate::commands::netsync::paths;
use crate::maintenance::maintain_served;
use crate::{CliError, Context, ExitCode};

/// The name of the user that `--write` permits to push.
const OWNER: &str = "owner";

/// The largest number of repository URLs that are printed.
const MOST_SHOWN: usize = 20;

pub(super) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    if args.print_config {
        context.out.write_all(DEFAULT_TEXT.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let environment = context.environment()?;
    let config = config(args, context)?;
    if args.check {
        return report(check(&config, &environment), context);
    }
    let owner = match &args.config {
        Some(_) => None,
        None => Some(ImplicitUser {
            name: OWNER.to_owned(),
            token: generate_token().map_err(failure)?,
        }),
    };
    let greeting = ServeGreeting::of(args, &config, owner.as_ref());
    warn_of_plain_tokens(args, &config, context);
    let log = ServeLog::start(log::chosen(config.log_format))?;
    let writer = log.writer();
    let on_event = Box::new(move |event: &Event| writer.write(event));
    let mut service = native()?;
    let cache = &config.cache;
    service.packs =
        (cache.bytes > 0).then(|| Arc::new(ServerPackCache::new(&cache.directory, cache.bytes)));
    service.listings = Some(Arc::new(Listings::new(cache.listing_bytes)));
    let clone = &config.clone;
    service.bundles = (clone.bundle_uri).then(|| Arc::new(Bundles::new(clone.bundle_least_bytes)));
    let read = reader(args, &environment);
    let mut options = Options::new(config, environment, Box::new(service), on_event);
    options.read = read;
    options.owner = owner;
    let (drain, reload) = (context.drain(), Interrupt::new());
    signals::reload_on_hangup(&reload);
    let out = RefCell::new(&mut context.out);
    let control = Control {
        drain: &drain,
        stop: &context.interrupt,
        reload: &|| reload.take(),
        started: &|started| {
            let mut out = out.borrow_mut();
            // The server continues if its output cannot be written.
            let _ = greeting
                .write(started, &mut **out)
                .and_then(|()| out.flush());
        },
    };
    let served = serve(options, &control);
    log.end();
    served.map_err(failure)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the findings of a check.
fn report(findings: ConfigFindings, context: &mut Context) -> Result<ExitCode, CliError> {
    for warning in &findings.warnings {
        context.warn(warning);
    }
    let count = findings.problems.len();
    let mut problems = findings.problems.into_iter().map(failure);
    match (problems.next(), count) {
        (None, _) => {
            writeln!(context.out, "the configuration is valid")?;
            Ok(ExitCode::SUCCESS)
        }
        (Some(problem), 1) => Err(problem),
        (Some(first), _) => {
            for problem in std::iter::once(first).chain(problems) {
                context.report_error(&problem.messages().join("\n"));
            }
            let message = format!("the configuration has {count} problems");
            Err(CliError::fatal(message))
        }
    }
}

/// Returns Git's services of the server. Pushes start maintenance with this program.
pub(in crate::commands) fn native() -> Result<Native, CliError> {
    let program = crate::programs::own()?;
    Ok(Native {
        program: program.clone(),
        maintain: Box::new(move |repository| maintain_served(repository, &program)),
        packs: None,
        selections: Arc::default(),
        listings: None,
        bundles: None,
        git: GitProgram::default(),
    })
}

/// Returns the configuration: that of the file of `--config`, or the default, overridden by the
/// options.
fn config(args: &Args, context: &mut Context) -> Result<ServerConfig, CliError> {
    let environment = context.environment()?;
    let directory = args.directory.as_ref();
    let directory = directory.map(|path| environment.absolute(path));
    if args.store.is_some() && directory.is_some() {
        let message = "--store and a directory cannot be used together";
        return Err(CliError::usage(message));
    }
    let config = match (&args.config, directory) {
        (Some(file), _) => {
            if args.write {
                let message = "--write cannot be used with --config: the configuration file \
                               defines who may push";
                return Err(CliError::usage(message));
            }
            ServerConfig::read(&environment.absolute(file)).map_err(failure)?
        }
        (None, Some(directory)) => ServerConfig::without_file(directory),
        (None, None) if args.store.is_some() => {
            ServerConfig::without_file(environment.current_dir().to_owned())
        }
        (None, None) if args.check => {
            return Err(CliError::usage("serve --check needs --config FILE"));
        }
        (None, None) => {
            ServerConfig::without_file(match context.discover_optional(&environment)? {
                Some(repository) => {
                    let top = repository.work_tree().unwrap_or(repository.git_dir());
                    top.to_owned()
                }
                None => environment.current_dir().to_owned(),
            })
        }
    };
    let mut config = overridden(config, args, &environment)?;
    if args.netsync.is_some() && args.config.is_none() {
        config.netsync.key = own_key(context)?;
    }
    if args.write {
        config.create_on_push = true;
        config.access.grants.push(Grant {
            repository: EVERY_REPOSITORY.to_owned(),
            users: vec![OWNER.to_owned()],
            role: access::AccessRole::Admin,
        });
    }
    Ok(config)
}

/// Returns `config` with the values of the options, which have precedence over the file.
fn overridden(
    mut config: ServerConfig,
    args: &Args,
    environment: &Environment,
) -> Result<ServerConfig, CliError> {
    if let Some(directory) = &args.directory {
        config.root = environment.absolute(directory);
    }
    set_store(args, environment, &mut config)?;
    if let Some(address) = &args.listen {
        config.http = addresses(address)?;
    }
    if let Some(address) = &args.daemon {
        config.daemon = addresses(address)?;
    }
    if let Some(address) = &args.ssh {
        config.ssh.listen = addresses(address)?;
    }
    if let Some(address) = &args.netsync {
        config.netsync.listen = addresses(address)?;
    }
    if let Some(format) = args.log_format {
        config.log_format = format.into();
    }
    set_tls(args, environment, &mut config)?;
    Ok(config)
}

impl From<LogFormatName> for LogFormatSetting {
    fn from(name: LogFormatName) -> Self {
        match name {
            LogFormatName::Auto => LogFormatSetting::Auto,
            LogFormatName::Human => LogFormatSetting::Human,
            LogFormatName::Json => LogFormatSetting::Json,
        }
    }
}

/// Returns the function that reads the configuration file again and applies the options to it;
/// `None` without `--config`.
fn reader(args: &Args, environment: &Environment) -> Option<Box<ReadConfig>> {
    let file = environment.absolute(args.config.as_ref()?);
    let (args, environment) = (args.clone(), environment.clone());
    Some(Box::new(move || {
        let config = ServerConfig::read(&file)?;
        let config = overridden(config, &args, &environment);
        config.map_err(|error| Error::new(ErrorKind::Config, error.to_string()))
    }))
}

/// Returns the file of the user's netsync key, which peers may trust already.
fn own_key(context: &mut Context) -> Result<Option<PathBuf>, CliError> {
    let path = paths(context)?.key;
    Ok(path.exists().then_some(path))
}

/// Sets the certificate and key files of TLS.
fn set_tls(
    args: &Args,
    environment: &Environment,
    config: &mut ServerConfig,
) -> Result<(), CliError> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => {
            config.tls = Some(TlsFiles {
                certificate: environment.absolute(certificate),
                key: environment.absolute(key),
                client_ca: config.tls.take().and_then(|tls| tls.client_ca),
            });
            Ok(())
        }
        (None, None) => Ok(()),
        _ => Err(CliError::usage(
            "--tls-cert and --tls-key must be used together",
        )),
    }
}

/// Sets the store, the database of its generations, the cache, and the role of this server.
fn set_store(
    args: &Args,
    environment: &Environment,
    config: &mut ServerConfig,
) -> Result<(), CliError> {
    let cache = args.cache.as_ref().map(|path| environment.absolute(path));
    match (&args.store, &mut config.store, cache) {
        (Some(_), Some(_), _) => {
            return Err(CliError::usage(
                "--store cannot be used: the configuration file already has a store",
            ));
        }
        (Some(url), None, Some(cache)) => {
            config.store = Some(StoreConfig::new(url.clone(), cache));
        }
        // A check of the configuration uses no cache.
        (Some(url), None, None) if args.check => {
            config.store = Some(StoreConfig::new(url.clone(), PathBuf::new()));
        }
        (Some(_), None, None) => {
            let message = "--store needs --cache DIRECTORY for views and downloaded files";
            return Err(CliError::usage(message));
        }
        (None, Some(store), Some(cache)) => store.cache = cache,
        (None, None, Some(_)) => return Err(CliError::usage("--cache needs --store URL")),
        (None, _, None) => {}
    }
    match (&args.generations, &mut config.store) {
        (Some(_), Some(store)) if store.generations.is_some() => {
            let message =
                "--generations cannot be used: the configuration file already sets 'generations'";
            return Err(CliError::usage(message));
        }
        (Some(url), Some(store)) => store.generations = Some(SecretText(url.clone())),
        (Some(_), None) => return Err(CliError::usage("--generations needs --store URL")),
        (None, _) => {}
    }
    match (args.role, &mut config.store) {
        (Some(role), Some(store)) => {
            store.role = match role {
                StoreDuty::Serve => StoreRole::Serve,
                StoreDuty::Upkeep => StoreRole::Upkeep,
                StoreDuty::Both => StoreRole::Both,
            }
        }
        (Some(_), None) => return Err(CliError::usage("--role needs --store URL")),
        (None, _) => {}
    }
    Ok(())
}

fn addresses(text: &str) -> Result<Vec<SocketAddr>, CliError> {
    let resolved = hosts::resolve_address(text, None, LOOK_UP).map(|addresses| {
        // A host name may resolve to several addresses of the same family. The first address of
        // each family is used.
        let mut found: Vec<SocketAddr> = Vec::new();
        for address in addresses {
            if found
                .iter()
                .all(|known| known.is_ipv4() != address.is_ipv4())
            {
                found.push(address);
            }
        }
        found
    });
    resolved.map_err(|error| {
        CliError::of_system(&format!("cannot listen at '{text}'"), &error)
            .with_hint("use HOST:PORT, for example 0.0.0.0:8418 or [::]:8418")
    })
}

/// Warns if tokens are sent without encryption.
fn warn_of_plain_tokens(args: &Args, config: &ServerConfig, context: &mut Context) {
    let is_open = config
        .http
        .iter()
        .any(|address| !address.ip().is_loopback());
    if is_open && config.tls.is_none() && config.public_url.is_empty() && args.write {
        context.warn(
            "TLS is off: tokens and content can be read on the network; use --tls-cert and \
             --tls-key",
        );
    }
}

/// The text that is printed when the server accepts connections.
struct ServeGreeting {
    scheme: &'static str,
    public_url: String,
    owner: Option<ImplicitUser>,
}

impl ServeGreeting {
    fn of(args: &Args, config: &ServerConfig, owner: Option<&ImplicitUser>) -> Self {
        ServeGreeting {
            scheme: if config.tls.is_some() {
                "https"
            } else {
                "http"
            },
            public_url: config.public_url.clone(),
            owner: owner.filter(|_| args.write).cloned(),
        }
    }

    fn write(&self, started: &Started, out: &mut dyn io::Write) -> io::Result<()> {
        let mut bases = match self.public_url.is_empty() {
            true => Vec::new(),
            false => vec![self.public_url.clone()],
        };
        if bases.is_empty() {
            let http = started.http.iter();
            bases.extend(http.map(|address| format!("{}://{}", self.scheme, reachable(address))));
        }
        let daemon = started.daemon.iter();
        bases.extend(daemon.map(|address| format!("git://{}", reachable(address))));
        let ssh = started.ssh.iter();
        bases.extend(ssh.map(|address| format!("ssh://{}", reachable(address))));
        let clonable = bases.len();
        let netsync = started.netsync.iter();
        bases.extend(netsync.map(|address| format!("netsync://{}", reachable(address))));
        for base in &bases {
            writeln!(out, "serving at {base}/")?;
        }
        if let Some(fingerprint) = &started.host_key {
            writeln!(out, "the host key of SSH is {fingerprint}")?;
        }
        if let Some(key) = &started.netsync_key {
            writeln!(out, "the key of netsync is {key}")?;
        }
        if let Some(base) = bases.first() {
            let command = if clonable > 0 {
                "git clone"
            } else {
                "pronto sync"
            };
            for name in started.repositories.iter().take(MOST_SHOWN) {
                // URLs for netsync contain the name without percent-encoding.
                let name = if clonable > 0 {
                    escaped(name)
                } else {
                    name.clone()
                };
                writeln!(out, "    {command} {base}/{name}")?;
            }
            match started.repositories.len() {
                0 => writeln!(out, "    no repositories yet")?,
                count if count > MOST_SHOWN => {
                    writeln!(out, "    and {} more", count - MOST_SHOWN)?;
                }
                _ => {}
            }
        }
        match &self.owner {
            Some(owner) => writeln!(
                out,
                "pushes need the user '{}' with this token as the password:\n    {}",
                owner.name, owner.token
            ),
            None => Ok(()),
        }
    }
}

/// Returns an address at which clients on this machine reach the server.
fn reachable(address: &SocketAddr) -> SocketAddr {
    let mut address = *address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// Percent-encodes a name for a URL.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~/+@".contains(&byte);
        match is_plain {
            true => text.push(char::from(byte)),
            false => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Converts an error of the server.
pub(in crate::commands) fn failure(error: Error) -> CliError {
    CliError::of(error.map_kind(|_| pronto::ErrorKind::Io))
}

/// Reads the configuration that a management subcommand changes or shows.
pub(super) fn managed(args: &Args, context: &mut Context) -> Result<ServerConfig, CliError> {
    let Some(file) = &args.config else {
        let error = CliError::usage("missing option --config FILE");
        return Err(
            error.with_hint("run 'pronto serve --print-config' for a configuration to start from")
        );
    };
    let file: &Path = file;
    let file = context.environment()?.absolute(file);
    let mut config = ServerConfig::read(&file).map_err(failure)?;
    set_store(args, &context.environment()?, &mut config)?;
    Ok(config)
}

/// Changes the user file of that configuration.
pub(super) fn change<T>(
    args: &Args,
    context: &mut Context,
    change: impl FnOnce(&mut Users) -> pronto_server::Result<T>,
) -> Result<T, CliError> {
    let config = managed(args, context)?;
    users::change(&config.users, change).map_err(failure)
}
