//! `git://`: a plain connection to a daemon (`gitprotocol-pack(5)`, "Git Transport").

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};

use bstr::BStr;

use super::{Connection, Family, Options, Readiness, Service, version_parameter, watch};
use crate::error::{Error, ErrorKind};
use crate::pktline;

const PORT: u16 = 9418;

/// Whom to reach, and what there.
pub(super) struct Target<'a> {
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) path: &'a BStr,
}

pub(super) struct Daemon(TcpStream);

pub(super) fn connect(
    target: &Target<'_>,
    service: Service,
    options: &Options,
) -> Result<Daemon, Error> {
    if target.path.contains(&b'\n') {
        let message = "newline is forbidden in git:// hosts and repo paths";
        return Err(Error::new(ErrorKind::Address, message));
    }
    let stream = dial(target.host, target.port.unwrap_or(PORT), options.family)?;
    // Requests are written whole; waiting for more would only delay them.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    let mut daemon = Daemon(stream);
    daemon.send(&greeting(target, service, options)?)?;
    Ok(daemon)
}

/// The first line: program, path, host, and what else the daemon should know.
fn greeting(target: &Target<'_>, service: Service, options: &Options) -> Result<Vec<u8>, Error> {
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
    let program = service.program().as_bytes();
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

fn dial(host: &str, port: u16, family: Family) -> Result<TcpStream, Error> {
    let found = (host, port).to_socket_addrs().map_err(|error| {
        let reason = error.to_string();
        let reason = reason.rsplit(": ").next().unwrap_or_default().to_owned();
        Error::new(
            ErrorKind::Connection,
            format!("unable to look up {host} (port {port}) ({reason})"),
        )
    })?;
    let fits = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    let mut failures = String::new();
    for (count, address) in found.filter(fits).enumerate() {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                let reason = pronto_io::error::reason(&error);
                failures.push_str(&format!(
                    "\n{host}[{count}: {}]: errno={reason}",
                    address.ip()
                ));
            }
        }
    }
    Err(Error::new(
        ErrorKind::Connection,
        format!("unable to connect to {host}:{failures}"),
    ))
}

impl Read for Daemon {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Connection for Daemon {
    fn send(&mut self, request: &[u8]) -> Result<(), Error> {
        self.0.write_all(request).map_err(|error| {
            Error::new(ErrorKind::Connection, "unable to write to remote").because(error)
        })
    }

    fn readiness(&self) -> Option<Readiness> {
        watch(&self.0)
    }

    fn close(&mut self) -> Result<(), Error> {
        // The daemon may have closed its side already: that is the end we want.
        let _ = self.0.shutdown(Shutdown::Both);
        Ok(())
    }
}
