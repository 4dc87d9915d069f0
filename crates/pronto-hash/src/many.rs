//! Digests a batch of independent messages, several at once.

#[cfg(target_arch = "x86_64")]
mod plan;

use crate::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::{Collision, Kind, ObjectId, digest};
use plan::BatchOrder;

/// A message to digest. The id is that of the concatenation of header and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestMessage<'a> {
    /// The header, such as `blob 12\0`. May be empty.
    pub header: &'a [u8],
    /// The body, which is read in place.
    pub body: &'a [u8],
}

impl DigestMessage<'_> {
    /// Returns the id of the message, computed without lanes.
    fn digest(&self, kind: Kind) -> Result<ObjectId, Collision> {
        digest(kind, &[self.header, self.body])
    }
}

/// Digests batches of messages. The memory is reused between batches.
///
/// A batch is fastest if it has several times as many messages as there are lanes (16 with AVX-512)
/// and fits into the processor's second-level cache. The messages may have any length and any
/// order.
///
/// ```
/// use pronto_hash::{Kind, ManyDigester, DigestMessage, digest};
///
/// let mut digester = ManyDigester::new(Kind::Sha1);
/// let mut ids = Vec::new();
/// digester.digest(&[DigestMessage { header: b"blob 2\0", body: b"hi" }; 3], &mut ids);
/// assert_eq!(ids, [digest(Kind::Sha1, &[b"blob 2\0hi"]); 3]);
/// ```
pub struct ManyDigester {
    kind: Kind,
    backend: DigestBackend,
    #[cfg(target_arch = "x86_64")]
    lanes: Option<(BatchOrder, Lanes<u32>)>,
}

impl ManyDigester {
    /// Creates a digester with the fastest backend of this processor.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        ManyDigester::with_backend(kind, DigestBackend::fastest(kind))
    }

    /// Creates a digester with the given backend. All backends compute the same ids.
    #[must_use]
    pub fn with_backend(kind: Kind, backend: DigestBackend) -> Self {
        ManyDigester {
            kind,
            backend,
            #[cfg(target_arch = "x86_64")]
            lanes: backend
                .lanes_of(kind)
                .map(|lanes| (BatchOrder::default(), lanes)),
        }
    }

    /// Digests each of `messages` and appends the results to `ids`, in the order of the messages.
    ///
    /// A result is [`Collision`] if its message contains a block of a known type of SHA-1 collision
    /// attack. The other results are not affected.
    pub fn digest(
        &mut self,
        messages: &[DigestMessage<'_>],
        ids: &mut Vec<Result<ObjectId, Collision>>,
    ) {
        ids.reserve(messages.len());
        for batch in messages.chunks(MESSAGES_MAX) {
            #[cfg(target_arch = "x86_64")]
            if let Some((plan, lanes)) = &mut self.lanes {
                let first = ids.len();
                ids.resize(first + batch.len(), Ok(ObjectId::null(self.kind)));
                digest_in_lanes(plan, lanes, self.kind, batch, &mut ids[first..]);
                continue;
            }
            ids.extend(batch.iter().map(|message| message.digest(self.kind)));
        }
    }
}

/// Digests a batch and writes the results to `ids`, one for each message.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the lanes keep pointers to the bodies between calls"
)]
fn digest_in_lanes(
    plan: &mut BatchOrder,
    lanes: &mut Lanes<u32>,
    kind: Kind,
    messages: &[DigestMessage<'_>],
    ids: &mut [Result<ObjectId, Collision>],
) {
    // After a panic the lanes may contain pointers to the bodies of an earlier batch.
    lanes.clear();
    let (alone, together) = plan.divide(messages, kind, lanes.width());
    for index in alone.iter().map(|index| *index as usize) {
        ids[index] = messages[index].digest(kind);
    }
    let mut set = |index: u32, id| ids[index as usize] = id;
    for index in together {
        let message = &messages[*index as usize];
        // SAFETY: the body is borrowed until all have ended below, and after a panic there is
        // nothing done with the lanes before they are cleared.
        unsafe { lanes.push(message.header, message.body, *index, &mut set) };
    }
    lanes.finish(&mut set);
}

impl std::fmt::Debug for ManyDigester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ManyDigester({}, {:?})", self.kind, self.backend)
    }
}

/// An implementation of [`ManyDigester`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigestBackend(DigestMethod);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DigestMethod {
    OneAtATime,
    #[cfg(target_arch = "x86_64")]
    Lanes(crate::lanes::Width),
}

impl DigestBackend {
    /// Returns all backends that this processor supports, the fastest for SHA-1 first.
    #[must_use]
    pub fn available() -> Vec<DigestBackend> {
        let mut backends = Vec::new();
        #[cfg(target_arch = "x86_64")]
        backends.extend(
            crate::lanes::Width::available().map(|width| DigestBackend(DigestMethod::Lanes(width))),
        );
        backends.push(DigestBackend(DigestMethod::OneAtATime));
        backends
    }

    /// Returns the number of messages that are digested at once.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self.0 {
            DigestMethod::OneAtATime => 1,
            #[cfg(target_arch = "x86_64")]
            DigestMethod::Lanes(width) => width.lanes(),
        }
    }

    /// Returns the fastest backend for a hash function.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "there is one backend")
    )]
    pub(crate) fn fastest(kind: Kind) -> DigestBackend {
        let available = DigestBackend::available();
        #[cfg(target_arch = "x86_64")]
        if kind == Kind::Sha256
            && available[0].lanes() == 8
            && std::arch::is_x86_feature_detected!("sha")
        {
            // AVX2 has no rotation instructions, of which SHA-256 needs many.
            return DigestBackend(DigestMethod::OneAtATime);
        }
        available[0]
    }

    /// Returns idle lanes for a hash function, or `None` if the backend has none.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn lanes_of<T>(self, kind: Kind) -> Option<Lanes<T>> {
        match (self.0, kind) {
            (DigestMethod::Lanes(width), Kind::Sha1 | Kind::Sha256) => {
                Some(Lanes::new(kind, width))
            }
            _ => None,
        }
    }
}

/// Digests each of `messages` and appends the results to `ids`, in the order of the messages.
///
/// A result is [`Collision`] if its message contains a block of a known type of SHA-1 collision
/// attack. The other results are not affected. For several batches use a [`ManyDigester`].
pub fn digest_many(
    kind: Kind,
    messages: &[DigestMessage<'_>],
    ids: &mut Vec<Result<ObjectId, Collision>>,
) {
    ManyDigester::new(kind).digest(messages, ids);
}

/// The maximum number of messages in one plan, which limits its memory.
const MESSAGES_MAX: usize = 1 << 16;
