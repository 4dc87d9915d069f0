//! A repository on a server, where a push of a peer updates the branches and tags themselves.
//!
//! No ref is forced or deleted: a branch is fast-forwarded, and a tag does not change. The received
//! part of an interrupted push is kept under the name in [`Options`], as for any other peer. No
//! refs with that name exist, and several repositories may use the name.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice as _};
use pronto_io::interrupt::Interrupt;
use pronto_netsync::Error;
use pronto_netsync::message::{MAX_NAME_BYTES, PublishedRef, StoreResult};
use pronto_netsync::repository::OfferedRef;

use super::publish::{edit, has_place, is_checked_out};
use super::{Options, PeerRepository, failed, names};
use pronto::receive_pack::{Growth, GrowthTurn, object_bytes};
use pronto::refs::{RefTarget, name};
use pronto::{Repository, Result};

/// The rules of a server for ref updates by a peer.
pub trait RefRules: Send {
    /// Returns the reason for which the ref `name` may not be updated, or created if `creates`.
    /// Returns `None` if the update is allowed.
    fn refusal(&self, name: &[u8], creates: bool) -> Option<String>;

    /// Admits the growth of the repository by the received objects. The returned turn lasts until
    /// the refs have changed.
    ///
    /// # Errors
    /// Returns the reason if the repository may not grow by this much.
    fn admit(
        &self,
        _repository: &Repository,
        _growth: Growth,
    ) -> Result<Option<GrowthTurn>, String> {
        Ok(None)
    }
}

/// The value of a ref on the server.
enum ServerRefValue {
    Missing,
    Symbolic,
    Object(pronto_hash::ObjectId),
}

/// The result for a ref that a peer offers.
enum RefResult {
    /// The ref on the server already contains the offered commit.
    Same,
    /// The ref is created or updated.
    Moves(StoreResult, ServerRefValue),
    /// The ref is not updated, for this reason.
    Refused(String),
}

impl PeerRepository {
    /// Opens a repository of a server for a peer. A push of the peer updates the refs with the same
    /// names, within the limits of `rules`.
    ///
    /// # Errors
    /// Fails if the repository is shallow or a partial clone.
    pub fn hosted(
        repository: Arc<Repository>,
        options: Options,
        interrupt: Interrupt,
        rules: Box<dyn RefRules>,
    ) -> Result<Self, Error> {
        let mut peer = PeerRepository::open(repository, options, interrupt)?;
        peer.rules = Some(rules);
        Ok(peer)
    }

    /// Returns the reason for which a ref is refused before its history is checked, or `None` if
    /// the ref may be updated.
    pub(super) fn host_refusal(&self, offer: &OfferedRef) -> Result<Option<String>> {
        let Some(rules) = &self.rules else {
            return Ok(None);
        };
        let full = offer.name.as_bstr();
        let is_sound =
            names::is_shared(full) && names::fits(full) && name::is_valid(full, name::Form::Full);
        if !is_sound || full == "refs/heads/HEAD" {
            return Ok(Some(
                "the server does not accept a ref with this name".to_owned(),
            ));
        }
        if self.hidden.hides(full) {
            return Ok(Some("the ref is hidden".to_owned()));
        }
        let own = own_ref(&self.repository, full)?;
        let is_branch = full.starts_with(b"refs/heads/");
        let creates = matches!(own, ServerRefValue::Missing);
        let refusal = match own {
            ServerRefValue::Symbolic => {
                Some("the server has a symbolic ref with this name".to_owned())
            }
            ServerRefValue::Object(id) if !is_branch && id != offer.id => {
                Some("the server already has another object under this name".to_owned())
            }
            ServerRefValue::Object(_) if is_branch && is_checked_out(&self.repository, offer)? => {
                Some("the branch is checked out on the server".to_owned())
            }
            _ => rules.refusal(&offer.name, creates),
        };
        Ok(refusal)
    }

    /// Checks with the rules that the repository may grow by the objects in the directory
    /// `received`, and by the refs that `offers` create.
    pub(super) fn admit(
        &self,
        offers: &[&OfferedRef],
        received: Option<&Path>,
    ) -> Result<std::result::Result<Option<GrowthTurn>, String>> {
        let Some(rules) = &self.rules else {
            return Ok(Ok(None));
        };
        let mut growth = Growth::default();
        if let Some(received) = received {
            growth.bytes = object_bytes(received)?;
        }
        for offer in offers {
            let own = own_ref(&self.repository, offer.name.as_bstr())?;
            growth.refs += u64::from(matches!(own, ServerRefValue::Missing));
        }
        Ok(rules.admit(&self.repository, growth))
    }

    /// Updates the accepted refs in one transaction.
    pub(super) fn publish_hosted(
        &mut self,
        offers: &[OfferedRef],
        arrived: &[bool],
    ) -> Result<Vec<PublishedRef>> {
        let repository = Arc::clone(&self.repository);
        let mut transaction = repository.transaction();
        let (mut published, mut has_edits) = (Vec::new(), false);
        let mut taken: BTreeSet<BString> = BTreeSet::new();
        for (offer, arrived) in offers.iter().zip(arrived) {
            let full = offer.name.as_bstr().to_owned();
            let fate = match self.fate(offer, *arrived)? {
                RefResult::Moves(_, ServerRefValue::Missing)
                    if !has_place(&repository, &taken, &full)? =>
                {
                    RefResult::Refused("the name conflicts with another ref".to_owned())
                }
                fate => fate,
            };
            let (stored, stored_as) = match fate {
                RefResult::Same => continue,
                RefResult::Refused(reason) => (StoreResult::Refused, cut(&reason)),
                RefResult::Moves(stored, own) => {
                    let before = match own {
                        ServerRefValue::Object(id) => Some(id),
                        _ => None,
                    };
                    transaction.push(edit(&full, before, offer, "push"));
                    taken.insert(full);
                    has_edits = true;
                    (stored, offer.name.clone())
                }
            };
            published.push(PublishedRef {
                name: offer.name.clone(),
                stored,
                stored_as,
            });
        }
        if has_edits {
            transaction.prepare()?.commit()?;
        }
        Ok(published)
    }

    fn fate(&self, offer: &OfferedRef, arrived: bool) -> Result<RefResult> {
        let own = own_ref(&self.repository, offer.name.as_bstr())?;
        let none = BTreeSet::new();
        let (repository, theirs) = (&self.repository, offer.id);
        let is_branch = offer.name.starts_with(b"refs/heads/");
        match own {
            ServerRefValue::Object(id) if id == theirs => return Ok(RefResult::Same),
            // The peer lacks commits of the branch.
            ServerRefValue::Object(id)
                if is_branch && arrived && repository.is_ancestor(&theirs, &id, &none)? =>
            {
                return Ok(RefResult::Same);
            }
            _ => {}
        }
        if let Some(reason) = self.host_refusal(offer)? {
            return Ok(RefResult::Refused(reason));
        }
        Ok(match own {
            _ if !arrived => RefResult::Refused("its commits were not accepted".to_owned()),
            ServerRefValue::Missing => RefResult::Moves(StoreResult::New, own),
            ServerRefValue::Object(id) if repository.is_ancestor(&id, &theirs, &none)? => {
                RefResult::Moves(StoreResult::FastForward, own)
            }
            _ => RefResult::Refused(
                "not a fast-forward: sync with --pull and merge first".to_owned(),
            ),
        })
    }

    /// Returns, for each offer, whether it may be received.
    pub(super) fn may_receive(&self, offer: &OfferedRef) -> Result<bool, Error> {
        match self.rules {
            Some(_) => Ok(self.host_refusal(offer).map_err(failed)?.is_none()),
            None => Ok(names::tracking(&self.options.peer, &offer.name).is_some()),
        }
    }
}

fn own_ref(repository: &Repository, name: &BStr) -> Result<ServerRefValue> {
    // A lookup of such a name fails. The name is refused with a reason, and the session continues.
    if !names::fits(name) {
        return Ok(ServerRefValue::Missing);
    }
    let found = repository.refs().find(name)?;
    Ok(match found.map(|found| found.target) {
        Some(RefTarget::Symbolic(_)) => ServerRefValue::Symbolic,
        Some(RefTarget::Object(id)) => ServerRefValue::Object(id),
        None => ServerRefValue::Missing,
    })
}

/// Returns the reason truncated to the limit of the protocol.
fn cut(reason: &str) -> Vec<u8> {
    let mut places = (0..=MAX_NAME_BYTES.min(reason.len())).rev();
    let end = places.find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
    reason.as_bytes()[..end].to_vec()
}
