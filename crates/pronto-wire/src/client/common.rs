//! Negotiation without a pack (`git fetch --negotiate-only`).

use bstr::{BString, ByteSlice};
use pronto_hash::ObjectId;

use super::{FetchClient, FetchPeer, MOST_PACKETS, interrupted};
use crate::advertisement::ProtocolVersion;
use crate::bounds::ByteAllowance;
use crate::error::{Error, ErrorKind};
use crate::fetch::Negotiator;
use crate::fetch::common::CommonSearch;

/// A callback that returns whether the common commits found so far are sufficient.
pub type IsEnough<'a> = dyn FnMut(&[ObjectId]) -> Result<bool, Error> + 'a;

impl FetchClient {
    /// Finds commits that both sides have, without a pack. Each request contains the commits of
    /// `includes`. The negotiation ends if `is_enough` returns true after a round, or if `negotiator`
    /// has no more commits.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Unsupported`] if the remote side does not support `wait-for-done`,
    /// [`ErrorKind::Disconnected`] or [`ErrorKind::Connection`] if the connection breaks, or
    /// [`ErrorKind::Local`] if the negotiator fails.
    pub fn find_common(
        &mut self,
        includes: &[ObjectId],
        server_options: &[BString],
        negotiator: &mut dyn Negotiator,
        is_enough: &mut IsEnough<'_>,
    ) -> Result<Vec<ObjectId>, Error> {
        let unsupported = |message: &str| Err(Error::new(ErrorKind::Unsupported, message));
        let FetchPeer::Server(server) = &mut self.peer else {
            return unsupported("protocol does not support --negotiate-only, exiting");
        };
        if self.greeting.version != ProtocolVersion::V2 {
            return unsupported("--negotiate-only requires protocol v2");
        }
        if !CommonSearch::is_possible(&self.greeting) {
            return unsupported("server does not support wait-for-done");
        }
        let _region = pronto_io::region!("fetch-pack", "negotiate_using_fetch");
        let session = self.session.as_ref().map(|id| id.as_bstr());
        let mut conversation = CommonSearch::new(&self.greeting, server_options);
        conversation = conversation.with_session(session).with_includes(includes);
        let mut out = Vec::new();
        let mut rounds = 0;
        loop {
            out.clear();
            if !conversation.write_request(negotiator, &mut out)? {
                break;
            }
            rounds += 1;
            server.packets.source_mut().send(&out)?;
            let mut room = ByteAllowance::new(MOST_PACKETS, "packets");
            loop {
                interrupted(&self.interrupt)?;
                room.take(1)?;
                let packet = server.packets.next_packet()?;
                if conversation.receive(packet, negotiator)? {
                    break;
                }
            }
            if conversation.is_over() || is_enough(conversation.common())? {
                break;
            }
        }
        pronto_io::data!("negotiate_using_fetch", "total_rounds", rounds);
        Ok(conversation.common().to_vec())
    }
}
