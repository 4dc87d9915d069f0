//! Files from the web and from this machine, as files without a name.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};

use bstr::BStr;
use pronto_io::error::IoContext;
use pronto_io::untrusted::{self, Links};
use pronto_pack::bundle::{Header, version_of};
use pronto_wire::policy::Policy;
use pronto_wire::transport::http;
use pronto_wire::url::Url;

use super::{Provenance, Taking, address};
use crate::remote::connection;
use crate::{Error, ErrorKind, Result};

/// The largest size of a list.
const LARGEST_LIST_BYTES: u64 = 16 << 20;

/// The number of bytes that are copied at once.
const PIECE_BYTES: usize = 128 << 10;

/// The number of bytes that tell a bundle.
const SIGNATURE_BYTES: usize = 16;

impl Taking<'_> {
    /// Downloads the file at `uri`. `None` if that failed; the reason is reported only if Git does.
    pub(super) fn download(&self, uri: &BStr, from: &Provenance) -> Result<Option<File>> {
        let mut source: Box<dyn Read> = match self.open(uri, from) {
            Ok(source) => source,
            Err(error) if *error.kind() == ErrorKind::Refused => {
                self.report(error.message());
                return Ok(None);
            }
            Err(error) if *error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(_) => return Ok(None),
        };
        let directory = &self.directory;
        let file = tempfile::tempfile_in(directory);
        let mut file = file.context(ErrorKind::Io, "failed to create temporary file", directory)?;
        match self.copy(&mut *source, &mut file)? {
            None => Ok(Some(file)),
            Some(error) => {
                self.report(&format!("copy-fd: read returned: {error}"));
                Ok(None)
            }
        }
    }

    /// Opens the file at `uri`.
    ///
    /// # Errors
    /// It cannot be opened; with [`ErrorKind::Refused`] if it may not.
    fn open(&self, uri: &BStr, from: &Provenance) -> Result<Box<dyn Read>> {
        let policy = self.policy(from)?;
        if address::is_web(uri) {
            return self.request(uri, from, policy);
        }
        if !from.is_trusted {
            policy.check("file").map_err(refused)?;
        }
        let environment = self.repository.environment();
        let path = environment.absolute(crate::path::borrow(address::path_of(uri)));
        if path.is_dir() {
            let message = "copy-fd: read returned: Is a directory";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let opened = untrusted::open(&path, Links::Follow);
        Ok(Box::new(opened.context(
            ErrorKind::InvalidInput,
            "could not open",
            &path,
        )?))
    }

    /// Which transports are allowed for an address that comes from there.
    fn policy(&self, from: &Provenance) -> Result<Policy> {
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let mut policy = connection::policy(config, environment)?;
        policy.from_user &= from.is_trusted;
        Ok(policy)
    }

    fn request(&self, uri: &BStr, from: &Provenance, policy: Policy) -> Result<Box<dyn Read>> {
        if uri.iter().any(|byte| byte.is_ascii_whitespace()) {
            let message = format!("bundle-uri: URI is malformed: '{uri}'");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let url = Url::parse(uri).map_err(connection::from_wire)?;
        if !from.is_trusted {
            policy.check(url.scheme()).map_err(refused)?;
        }
        let named = from.origin.as_ref().unwrap_or(url.origin());
        let (options, settings) =
            connection::for_download(named, policy, self.repository.config(), self.environment())?;
        let download = http::download(&url, named, &options, settings);
        Ok(Box::new(download.map_err(connection::from_wire)?))
    }

    fn environment(&self) -> &crate::Environment {
        self.repository.environment()
    }

    /// Copies `source` into `file`. Returns the error of `source`, if it has one. What is no bundle may
    /// have the size of a list.
    fn copy(&self, source: &mut dyn Read, file: &mut File) -> Result<Option<io::Error>> {
        let mut piece = vec![0; PIECE_BYTES];
        let (mut start, mut copied) = (Vec::new(), 0_u64);
        loop {
            let interrupt = self.watch.interrupt();
            interrupt.check().map_err(crate::interrupted)?;
            let count = match source.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(error)),
            };
            let bytes = piece.get(..count).unwrap_or_default();
            if start.len() < SIGNATURE_BYTES {
                start.extend(bytes.iter().take(SIGNATURE_BYTES - start.len()));
            }
            copied += bytes.len() as u64;
            if copied > LARGEST_LIST_BYTES && version_of(&start).is_none() {
                let message = "the file is neither a bundle nor a bundle list";
                return Ok(Some(io::Error::other(message)));
            }
            let directory = &self.directory;
            let written = file.write_all(bytes);
            written.context(ErrorKind::Io, "cannot write a bundle into", directory)?;
        }
        file.rewind()
            .context(ErrorKind::Io, "cannot read a bundle in", &self.directory)?;
        Ok(None)
    }
}

fn refused(error: pronto_wire::Error) -> Error {
    error.map_kind(|_| ErrorKind::Refused)
}

/// Whether `file` has the header of a bundle.
pub(super) fn is_bundle(file: &File) -> bool {
    let mut start = file;
    let is_one = start.rewind().is_ok() && Header::read(&mut BufReader::new(start)).is_ok();
    is_one && start.rewind().is_ok()
}

/// Returns the text of a list.
///
/// # Errors
/// The file cannot be read, or is too long.
pub(super) fn text_of(file: &File) -> io::Result<Vec<u8>> {
    let mut start = file;
    start.rewind()?;
    let mut text = Vec::new();
    let read = start.take(LARGEST_LIST_BYTES + 1).read_to_end(&mut text)?;
    match read as u64 > LARGEST_LIST_BYTES {
        true => Err(io::Error::other("it is too long")),
        false => Ok(text),
    }
}
