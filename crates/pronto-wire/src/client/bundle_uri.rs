//! The command `bundle-uri` of version 2: asks a server for its list of bundles.

use bstr::BString;

use super::{Client, Peer, interrupted};
use crate::advertisement::{Version, write_command};
use crate::bounds::Room;
use crate::error::{Error, malformed};
use crate::pktline::{self, Packet};

/// The memory that the lines of an answer may take.
const MOST_LIST_BYTES: usize = 16 << 20;

impl Client {
    /// Whether the other side answers [`bundle_lines`](Self::bundle_lines).
    pub fn offers_bundles(&self) -> bool {
        self.greeting.version == Version::V2 && self.greeting.capabilities.has("bundle-uri")
    }

    /// Returns the lines (`key=value`) of the other side's list of bundles; none if it has no list. Takes at most
    /// 16 MiB of memory.
    ///
    /// # Errors
    /// The connection breaks, the operation is interrupted, or the answer is malformed or too long.
    pub fn bundle_lines(&mut self, server_options: &[BString]) -> Result<Vec<BString>, Error> {
        if !self.offers_bundles() {
            return Ok(Vec::new());
        }
        let Peer::Server(server) = &mut self.peer else {
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
        let mut room = Room::new(MOST_LIST_BYTES, "bundles");
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
