//! Downloads bundles and lists from HTTP servers, and copies local ones.

use std::io::{self, Read};

use bstr::BStr;
use pronto_io::error::IoContext;
use pronto_io::untrusted::{self, SymlinkPolicy};
use pronto_pack::bundle::{BundleHeader, version_of};
use pronto_wire::policy::TransportPolicy;
use pronto_wire::transport::http;
use pronto_wire::url::Url;

use super::spool::SpoolRange;
use super::{BundleImport, BundleList, MOST_HEADER_BYTES, PendingBundle, Provenance, address};
use crate::remote::connection;
use crate::{Error, ErrorKind, Result};

/// The largest size of a list.
const LARGEST_LIST_BYTES: u64 = 16 << 20;

/// The size of the pieces in which a file is copied.
const PIECE_BYTES: usize = 128 << 10;

/// The number of bytes at the start of a file that show whether it is a bundle.
const SIGNATURE_BYTES: usize = 16;

impl BundleImport<'_> {
    /// Downloads the file at `uri`. Returns `None` if that fails, after reporting the reason if Git
    /// does so.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Interrupted`] if the operation is interrupted.
    pub(super) fn download(&mut self, uri: &BStr, from: &Provenance) -> Result<Option<SpoolRange>> {
        let mut source = match self.open(uri, from) {
            Ok(source) => source,
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                if error.kind() == ErrorKind::Refused {
                    self.report(error.message());
                }
                return Ok(None);
            }
        };
        match self.copy(&mut *source) {
            Ok(section) => Ok(Some(section)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.report(&error.to_string());
                Ok(None)
            }
        }
    }

    /// Opens the file at `uri`.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the URL may not be used, and with [`ErrorKind::Io`] or
    /// [`ErrorKind::Transport`] if the file cannot be opened.
    fn open(&self, uri: &BStr, from: &Provenance) -> Result<Box<dyn Read>> {
        if address::is_web(uri) {
            return self.request(uri, from);
        }
        if !from.is_trusted {
            let message =
                format!("refusing local file '{uri}' in a bundle list from another machine");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let environment = self.repository.environment();
        let path = crate::path::borrow(address::path_of(uri));
        // A clone has no repository prefix: the path is relative to the caller's current directory.
        let path = match self.repository.prefix() {
            Some(_) => environment.resolve(path),
            None => environment.absolute(path),
        };
        if path.is_dir() {
            let message = "copy-fd: read returned: Is a directory";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let opened = untrusted::open(&path, SymlinkPolicy::Follow);
        Ok(Box::new(opened.context(
            ErrorKind::InvalidInput,
            "could not open",
            &path,
        )?))
    }

    /// Requests the file at the HTTP URL `uri`.
    fn request(&self, uri: &BStr, from: &Provenance) -> Result<Box<dyn Read>> {
        if uri.iter().any(|byte| byte.is_ascii_whitespace()) {
            let message = format!("bundle-uri: URI is malformed: '{uri}'");
            return Err(Error::new(ErrorKind::Refused, message));
        }
        let url = Url::parse(uri).map_err(connection::from_wire)?;
        let policy = self.policy(url.scheme(), from)?;
        if !from.is_trusted {
            policy.check(url.scheme()).map_err(refused)?;
        }
        let named = from.origin.as_ref();
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let (options, settings) = connection::for_download(named, policy, config, environment)?;
        let download = http::download(&url, named, &options, settings);
        Ok(Box::new(download.map_err(connection::from_wire)?))
    }

    /// Returns the policy of allowed protocols for a URL with `protocol` and the provenance `from`.
    fn policy(&self, protocol: &str, from: &Provenance) -> Result<TransportPolicy> {
        let (config, environment) = (self.repository.config(), self.repository.environment());
        let mut policy = connection::policy(config, environment, protocol)?;
        policy.from_user &= from.is_trusted;
        Ok(policy)
    }

    /// Copies `source` into the spool. A file without the signature of a bundle is limited to the
    /// size of a list.
    fn copy(&mut self, source: &mut dyn Read) -> Result<SpoolRange> {
        let interrupt = self.watch.interrupt();
        let directory = self.spool.directory().to_owned();
        let mut entrance = self.spool.begin().context(
            ErrorKind::Io,
            "failed to create temporary file in",
            &directory,
        )?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut start = Vec::new();
        loop {
            interrupt.check().map_err(crate::interrupted)?;
            let count = match source.read(&mut piece) {
                Ok(0) => return Ok(entrance.finish()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let message = format!("copy-fd: read returned: {error}");
                    return Err(Error::new(ErrorKind::Transport, message));
                }
            };
            let bytes = piece.get(..count).unwrap_or_default();
            if start.len() < SIGNATURE_BYTES {
                start.extend(bytes.iter().take(SIGNATURE_BYTES - start.len()));
            }
            let written = entrance.write(bytes);
            written.context(ErrorKind::Io, "cannot write a bundle into", &directory)?;
            if entrance.size_bytes() > LARGEST_LIST_BYTES && version_of(&start).is_none() {
                let message = "the file is neither a bundle nor a bundle list";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
    }

    /// Reads the header of the bundle at `section`. Returns `None` if `section` is not a bundle.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Refused`] if the total size of bundle headers exceeds the limit.
    pub(super) fn read_header(
        &mut self,
        section: SpoolRange,
        uri: &BStr,
    ) -> Result<Option<PendingBundle>> {
        let size = section.size_bytes().min(self.header_bytes_left);
        let start = SpoolRange {
            end: section.start + size,
            ..section
        };
        let Ok(mut source) = self.spool.reader(start) else {
            return Ok(None);
        };
        let header = BundleHeader::read(&mut source);
        let used = size - source.get_ref().limit() - source.buffer().len() as u64;
        match header {
            Ok(header) => {
                self.header_bytes_left -= used;
                let pack = SpoolRange {
                    start: section.start + used,
                    ..section
                };
                Ok(Some(PendingBundle {
                    header,
                    pack,
                    lacking: None,
                }))
            }
            Err(_) if used == size && size < section.size_bytes() => {
                let message = format!(
                    "the headers of bundles up to '{uri}' have more than {MOST_HEADER_BYTES} bytes"
                );
                Err(Error::new(ErrorKind::Refused, message))
            }
            Err(_) => Ok(None),
        }
    }

    /// Reads the list at `section`, which was downloaded from `uri`. Returns `None` if the list is
    /// malformed.
    pub(super) fn read_list(&self, section: SpoolRange, uri: &BStr) -> Option<BundleList> {
        let text = match self.text(section) {
            Ok(text) => text,
            Err(error) => {
                self.report(&format!("cannot read the bundle list of '{uri}': {error}"));
                return None;
            }
        };
        let list = BundleList::parse(&text, address::directory_of(uri));
        list.map_err(|bad| self.report(&format!("{bad} in file {uri}")))
            .ok()
    }

    fn text(&self, section: SpoolRange) -> io::Result<Vec<u8>> {
        if section.size_bytes() > LARGEST_LIST_BYTES {
            return Err(io::Error::other("the bundle list is too long"));
        }
        let mut text = Vec::new();
        self.spool.reader(section)?.read_to_end(&mut text)?;
        Ok(text)
    }
}

fn refused(error: pronto_wire::Error) -> Error {
    error.map_kind(|_| ErrorKind::Refused)
}
