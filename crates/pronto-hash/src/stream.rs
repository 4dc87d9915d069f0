//! Digests messages that arrive one after another, several at once.

use std::sync::Arc;

#[cfg(target_arch = "x86_64")]
use crate::lanes::{HEADER_MAX, Lanes};
use crate::{Collision, DigestBackend, Kind, ObjectId, digest};

/// A message body for a [`DigestStream`], which owns the body until the message has been digested.
///
/// Implemented for borrowed bytes, `Vec<u8>`, and anything with bytes in an [`Arc`].
pub trait DigestBody: sealed::StableBytes {}

mod sealed {
    /// Bytes whose address does not change when `self` is moved.
    pub trait StableBytes {
        /// Returns the content.
        fn bytes(&self) -> &[u8];
    }
}

impl sealed::StableBytes for &[u8] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl sealed::StableBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> sealed::StableBytes for Arc<T> {
    fn bytes(&self) -> &[u8] {
        (**self).as_ref()
    }
}

impl DigestBody for &[u8] {}
impl DigestBody for Vec<u8> {}
impl<T: AsRef<[u8]> + ?Sized> DigestBody for Arc<T> {}

/// Digests messages as they arrive, as many at once as the processor supports.
///
/// For objects of very different lengths that are produced one after another. A message waits only
/// until there are as many messages as lanes, and a long message does not delay the others. The
/// caller need not form batches: at the end of each batch of a
/// [`ManyDigester`](crate::ManyDigester), most lanes are idle.
///
/// Each message has a token `T`, which identifies it for the caller. A closure receives the ids, in
/// no particular order, together with the token and the body, whose memory can be reused. At most
/// some dozens of messages are in the stream at any time.
///
/// ```
/// use pronto_hash::{DigestStream, Kind, ObjectId};
///
/// let mut ids = Vec::new();
/// let mut ended = |_body: Vec<u8>, name: &'static str, id| ids.push((name, id));
/// let mut stream = DigestStream::new(Kind::Sha1);
/// stream.push(b"blob 0\0", Vec::new(), "nothing", &mut ended);
/// stream.push(b"tree 0\0", Vec::new(), "also nothing", &mut ended);
/// stream.finish(&mut ended);
/// ids.sort();
/// assert_eq!(ids[0], ("also nothing", Ok(ObjectId::empty_tree(Kind::Sha1))));
/// assert_eq!(ids[1], ("nothing", Ok(ObjectId::empty_blob(Kind::Sha1))));
/// ```
pub struct DigestStream<B, T> {
    kind: Kind,
    #[cfg(target_arch = "x86_64")]
    lanes: Option<Lanes<(B, T)>>,
    #[cfg(not(target_arch = "x86_64"))]
    lanes: std::marker::PhantomData<fn(B, T)>,
}

impl<B: DigestBody, T> DigestStream<B, T> {
    /// Creates an empty stream with the fastest backend of this processor.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        DigestStream::with_backend(kind, DigestBackend::fastest(kind))
    }

    /// Creates an empty stream with the given backend. All backends compute the same ids.
    #[must_use]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(unused_variables, reason = "there is one backend")
    )]
    pub fn with_backend(kind: Kind, backend: DigestBackend) -> Self {
        DigestStream {
            kind,
            #[cfg(target_arch = "x86_64")]
            lanes: backend.lanes_of(kind),
            #[cfg(not(target_arch = "x86_64"))]
            lanes: std::marker::PhantomData,
        }
    }

    /// Adds a message that consists of `header` and `body`. `ended` is called for each message that
    /// ends during the call, which can include this message.
    ///
    /// An id is [`Collision`] if its message contains a block of a known type of SHA-1 collision
    /// attack.
    pub fn push(
        &mut self,
        header: &[u8],
        body: B,
        token: T,
        ended: &mut impl FnMut(B, T, Result<ObjectId, Collision>),
    ) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &mut self.lanes
            && header.len() <= HEADER_MAX
        {
            return push(lanes, header, body, token, ended);
        }
        let id = digest(self.kind, &[header, body.bytes()]);
        ended(body, token, id);
    }

    /// Digests the remaining messages. The stream is then empty and can be reused.
    ///
    /// A stream that is dropped without this call does not digest its remaining messages.
    pub fn finish(&mut self, ended: &mut impl FnMut(B, T, Result<ObjectId, Collision>)) {
        #[cfg(target_arch = "x86_64")]
        if let Some(lanes) = &mut self.lanes {
            lanes.finish(&mut |(body, token), id| ended(body, token, id));
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = ended;
    }
}

/// Implements [`DigestStream::push`] with lanes.
#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the lanes keep pointers to the bodies between calls"
)]
fn push<B: DigestBody, T>(
    lanes: &mut Lanes<(B, T)>,
    header: &[u8],
    body: B,
    token: T,
    ended: &mut impl FnMut(B, T, Result<ObjectId, Collision>),
) {
    let bytes = std::ptr::from_ref(body.bytes());
    // SAFETY: the body goes along with its bytes, which stay in place when it is moved, and comes
    // out of the lanes only when its message has ended.
    unsafe {
        lanes.push(header, bytes, (body, token), &mut |(body, token), id| {
            ended(body, token, id)
        })
    }
}

impl<B, T> std::fmt::Debug for DigestStream<B, T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "DigestStream({})", self.kind)
    }
}
