//! A bundle as a source of a fetch: a file with refs and one pack.

use std::io::{self, BufRead};

use pronto_io::interrupt::Interrupt;
use pronto_pack::bundle::BundleHeader;

use super::{FetchClient, FetchPeer};
use crate::advertisement::{ProtocolVersion, RemoteRef, ServerGreeting};
use crate::capabilities::Capabilities;
use crate::error::{Error, ErrorKind, malformed};

/// A bundle whose header was read.
pub(super) struct BundleStream {
    header: BundleHeader,
    pack: Box<dyn BufRead + Send>,
}

impl BundleStream {
    pub(super) fn pack(&mut self) -> &mut dyn BufRead {
        &mut *self.pack
    }
}

impl FetchClient {
    /// Creates a client that fetches from a bundle with the given `header`. `pack` is the pack that
    /// follows the header.
    ///
    /// The pack can be fetched once. The caller checks that the prerequisites of the header exist.
    pub fn of_bundle(
        header: BundleHeader,
        pack: Box<dyn BufRead + Send>,
        interrupt: &Interrupt,
    ) -> Self {
        // As in Git, the refs are listed in this order.
        let refs = header.references.iter().rev().map(|found| RemoteRef {
            name: found.name.clone(),
            id: Some(found.id),
            peeled: None,
            symref_target: None,
        });
        FetchClient {
            greeting: ServerGreeting {
                version: ProtocolVersion::V0,
                capabilities: Capabilities::default(),
                object_format: header.hash,
                refs: refs.collect(),
                shallow: Vec::new(),
                haves: Vec::new(),
            },
            peer: FetchPeer::Bundle(BundleStream { header, pack }),
            interrupt: interrupt.clone(),
            session: None,
        }
    }

    /// Returns the header of the bundle, if the source is a bundle.
    pub fn bundle(&self) -> Option<&BundleHeader> {
        match &self.peer {
            FetchPeer::Bundle(source) => Some(&source.header),
            FetchPeer::Server(_) => None,
        }
    }
}

/// Checks that no data follow the pack. `surplus` are the bytes that were read beyond its end.
pub(super) fn finish(file: &mut dyn BufRead, surplus: &[u8]) -> Result<(), Error> {
    match surplus.is_empty() && file.fill_buf().map_err(unreadable)?.is_empty() {
        true => Ok(()),
        false => Err(malformed("pack has junk at the end")),
    }
}

pub(super) fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Disconnected, "cannot read the bundle").because(error)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read};

    use super::*;
    use crate::advertisement::LsRefs;
    use crate::fetch::{Nothing, Request};

    const BUNDLE: &[u8] = b"# v2 git bundle\n\
        1111111111111111111111111111111111111111 refs/heads/main\n\
        2222222222222222222222222222222222222222 HEAD\n\nPACK and more";

    fn client() -> FetchClient {
        let mut file = Cursor::new(BUNDLE);
        let header = BundleHeader::read(&mut file).expect("a header");
        FetchClient::of_bundle(header, Box::new(file), &Interrupt::new())
    }

    #[test]
    fn a_bundle_lists_its_refs_and_gives_its_pack() {
        let mut client = client();
        let request = LsRefs {
            prefixes: Vec::new(),
            server_options: Vec::new(),
        };
        let refs = client.refs(&request).expect("refs");
        let names: Vec<_> = refs.iter().map(|found| found.name.clone()).collect();
        assert_eq!(names, ["HEAD", "refs/heads/main"]);
        let mut response = client
            .fetch(&Request::default(), &mut Nothing, &())
            .expect("a pack");
        let mut pack = Vec::new();
        response.pack.read_to_end(&mut pack).expect("its bytes");
        assert_eq!(pack, b"PACK and more");
        response.pack.finish(&[]).expect("nothing follows");
        client.close().expect("nothing to wait for");
    }

    #[test]
    fn what_follows_the_pack_is_refused() {
        let mut client = client();
        let mut response = client
            .fetch(&Request::default(), &mut Nothing, &())
            .expect("a pack");
        let mut pack = [0; 4];
        response.pack.read_exact(&mut pack).expect("its bytes");
        let error = response.pack.finish(&[]).expect_err("more follows");
        assert_eq!(error.kind(), ErrorKind::Malformed);
    }

    #[test]
    fn an_interrupt_ends_the_pack() {
        let interrupt = Interrupt::new();
        let mut file = Cursor::new(BUNDLE);
        let header = BundleHeader::read(&mut file).expect("a header");
        let mut client = FetchClient::of_bundle(header, Box::new(file), &interrupt);
        let mut response = client
            .fetch(&Request::default(), &mut Nothing, &())
            .expect("a pack");
        interrupt.trigger();
        let mut pack = Vec::new();
        response.pack.read_to_end(&mut pack).expect_err("it ends");
    }
}
