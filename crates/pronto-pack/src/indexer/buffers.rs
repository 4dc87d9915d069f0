//! Reusable buffers for the contents of objects. Buffers have a few sizes for each power of two,
//! are zeroed once on allocation, and are returned to the pool of the thread that releases them
//! last.

use gix_object::Kind as ObjectKind;
use pronto_io::view::FileView;
use std::sync::Arc;

/// The size of the smallest buffers.
const SMALLEST_BYTES: usize = 256;
/// The limit for unused buffers in a pool.
const SPARE_LIMIT_BYTES: usize = 16 << 20;
/// The number of size classes by which a spare buffer may be too large: less than twice the size.
const LARGER_CLASSES: usize = 3;

/// The content of one object.
pub(super) struct ObjectBuffer {
    bytes: BufferBytes,
    len: usize,
    pub(super) kind: ObjectKind,
}

enum BufferBytes {
    /// A buffer whose length is that of its size class.
    Buffer(Vec<u8>),
    /// An unnamed file.
    Mapped(FileView),
}

impl ObjectBuffer {
    /// Returns a content that is in a mapped file instead of memory.
    pub(super) fn mapped(view: FileView, kind: ObjectKind) -> Self {
        let len = view.bytes().map_or(0, <[u8]>::len);
        let bytes = BufferBytes::Mapped(view);
        ObjectBuffer { bytes, len, kind }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        match &self.bytes {
            BufferBytes::Buffer(bytes) => &bytes[..self.len],
            BufferBytes::Mapped(view) => view.bytes().unwrap_or_default(),
        }
    }

    /// Returns the bytes for writing. Requires a content that was just taken from a pool.
    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            BufferBytes::Buffer(bytes) => &mut bytes[..self.len],
            BufferBytes::Mapped(_) => &mut [],
        }
    }

    /// Returns the used memory, which is slightly more than the length.
    pub(super) fn footprint(&self) -> usize {
        match &self.bytes {
            BufferBytes::Buffer(bytes) => bytes.len(),
            BufferBytes::Mapped(_) => self.len,
        }
    }
}

/// The spare buffers of one thread, by size class.
#[derive(Default)]
pub(super) struct BufferPool {
    classes: Vec<Class>,
    spare_bytes: usize,
    /// The number of buffers taken so far, which shows which size classes are in use.
    taken: u64,
}

/// The spare buffers of one size class.
#[derive(Default)]
struct Class {
    spare: Vec<Vec<u8>>,
    last_taken: u64,
}

impl BufferPool {
    /// Returns a content of `len` bytes with unspecified values.
    pub(super) fn take(&mut self, len: usize, kind: ObjectKind) -> ObjectBuffer {
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
        let bytes = BufferBytes::Buffer(bytes);
        ObjectBuffer { bytes, len, kind }
    }

    /// Releases a reference to `content`; the last release returns the buffer to this pool.
    pub(super) fn release(&mut self, content: Arc<ObjectBuffer>) {
        if let Some(content) = Arc::into_inner(content) {
            self.put(content);
        }
    }

    /// Returns the buffer of `content` to the pool.
    pub(super) fn put(&mut self, content: ObjectBuffer) {
        let BufferBytes::Buffer(bytes) = content.bytes else {
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

    /// Frees a buffer of the least recently used size class.
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

/// Returns the class and the size of buffers for `len` bytes; there are four classes for each power
/// of two.
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
        let mut pool = BufferPool::default();
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
