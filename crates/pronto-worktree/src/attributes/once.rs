//! Reads the attributes of each directory once, for all threads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};

use super::ReadAttributes;
use crate::Error;

/// A source that caches another source, for threads that share directories, if each lookup is a system
/// call. Costs some hundred bytes for each directory, and the content of its file.
///
/// If several threads request the same directory, all but the first wait for the first.
#[derive(Default)]
pub struct Once<S> {
    source: S,
    found: Mutex<HashMap<BString, Arc<CachedFile>>>,
}

/// The state of a directory: not read yet, or the content of its file.
type CachedFile = Mutex<Option<Option<Vec<u8>>>>;

impl<S> Once<S> {
    /// Creates a cache of `source`.
    pub fn new(source: S) -> Self {
        Once {
            source,
            found: Mutex::default(),
        }
    }
}

impl<S: ReadAttributes> ReadAttributes for Once<S> {
    fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
        let place = {
            let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
            match found.get(directory.as_bstr()) {
                Some(place) => Arc::clone(place),
                None => Arc::clone(found.entry(directory.to_owned()).or_default()),
            }
        };
        let mut known = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = &*known {
            return Ok(content.clone());
        }
        let content = self.source.read(directory)?;
        Ok(known.insert(content).clone())
    }

    fn take_links(&self) -> Vec<BString> {
        self.source.take_links()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;
    use crate::ErrorKind;

    /// Counts the calls, and fails the first time.
    struct Counting(AtomicUsize);

    impl ReadAttributes for Counting {
        fn read(&self, directory: &BStr) -> Result<Option<Vec<u8>>, Error> {
            match self.0.fetch_add(1, Relaxed) {
                0 => Err(Error::new(ErrorKind::Io, "not now")),
                _ if directory.is_empty() => Ok(None),
                _ => Ok(Some(directory.to_vec())),
            }
        }
    }

    #[test]
    fn each_directory_is_asked_of_once_but_after_a_failure() {
        let once = Once::new(Counting(AtomicUsize::new(0)));
        let read = |directory: &str| once.read(directory.into());
        assert!(read("a").is_err());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    assert_eq!(read("a").expect("it reads"), Some(b"a".to_vec()));
                    assert_eq!(read("").expect("it reads"), None);
                });
            }
        });
        assert_eq!(once.source.0.load(Relaxed), 3);
    }
}
