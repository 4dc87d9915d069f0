//! The transports: byte streams to the remote side behind one trait.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use bstr::BString;
use pronto_io::descriptor;

use crate::address::RemoteAddress;
use crate::advertisement::ProtocolVersion;
use crate::error::{Error, ErrorKind};
use crate::policy::TransportPolicy;

mod daemon;
pub mod http;
mod pace;
mod process;
mod ssh;

pub use pace::{LowSpeed, Timeouts};

pub use pronto_config::environment::LOCAL_VARIABLES;

/// A connection to a service. Reading returns the bytes of the remote side.
pub trait Connection: Read + Send {
    /// Sends a complete request. Over HTTP each request has its own response, which subsequent reads
    /// return.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] or [`ErrorKind::Disconnected`] if the connection breaks;
    /// over HTTP also with the kind of the response.
    fn send(&mut self, request: &[u8]) -> Result<(), Error>;

    /// Sends the whole content of `request`, of any length, like [`send`](Self::send).
    ///
    /// # Errors
    /// As for [`send`](Self::send), and with [`ErrorKind::Local`] if `request` cannot be read.
    fn upload(&mut self, request: &mut dyn Read) -> Result<(), Error> {
        let mut buffer = vec![0; UPLOADED_BYTES];
        loop {
            let count = request.read(&mut buffer).map_err(|error| {
                Error::new(ErrorKind::Local, "unable to read the data to send").because(error)
            })?;
            match buffer.get(..count) {
                Some(piece) if count > 0 => self.send(piece)?,
                _ => return Ok(()),
            }
        }
    }

    /// Removes and returns the writing half of the connection, so that a thread can write while another
    /// one reads. Dropping it ends the input of the remote side. Returns `None` if requests and
    /// responses alternate.
    fn take_writer(&mut self) -> Option<Box<dyn Write + Send>> {
        None
    }

    /// Returns whether the connection is stateless: each request reaches a process that remembers no
    /// earlier request.
    fn is_stateless(&self) -> bool {
        false
    }

    /// Returns the URL, without a slash at its end, to which the server redirected the first request.
    /// Later calls return `None`.
    fn take_redirect(&mut self) -> Option<String> {
        None
    }

    /// Returns a function that reports whether unread data have arrived; `None` if the connection does
    /// not support this query.
    fn readiness(&self) -> Option<Readiness> {
        None
    }

    /// Closes the connection and waits for its program, so that all output of the program is printed.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Connection`] if the program failed.
    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A function that reports whether a read would return without waiting. A call costs one system call.
pub type Readiness = Box<dyn Fn() -> bool + Send + Sync>;

/// Returns the readiness of `stream`; `None` if the limit of file descriptors is reached.
fn watch(stream: impl AsFd) -> Option<Readiness> {
    let descriptor = stream.as_fd().try_clone_to_owned().ok()?;
    Some(Box::new(move || descriptor::is_readable(&descriptor)))
}

/// The number of bytes of an upload that are read at a time.
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

/// The service of the remote side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// `git-upload-pack`, which serves fetches.
    UploadPack,
    /// `git-receive-pack`, which receives pushes.
    ReceivePack,
    /// `git-upload-archive`, which serves archives.
    UploadArchive,
}

impl Service {
    /// Returns the name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Service::UploadPack => "git-upload-pack",
            Service::ReceivePack => "git-receive-pack",
            Service::UploadArchive => "git-upload-archive",
        }
    }
}

/// The address family for connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// IPv4 or IPv6.
    #[default]
    Any,
    /// Only IPv4 (`--ipv4`).
    V4,
    /// Only IPv6 (`--ipv6`).
    V6,
}

/// Options for connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The requested version of the protocol (`protocol.version`). The remote side may choose a lower
    /// one.
    pub version: ProtocolVersion,
    /// The command that serves on the remote side, for its shell (`--upload-pack`, `--receive-pack`).
    pub command: Option<BString>,
    /// The git program that serves local repositories if `command` is not set.
    pub git: PathBuf,
    /// Changes of the environment of a local server: variables that are set or removed.
    pub environment: HashMap<OsString, Option<OsString>>,
    /// The directory in which programs of connections run; `None` for that of this process.
    pub directory: Option<PathBuf>,
    /// The address family.
    pub family: AddressFamily,
    /// The allowed transports (`protocol.allow`).
    pub policy: TransportPolicy,
    /// Options for ssh.
    pub ssh: SshOptions,
    /// A program that connects to git daemons. It is called with host and port (`core.gitProxy`,
    /// `GIT_PROXY_COMMAND`).
    pub git_proxy: Option<OsString>,
    /// The timeouts for the remote side.
    pub limits: Timeouts,
    /// The session id of this side, which is sent if the remote side sends its own
    /// (`transfer.advertiseSID`).
    pub session_id: Option<BString>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            version: ProtocolVersion::default(),
            command: None,
            git: "git".into(),
            environment: HashMap::new(),
            directory: None,
            family: AddressFamily::default(),
            policy: TransportPolicy::default(),
            ssh: SshOptions::default(),
            git_proxy: None,
            limits: Timeouts::default(),
            session_id: None,
        }
    }
}

/// Options for ssh.
#[derive(Clone, Debug, Default)]
pub struct SshOptions {
    /// A shell command line (`GIT_SSH_COMMAND`, `core.sshCommand`).
    pub command: Option<BString>,
    /// A program (`GIT_SSH`), which is used if `command` is not set.
    pub program: Option<PathBuf>,
    /// The variant of ssh (`GIT_SSH_VARIANT`, `ssh.variant`): `ssh`, `plink`, `putty`,
    /// `tortoiseplink`, `simple`, or `auto`.
    pub variant: Option<String>,
}

/// Connects to `service` at `address`. Over HTTP, `settings` provides the user's settings for each URL.
///
/// # Errors
/// Fails with [`ErrorKind::Forbidden`] if the transport is not allowed, or with
/// [`ErrorKind::Connection`], [`ErrorKind::Authentication`], [`ErrorKind::NotFound`],
/// [`ErrorKind::Address`] or [`ErrorKind::Unsupported`] if the connection cannot be made.
pub fn connect(
    address: &RemoteAddress,
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
        RemoteAddress::File { path } => Box::new(process::local(path.as_ref(), service, options)?),
        RemoteAddress::Ssh { host, port, path } => {
            let target = ssh::SshTarget {
                host,
                port: *port,
                path: path.as_ref(),
            };
            Box::new(ssh::connect(&target, service, options)?)
        }
        RemoteAddress::Git { host, port, path } => {
            let target = daemon::DaemonTarget {
                host,
                port: *port,
                path: path.as_ref(),
            };
            daemon::connect(&target, service, options)?
        }
        RemoteAddress::Http { url } => Box::new(http::connect(url, service, options, settings)?),
    })
}

/// Connects to the first of `addresses` that accepts. Calls `failed` for each other address.
///
/// # Errors
/// Fails with the last error if no address accepts.
fn connect_first(
    addresses: &[SocketAddr],
    limits: &Timeouts,
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

/// Returns the version to request from `service`. There is no push in version 2.
fn version_for(service: Service, version: ProtocolVersion) -> ProtocolVersion {
    match (service, version) {
        (Service::ReceivePack, ProtocolVersion::V2) => ProtocolVersion::V0,
        (_, version) => version,
    }
}

/// Returns the value of `GIT_PROTOCOL` that requests `version`; `None` for version 0.
fn version_parameter(version: ProtocolVersion) -> Option<&'static str> {
    match version {
        ProtocolVersion::V0 => None,
        ProtocolVersion::V1 => Some("version=1"),
        ProtocolVersion::V2 => Some("version=2"),
    }
}
