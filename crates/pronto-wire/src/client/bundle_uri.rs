//! The command `bundle-uri` of version 2, which requests the bundle list of a server.

use bstr::BString;

use super::{FetchClient, FetchPeer, interrupted};
use crate::advertisement::{ProtocolVersion, write_command};
use crate::bounds::ByteAllowance;
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// The memory limit for the lines of a response.
const MOST_LIST_BYTES: usize = 16 << 20;

impl FetchClient {
    /// Returns whether the server supports [`bundle_lines`](Self::bundle_lines).
    pub fn offers_bundles(&self) -> bool {
        self.greeting.version == ProtocolVersion::V2 && self.greeting.capabilities.has("bundle-uri")
    }

    /// Returns the lines (`key=value`) of the server's bundle list; none if the server has no list.
    /// Uses at most 16 MiB of memory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Malformed`](crate::ErrorKind::Malformed) if the response is malformed or
    /// too long, [`ErrorKind::Disconnected`](crate::ErrorKind::Disconnected) or
    /// [`ErrorKind::Connection`](crate::ErrorKind::Connection) if the connection breaks, or with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn bundle_lines(&mut self, server_options: &[BString]) -> Result<Vec<BString>, Error> {
        if !self.offers_bundles() {
            return Ok(Vec::new());
        }
        let FetchPeer::Server(server) = &mut self.peer else {
            return Ok(Vec::new());
        };
        let _region = pronto_io::region!("transport", "bundle_uri");
        let mut out = Vec::new();
        write_command(
            "bundle-uri",
            &self.greeting.capabilities,
            server_options,
            None,
            &mut out,
        )?;
        pktline::write_flush(&mut out);
        server.packets.source_mut().send(&out)?;
        let mut room = ByteAllowance::new(MOST_LIST_BYTES, "bundles");
        let mut lines = Vec::new();
        loop {
            interrupted(&self.interrupt)?;
            match server.packets.next_packet()? {
                packet @ Packet::Data(_) => {
                    let line = packet.text().unwrap_or_default();
                    room.take(size_of::<BString>() + line.len())?;
                    lines.push(line.into());
                }
                Packet::Flush => return Ok(lines),
                _ => return Err(malformed("expected flush after bundle-uri listing")),
            }
        }
    }
}
