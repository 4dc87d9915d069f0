//! Memory for the contents of objects, used over and over: buffers come in a few sizes per power
//! of two, are zeroed once when they are made, and go back to the pool of the thread that lets go
//! of them last.

use gix_object::Kind as ObjectKind;
use pronto_io::view::View;
use std::sync::Arc;

/// Smaller contents live in buffers of this size.
const SMALLEST_BYTES: usize = 256;
/// The limit for unused buffers in a pool.
const SPARE_LIMIT_BYTES: usize = 16 << 20;
/// A spare buffer this many classes larger will do: less than twice the size.
const LARGER_CLASSES: usize = 3;

/// The content of one object.
pub(super) struct Content {
    bytes: Bytes,
    len: usize,
    pub(super) kind: ObjectKind,
}

enum Bytes {
    /// A buffer of the size of its class.
    Buffer(Vec<u8>),
    /// A file without a name.
    Mapped(View),
}

impl Content {
    /// A content that is not held in memory.
    pub(super) fn mapped(view: View, kind: ObjectKind) -> Self {
        let len = view.bytes().map_or(0, <[u8]>::len);
        let bytes = Bytes::Mapped(view);
        Content { bytes, len, kind }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Buffer(bytes) => &bytes[..self.len],
            Bytes::Mapped(view) => view.bytes().unwrap_or_default(),
        }
    }

    /// To fill it, when it was just taken from a pool.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            Bytes::Buffer(bytes) => &mut bytes[..self.len],
            Bytes::Mapped(_) => &mut [],
        }
    }

    /// The memory it takes, which is a little more than its length.
    pub(super) fn footprint(&self) -> usize {
        match &self.bytes {
            Bytes::Buffer(bytes) => bytes.len(),
            Bytes::Mapped(_) => self.len,
        }
    }
}

/// Spare buffers of one thread, by size.
#[derive(Default)]
pub(super) struct Pool {
    classes: Vec<Class>,
    spare_bytes: usize,
    /// Counts taken buffers, which shows the size classes that are in use.
    taken: u64,
}

/// Spare buffers of one size.
#[derive(Default)]
struct Class {
    spare: Vec<Vec<u8>>,
    last_taken: u64,
}

impl Pool {
    /// A content of `len` bytes, whatever they are.
    pub(super) fn take(&mut self, len: usize, kind: ObjectKind) -> Content {
        let (number, size) = class_of(len);
        self.taken += 1;
        let taken = self.taken;
        self.class(number).last_taken = taken;
        let larger = self.classes.iter_mut().skip(number);
        let spare = larger
            .take(1 + LARGER_CLASSES)
            .find_map(|class| class.spare.pop());
        let bytes = match spare {
            Some(bytes) => {
                self.spare_bytes -= bytes.len();
                bytes
            }
            None => vec![0; size],
        };
        let bytes = Bytes::Buffer(bytes);
        Content { bytes, len, kind }
    }

    /// Gives up a share in `content`; the last one to do so gets the buffer.
    pub(super) fn release(&mut self, content: Arc<Content>) {
        if let Some(content) = Arc::into_inner(content) {
            self.put(content);
        }
    }

    /// Takes the buffer of `content` back.
    pub(super) fn put(&mut self, content: Content) {
        let Bytes::Buffer(bytes) = content.bytes else {
            return;
        };
        let (number, size) = class_of(bytes.len());
        debug_assert_eq!(size, bytes.len(), "buffers have the size of their class");
        self.spare_bytes += size;
        self.class(number).spare.push(bytes);
        while self.spare_bytes > SPARE_LIMIT_BYTES {
            self.shrink();
        }
    }

    fn class(&mut self, number: usize) -> &mut Class {
        if self.classes.len() <= number {
            self.classes.resize_with(number + 1, Class::default);
        }
        &mut self.classes[number]
    }

    /// Frees a buffer of the size that was not asked for for the longest time.
    #[cold]
    fn shrink(&mut self) {
        let stale = self
            .classes
            .iter_mut()
            .filter(|class| !class.spare.is_empty())
            .min_by_key(|class| class.last_taken);
        match stale.and_then(|class| class.spare.pop()) {
            Some(bytes) => self.spare_bytes -= bytes.len(),
            None => self.spare_bytes = 0,
        }
    }
}

/// The class of buffers that hold `len` bytes and their size: four classes to a power of two.
fn class_of(len: usize) -> (usize, usize) {
    let last = len.max(SMALLEST_BYTES) - 1;
    let top = last.ilog2();
    let quarters = last >> (top - 2);
    let class = (top as usize - 7) * 4 + (quarters & 3);
    (class, (quarters + 1) << (top - 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_what_they_are_asked_for() {
        let mut last = (0, 0);
        for len in 0..70_000 {
            let (class, size) = class_of(len);
            assert!(size >= len && (size <= len + len / 4 + 1 || size == SMALLEST_BYTES));
            assert_eq!(class_of(size), (class, size));
            assert!(class >= last.0 && size >= last.1);
            last = (class, size);
        }
    }

    #[test]
    fn a_buffer_comes_back_when_nobody_holds_it() {
        let mut pool = Pool::default();
        let content = Arc::new(pool.take(1000, ObjectKind::Blob));
        let other = Arc::clone(&content);
        pool.release(content);
        assert_eq!(pool.spare_bytes, 0);
        pool.release(other);
        assert_eq!(pool.spare_bytes, 1024);
        let content = pool.take(900, ObjectKind::Tree);
        assert_eq!(content.as_slice().len(), 900);
        assert_eq!(pool.spare_bytes, 0);
        pool.put(content);
        assert_eq!(pool.spare_bytes, 1024);
        drop(pool.take(300, ObjectKind::Tree));
        assert_eq!(pool.spare_bytes, 1024);
    }
}
