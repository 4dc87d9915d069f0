//! Byte streams to the other side, behind one trait.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use bstr::BString;
use pronto_io::descriptor;

use crate::address::Address;
use crate::advertisement::Version;
use crate::error::{Error, ErrorKind};
use crate::policy::Policy;

mod daemon;
pub mod http;
mod pace;
mod process;
mod ssh;

pub use pace::{Limits, LowSpeed};

pub use pronto_config::environment::LOCAL_VARIABLES;

/// A connection to a service. Reading returns the bytes of the other side.
pub trait Connection: Read + Send {
    /// Sends a whole request. Over HTTP each request has a response of its own, which reading
    /// returns from then on.
    ///
    /// # Errors
    /// If the connection breaks or the other side refuses.
    fn send(&mut self, request: &[u8]) -> Result<(), Error>;

    /// Sends the whole content of `request`, however long it is, like [`send`](Self::send).
    ///
    /// # Errors
    /// If `request` cannot be read, the connection breaks, or the other side refuses.
    fn upload(&mut self, request: &mut dyn Read) -> Result<(), Error> {
        let mut buffer = vec![0; UPLOADED_BYTES];
        loop {
            let count = request.read(&mut buffer).map_err(|error| {
                Error::new(ErrorKind::Local, "unable to read what is to be sent").because(error)
            })?;
            match buffer.get(..count) {
                Some(piece) if count > 0 => self.send(piece)?,
                _ => return Ok(()),
            }
        }
    }

    /// Takes the half of the connection that is written to, so that a thread can write while
    /// another one reads. The other side sees its end when it is dropped. `None` if requests and
    /// responses take turns.
    fn take_writer(&mut self) -> Option<Box<dyn Write + Send>> {
        None
    }

    /// Whether each request meets a process that remembers nothing of the ones before.
    fn is_stateless(&self) -> bool {
        false
    }

    /// Returns the URL without its last slash to which the server redirected the first request; once.
    fn take_redirect(&mut self) -> Option<String> {
        None
    }

    /// Returns a function that reports whether unread data have arrived; `None` if that cannot be
    /// known.
    fn readiness(&self) -> Option<Readiness> {
        None
    }

    /// Ends the connection and waits for the program behind it, so that all of its output is printed.
    ///
    /// # Errors
    /// If the program behind it reports that it failed.
    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// Says, at the cost of a system call, whether reading from a connection would not have to wait.
pub type Readiness = Box<dyn Fn() -> bool + Send + Sync>;

/// Watches `stream`; `None` if no more descriptors may be opened.
fn watch(stream: impl AsFd) -> Option<Readiness> {
    let descriptor = stream.as_fd().try_clone_to_owned().ok()?;
    Some(Box::new(move || descriptor::is_readable(&descriptor)))
}

/// The number of bytes of an upload that are read at once.
const UPLOADED_BYTES: usize = 64 << 10;

impl Connection for Box<dyn Connection> {
    fn upload(&mut self, request: &mut dyn Read) -> Result<(), Error> {
        (**self).upload(request)
    }

    fn take_writer(&mut self) -> Option<Box<dyn Write + Send>> {
        (**self).take_writer()
    }

    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        (**self).send(request)
    }

    fn is_stateless(&self) -> bool {
        (**self).is_stateless()
    }

    fn take_redirect(&mut self) -> Option<String> {
        (**self).take_redirect()
    }

    fn readiness(&self) -> Option<Readiness> {
        (**self).readiness()
    }

    fn close(&mut self) -> Result<(), Error> {
        (**self).close()
    }
}

/// The program on the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// `git-upload-pack`: it sends.
    UploadPack,
    /// `git-receive-pack`: it receives.
    ReceivePack,
    /// `git-upload-archive`: it sends archives.
    UploadArchive,
}

impl Service {
    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Service::UploadPack => "git-upload-pack",
            Service::ReceivePack => "git-receive-pack",
            Service::UploadArchive => "git-upload-archive",
        }
    }
}

/// Which kind of internet address to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Either.
    #[default]
    Any,
    /// Version 4 only (`-4`).
    V4,
    /// Version 6 only (`-6`).
    V6,
}

/// All that can be set about connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The version to ask for; the other side may choose a lower one.
    pub version: Version,
    /// The command that serves on the other side (`--upload-pack`), for the shell there.
    pub command: Option<BString>,
    /// The git program that serves local repositories when `command` is not set.
    pub git: PathBuf,
    /// Variables that a local server shall see changed: set, or removed.
    pub environment: HashMap<OsString, Option<OsString>>,
    /// The directory in which programs run that make a connection; `None` for that of this process.
    pub directory: Option<PathBuf>,
    /// Which kind of internet address to use.
    pub family: Family,
    /// Which transports are allowed.
    pub policy: Policy,
    /// Options for connections by ssh.
    pub ssh: Ssh,
    /// A program that connects to daemons, called with host and port (`core.gitProxy`,
    /// `GIT_PROXY_COMMAND`).
    pub git_proxy: Option<OsString>,
    /// The time limits for the other side.
    pub limits: Limits,
    /// The id of the session of this side, which is told to a side that tells its own
    /// (`transfer.advertiseSID`).
    pub session_id: Option<BString>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: Version::default(),
            command: None,
            git: "git".into(),
            environment: HashMap::new(),
            directory: None,
            family: Family::default(),
            policy: Policy::default(),
            ssh: Ssh::default(),
            git_proxy: None,
            limits: Limits::default(),
            session_id: None,
        }
    }
}

/// Options for connections by ssh.
#[derive(Clone, Debug, Default)]
pub struct Ssh {
    /// A command line for the shell (`GIT_SSH_COMMAND`, `core.sshCommand`).
    pub command: Option<BString>,
    /// A program (`GIT_SSH`), used if there is no `command`.
    pub program: Option<PathBuf>,
    /// The variant of ssh (`GIT_SSH_VARIANT`, `ssh.variant`): `ssh`, `plink`, `putty`,
    /// `tortoiseplink`, `simple`, or `auto`.
    pub variant: Option<String>,
}

/// Connects to `service` at `address`. Over HTTP, `settings` says what the user has set for a URL.
///
/// # Errors
/// If the transport is not allowed, or the connection cannot be made.
pub fn connect(
    address: &Address,
    service: Service,
    options: &Options,
    settings: Box<dyn http::Settings>,
) -> Result<Box<dyn Connection>, Error> {
    options.policy.check(address.protocol())?;
    let options = &Options {
        version: version_for(service, options.version),
        ..options.clone()
    };
    Ok(match address {
        Address::File { path } => Box::new(process::local(path.as_ref(), service, options)?),
        Address::Ssh { host, port, path } => {
            let target = ssh::Target {
                host,
                port: *port,
                path: path.as_ref(),
            };
            Box::new(ssh::connect(&target, service, options)?)
        }
        Address::Git { host, port, path } => {
            let target = daemon::Target {
                host,
                port: *port,
                path: path.as_ref(),
            };
            daemon::connect(&target, service, options)?
        }
        Address::Http { url } => Box::new(http::connect(url, service, options, settings)?),
    })
}

/// Connects to the first of `addresses` that accepts. `failed` is called for the others.
///
/// # Errors
/// The last failure, if no address accepts.
fn connect_first(
    addresses: &[SocketAddr],
    limits: &Limits,
    failed: &mut dyn FnMut(SocketAddr, &io::Error),
) -> io::Result<TcpStream> {
    let until = Instant::now() + limits.connect;
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, left.min(limits.connect_address)) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                failed(*address, &error);
                last = error;
            }
        }
    }
    Err(last)
}

/// The version to ask `service` for: there is no push in version 2.
fn version_for(service: Service, version: Version) -> Version {
    match (service, version) {
        (Service::ReceivePack, Version::V2) => Version::V0,
        (_, version) => version,
    }
}

/// Returns the value of `GIT_PROTOCOL` that requests `version`; `None` for version 0.
fn version_parameter(version: Version) -> Option<&'static str> {
    match version {
        Version::V0 => None,
        Version::V1 => Some("version=1"),
        Version::V2 => Some("version=2"),
    }
}
