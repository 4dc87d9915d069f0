//! The transport `git://`: an unencrypted connection to a git daemon (`gitprotocol-pack(5)`, "Git
//! Transport").

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use bstr::BStr;
use pronto_io::hosts;

use super::pace::ReadPace;
use super::process::Process;
use super::{
    AddressFamily, Connection, Options, Readiness, Service, connect_first, version_parameter, watch,
};
use crate::error::{Error, ErrorKind};
use crate::pktline;

const PORT: u16 = 9418;

/// The host, port and path to connect to.
pub(super) struct DaemonTarget<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) path: &'a BStr,
}

pub(super) struct DaemonConnection {
    stream: TcpStream,
    pace: ReadPace,
}

pub(super) fn connect(
    target: &DaemonTarget<'_>,
    service: Service,
    options: &Options,
) -> Result<Box<dyn Connection>, Error> {
    if target.path.contains(&b'\n') {
        let message = "newline is forbidden in git:// hosts and repo paths";
        return Err(Error::new(ErrorKind::Address, message));
    }
    let greeting = greeting(target, service, options)?;
    if let Some(program) = &options.git_proxy {
        let mut proxy = through(program, target, options)?;
        proxy.send(&greeting)?;
        return Ok(Box::new(proxy));
    }
    let stream = dial(target.host, target.port.unwrap_or(PORT), options)?;
    // Requests are written as a whole; waiting for more data would only delay them.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    let _ = stream.set_write_timeout(Some(options.limits.idle));
    let pace = ReadPace::new(options.limits.idle, None);
    let mut daemon = DaemonConnection { stream, pace };
    daemon.send(&greeting)?;
    Ok(Box::new(daemon))
}

/// Starts the program that makes the connection (`core.gitProxy`).
fn through(
    program: &OsStr,
    target: &DaemonTarget<'_>,
    options: &Options,
) -> Result<Process, Error> {
    let mut command = pronto_io::child::command(program);
    command.arg(target.host);
    command.arg(target.port.unwrap_or(PORT).to_string());
    Process::start(command, options)
}

/// Returns the first line: service, path, host and extra parameters.
fn greeting(
    target: &DaemonTarget<'_>,
    service: Service,
    options: &Options,
) -> Result<Vec<u8>, Error> {
    let mut host = match target.host.contains(':') {
        true => format!("[{}]", target.host),
        false => target.host.to_owned(),
    };
    if let Some(port) = target.port {
        host.push_str(&format!(":{port}"));
    }
    let mut extra = String::new();
    if let Some(version) = version_parameter(options.version) {
        extra = format!("\0{version}\0");
    }
    let program = match &options.command {
        Some(command) => command.as_slice(),
        None => service.program().as_bytes(),
    };
    let parts: [&[u8]; 7] = [
        program,
        b" ",
        target.path,
        b"\0host=",
        host.as_bytes(),
        b"\0",
        extra.as_bytes(),
    ];
    let mut out = Vec::new();
    pktline::write_parts(&mut out, &parts)?;
    Ok(out)
}

fn dial(host: &str, port: u16, options: &Options) -> Result<TcpStream, Error> {
    let found = hosts::resolve(host, port, options.limits.connect).map_err(|error| {
        let reason = pronto_io::error::reason(&error);
        Error::new(
            ErrorKind::Connection,
            format!("unable to look up {host} (port {port}) ({reason})"),
        )
    })?;
    let fits = |address: &SocketAddr| match options.family {
        AddressFamily::Any => true,
        AddressFamily::V4 => address.is_ipv4(),
        AddressFamily::V6 => address.is_ipv6(),
    };
    let addresses: Vec<SocketAddr> = found.into_iter().filter(fits).collect();
    let (mut failures, mut count) = (String::new(), 0);
    connect_first(&addresses, &options.limits, &mut |address, error| {
        let reason = pronto_io::error::reason(error);
        let ip = address.ip();
        failures.push_str(&format!("\n{host}[{count}: {ip}]: errno={reason}"));
        count += 1;
    })
    .map_err(|_| {
        let message = format!("unable to connect to {host}:{failures}");
        Error::new(ErrorKind::Connection, message)
    })
}

/// The writing half of a connection. Dropping it ends the input of the remote side.
struct WriteHalf(TcpStream);

impl Write for WriteHalf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        // The remote side may have closed the connection already.
        let _ = self.0.shutdown(Shutdown::Write);
    }
}

impl Read for DaemonConnection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pace.read(&self.stream, buffer, None)
    }
}

impl Connection for DaemonConnection {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.stream.write_all(request).map_err(|error| {
            Error::new(ErrorKind::Connection, "unable to write to remote").because(error)
        })
    }

    fn take_writer(&mut self) -> Option<Box<dyn Write + Send>> {
        let stream = self.stream.try_clone().ok()?;
        Some(Box::new(WriteHalf(stream)))
    }

    fn readiness(&self) -> Option<Readiness> {
        watch(&self.stream)
    }

    fn close(&mut self) -> Result<(), Error> {
        // A connection that the daemon has closed already is not an error.
        let _ = self.stream.shutdown(Shutdown::Both);
        Ok(())
    }
}
