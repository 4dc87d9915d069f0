//! The greeting: the identities of both sides, and the refs that take part.

use std::sync::Arc;

use pronto_hash::ObjectId;

use super::VERSION;
use super::conversation::{SessionCore, SessionPhase};
use crate::error::malformed;
use crate::frame::{FrameType, HEADER_BYTES, MAX_FRAME_BYTES};
use crate::message::{Accept, Hello, MAX_GLOBS, MAX_NAME_BYTES, ObjectFormat};
use crate::reconcile::{self, Fingerprinter, Reconciler, SetBuilder};
use crate::repository::{RefMatcher, SyncRepository};
use crate::{Error, ErrorKind};

/// The capability bits of a greeting: dry run, unrelated histories allowed, and reasons of refused
/// refs accepted.
const DRY_RUN: u64 = 1;
pub(super) const ALLOWS_UNRELATED: u64 = 2;
const TAKES_REASONS: u64 = 4;

/// The approximate memory in bytes of a ref in the set and in the list, besides its name and value.
const REF_BYTES: u64 = 192;

/// The directions in which objects are transferred.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Directions {
    /// This side sends.
    pub(super) sends: bool,
    /// This side receives.
    pub(super) receives: bool,
}

impl<R: SyncRepository> SessionCore<R> {
    pub(super) fn greet(&mut self) -> Result<(), Error> {
        let Some(admission) = &mut self.admission else {
            return Ok(());
        };
        let identity = admission.repository.identity()?;
        let options = &self.options;
        let globs = [&options.globs.include, &options.globs.exclude];
        let is_long = globs.iter().any(|globs| globs.len() > MAX_GLOBS)
            || (globs.iter().flat_map(|globs| globs.iter()))
                .any(|each| each.len() > MAX_NAME_BYTES)
            || options.repository.len() > MAX_NAME_BYTES;
        if is_long {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!(
                    "too many globs (limit {MAX_GLOBS}), or a name longer than {MAX_NAME_BYTES} \
                     bytes"
                ),
            ));
        }
        let hello = Hello {
            versions: vec![VERSION],
            object_format: admission.object_format,
            role: admission.role,
            capabilities: u64::from(options.is_dry_run) * DRY_RUN
                + u64::from(options.allows_unrelated) * ALLOWS_UNRELATED
                + TAKES_REASONS,
            repository: options.repository.clone(),
            identity,
            globs: options.globs.clone(),
            window_bytes: options.window_bytes,
            nonce: options.nonce,
        };
        self.put(FrameType::Hello, |out| hello.write(out));
        Ok(())
    }

    pub(super) fn hello(&mut self, hello: Hello) -> Result<u64, Error> {
        if self.peer.is_some() {
            return Err(malformed("a second greeting"));
        }
        if !hello.versions.contains(&VERSION) {
            return Err(Error::new(
                ErrorKind::Version,
                format!(
                    "no common version of netsync: {VERSION} and {:?}",
                    hello.versions
                ),
            ));
        }
        if let Some(admit) = self.admit.take() {
            self.admission = Some(admit(&hello)?);
            self.greet()?;
        }
        let Some(admission) = &mut self.admission else {
            return Err(malformed("an unexpected greeting"));
        };
        if admission.object_format != hello.object_format {
            let name = |format| match format {
                ObjectFormat::Sha1 => "sha1",
                ObjectFormat::Sha256 => "sha256",
            };
            return Err(Error::new(
                ErrorKind::ObjectFormat,
                format!(
                    "different object formats: {} and {}",
                    name(admission.object_format),
                    name(hello.object_format)
                ),
            ));
        }
        if !admission.role.fits(hello.role) {
            return Err(Error::new(
                ErrorKind::Denied,
                "both sides only send, or both only receive",
            ));
        }
        admission.repository.meet(&hello.identity)?;
        self.report.is_dry_run = self.options.is_dry_run || hello.capabilities & DRY_RUN != 0;
        let (first, second) = match self.is_initiator {
            true => (&self.options.nonce, &hello.nonce),
            false => (&hello.nonce, &self.options.nonce),
        };
        let nonces = [&first[..], &second[..]].concat();
        self.key = Some(Fingerprinter::new(blake3::derive_key(
            "netsync/1 2026 fingerprints of refs and commits",
            &nonces,
        )));
        let least = (HEADER_BYTES + MAX_FRAME_BYTES) as u64;
        let window = hello.window_bytes.saturating_sub(least);
        self.peer = Some(hello);
        self.put(FrameType::Accept, |out| {
            Accept { version: VERSION }.write(out)
        });
        self.compare_refs()?;
        Ok(window)
    }

    pub(super) fn accepted(&mut self, accept: Accept) -> Result<(), Error> {
        if self.was_accepted || accept.version != VERSION {
            return Err(malformed("an unexpected acceptance"));
        }
        self.was_accepted = true;
        Ok(())
    }

    /// Returns the directions of the transfer, which follow from the roles of both sides.
    pub(super) fn directions(&self) -> Directions {
        let role = self.admission.as_ref().map(|admission| admission.role);
        let peer = self.peer.as_ref().map(|peer| peer.role);
        match (role, peer) {
            (Some(own), Some(peer)) => Directions {
                sends: own.sends() && peer.receives(),
                receives: own.receives() && peer.sends(),
            },
            _ => Directions::default(),
        }
    }

    /// Returns whether the peer accepts the reasons of refused refs.
    pub(super) fn peer_takes_reasons(&self) -> bool {
        let peer = self.peer.as_ref();
        peer.is_some_and(|peer| peer.capabilities & TAKES_REASONS != 0)
    }

    pub(super) fn compare_refs(&mut self) -> Result<(), Error> {
        let (Some(admission), Some(peer), Some(key)) = (&mut self.admission, &self.peer, &self.key)
        else {
            return Err(malformed("refs before the greeting"));
        };
        let wishes = [
            RefMatcher::new(self.options.globs.clone()),
            RefMatcher::new(peer.globs.clone()),
        ];
        let limits = &admission.limits;
        let matches = |name: &[u8]| {
            name.len() <= MAX_NAME_BYTES
                && limits.matches(name)
                && wishes.iter().all(|wish| wish.matches(name))
        };
        let (mut own, mut set, mut set_bytes) = (Vec::new(), SetBuilder::default(), 0);
        admission.repository.refs(&matches, &mut |offer| {
            let mut value = offer.id.as_slice().to_vec();
            value.extend_from_slice(offer.peeled.as_ref().map_or(&[], ObjectId::as_slice));
            set_bytes += REF_BYTES + 2 * (offer.name.len() + value.len()) as u64;
            set.push(&offer.name, &value);
            own.push(offer.clone());
        })?;
        own.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        self.own = own;
        self.set_bytes = set_bytes;
        admission.repository.hold(set_bytes)?;
        let set = Arc::new(set.finish(key)?);
        let mut reconciler = Reconciler::new(set, key, reconcile::Options::default());
        if !self.is_initiator {
            let message = reconciler.start();
            self.waiting.push_back((FrameType::RefRange, message));
        }
        self.stage = SessionPhase::Refs(reconciler);
        Ok(())
    }
}
