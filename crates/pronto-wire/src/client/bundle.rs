//! A bundle in the place of a server: a file with refs and one pack.

use std::io::{self, BufRead};

use pronto_io::interrupt::Interrupt;
use pronto_pack::bundle::Header;

use super::{Client, Peer};
use crate::advertisement::{Greeting, RemoteRef, Version};
use crate::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, malformed};

/// A bundle whose header has been read.
pub(super) struct Source {
    header: Header,
    pack: Box<dyn BufRead + Send>,
}

impl Source {
    pub(super) fn pack(&mut self) -> &mut dyn BufRead {
        &mut *self.pack
    }
}

impl Client {
    /// Fetches from a bundle: `header`, and the pack that follows it in `pack`.
    ///
    /// The pack can be fetched once. The caller checks that it has what the header requires.
    pub fn of_bundle(header: Header, pack: Box<dyn BufRead + Send>, interrupt: &Interrupt) -> Self {
        // Git lists them in this order.
        let refs = header.references.iter().rev().map(|found| RemoteRef {
            name: found.name.clone(),
            id: Some(found.id),
            peeled: None,
            symref_target: None,
        });
        Client {
            greeting: Greeting {
                version: Version::V0,
                capabilities: Capabilities::default(),
                object_format: header.hash,
                refs: refs.collect(),
                shallow: Vec::new(),
                haves: Vec::new(),
            },
            peer: Peer::Bundle(Source { header, pack }),
            interrupt: interrupt.clone(),
        }
    }

    /// The header of the bundle, if the other side is one.
    pub fn bundle(&self) -> Option<&Header> {
        match &self.peer {
            Peer::Bundle(source) => Some(&source.header),
            Peer::Server(_) => None,
        }
    }
}

/// Checks that nothing follows the pack. `surplus` is what was read beyond its end.
pub(super) fn finish(file: &mut dyn BufRead, surplus: &[u8]) -> Result<(), Error> {
    match surplus.is_empty() && file.fill_buf().map_err(unreadable)?.is_empty() {
        true => Ok(()),
        false => Err(malformed("pack has junk at the end")),
    }
}

pub(super) fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Disconnected, "cannot read the bundle").because(error)
}
