//! Many independent messages at a time.

use crate::{Collision, Kind, ObjectId, digest};

/// One message to digest: the header and the body are digested as if they were one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// What comes before the body, as in `blob 12\0`; may be empty.
    pub header: &'a [u8],
    /// The content, which is read in place.
    pub body: &'a [u8],
}

impl Message<'_> {
    /// The id of this one alone.
    fn digest(&self, kind: Kind) -> Result<ObjectId, Collision> {
        digest(kind, &[self.header, self.body])
    }
}

/// Digests batches of messages, keeping what it needs for that from one batch to the next.
///
/// A batch is done at its best speed if it holds a few times as many messages as there are lanes
/// (16 with AVX-512) and fits into the processor's second-level cache; the messages may be of any
/// lengths and in any order.
///
/// ```
/// use pronto_hash::{Kind, ManyDigester, Message, digest};
///
/// let mut digester = ManyDigester::new(Kind::Sha1);
/// let mut ids = Vec::new();
/// digester.digest(&[Message { header: b"blob 2\0", body: b"hi" }; 3], &mut ids);
/// assert_eq!(ids, [digest(Kind::Sha1, &[b"blob 2\0hi"]); 3]);
/// ```
pub struct ManyDigester {
    kind: Kind,
    backend: Backend,
    #[cfg(target_arch = "x86_64")]
    plan: crate::plan::Plan,
    #[cfg(target_arch = "x86_64")]
    buffers: Box<[crate::lanes::Buffer]>,
}

impl ManyDigester {
    /// One for the fastest backend of this processor.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        ManyDigester::with_backend(kind, Backend::fastest(kind))
    }

    /// One that does it in the given way; the ids are the same for all of them.
    #[must_use]
    pub fn with_backend(kind: Kind, backend: Backend) -> Self {
        ManyDigester {
            kind,
            backend,
            #[cfg(target_arch = "x86_64")]
            plan: crate::plan::Plan::default(),
            #[cfg(target_arch = "x86_64")]
            buffers: vec![crate::lanes::Buffer::new(); backend.lanes()].into_boxed_slice(),
        }
    }

    /// Digests each of `messages` and appends the results to `ids`, in the order of the messages.
    ///
    /// A result is an error if its message holds a block of a known kind of SHA-1 collision
    /// attack; the others are not affected.
    pub fn digest(&mut self, messages: &[Message<'_>], ids: &mut Vec<Result<ObjectId, Collision>>) {
        ids.reserve(messages.len());
        for batch in messages.chunks(MESSAGES_MAX) {
            match self.backend.0 {
                Repr::OneAtATime => {
                    ids.extend(batch.iter().map(|message| message.digest(self.kind)));
                }
                #[cfg(target_arch = "x86_64")]
                Repr::Lanes(width) => self.digest_in_lanes(width, batch, ids),
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn digest_in_lanes(
        &mut self,
        width: crate::lanes::Width,
        messages: &[Message<'_>],
        ids: &mut Vec<Result<ObjectId, Collision>>,
    ) {
        let first = ids.len();
        ids.resize(first + messages.len(), Ok(ObjectId::null(self.kind)));
        let ids = &mut ids[first..];
        let (alone, together) = self.plan.divide(messages, width);
        for index in alone.iter().map(|index| *index as usize) {
            ids[index] = messages[index].digest(self.kind);
        }
        let mut set = |index: u32, id| ids[index as usize] = Ok(id);
        match self.kind {
            Kind::Sha256 => {
                for index in together.iter().map(|index| *index as usize) {
                    ids[index] = messages[index].digest(self.kind);
                }
            }
            _ => {
                let suspicious = crate::lanes::sha1(
                    width,
                    messages,
                    together,
                    &mut self.buffers,
                    |at, words| {
                        set(at, ObjectId::Sha1(bytes(words)));
                    },
                );
                // The verdict is that of the exact digest of the whole message.
                for index in suspicious.into_iter().map(|index| index as usize) {
                    if ids[index].is_ok() {
                        ids[index] = messages[index].digest(self.kind);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for ManyDigester {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ManyDigester({}, {:?})", self.kind, self.backend)
    }
}

/// How a [`ManyDigester`] does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend(Repr);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repr {
    OneAtATime,
    #[cfg(target_arch = "x86_64")]
    Lanes(crate::lanes::Width),
}

impl Backend {
    /// Everything that works on this processor, the fastest first for SHA-1.
    #[must_use]
    pub fn available() -> Vec<Backend> {
        let mut backends = Vec::new();
        #[cfg(target_arch = "x86_64")]
        backends.extend(crate::lanes::Width::available().map(|width| Backend(Repr::Lanes(width))));
        backends.push(Backend(Repr::OneAtATime));
        backends
    }

    /// How many messages are digested at once.
    #[must_use]
    pub fn lanes(self) -> usize {
        match self.0 {
            Repr::OneAtATime => 1,
            #[cfg(target_arch = "x86_64")]
            Repr::Lanes(width) => width.lanes(),
        }
    }

    /// The fastest for a kind of hash.
    fn fastest(_kind: Kind) -> Backend {
        Backend::available()[0]
    }
}

/// Digests each of `messages` and appends the results to `ids`, in the order of the messages.
///
/// A result is an error if its message holds a block of a known kind of SHA-1 collision attack;
/// the others are not affected. Whoever has more than one batch keeps a [`ManyDigester`].
pub fn digest_many(
    kind: Kind,
    messages: &[Message<'_>],
    ids: &mut Vec<Result<ObjectId, Collision>>,
) {
    ManyDigester::new(kind).digest(messages, ids);
}

/// How many messages are planned together; it bounds the memory for the plan.
const MESSAGES_MAX: usize = 1 << 16;

/// The digest that consists of the given words.
#[cfg(target_arch = "x86_64")]
fn bytes<const WORDS: usize, const BYTES: usize>(words: [u32; WORDS]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}
