//! Lists of names in the untracked cache.

use crate::bytes::take_until;
use bstr::{BStr, ByteSlice};
use std::borrow::Cow;

/// A list of names in one buffer, which is borrowed from the index file or owned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameList<'a> {
    /// The concatenated names, each with a NUL at its end.
    bytes: Cow<'a, [u8]>,
    count: usize,
}

impl<'a> NameList<'a> {
    /// Removes `count` names from the front of `data` and returns them.
    pub(super) fn take(data: &mut &'a [u8], count: usize) -> Option<NameList<'a>> {
        let before = *data;
        for _ in 0..count {
            take_until(data, 0)?;
        }
        let bytes = &before[..before.len() - data.len()];
        Some(NameList {
            bytes: Cow::Borrowed(bytes),
            count,
        })
    }

    /// Returns the concatenated names, each with a NUL at its end.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of names.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over all names in order. Linear in the number of bytes.
    pub fn iter(&self) -> impl Iterator<Item = &BStr> + Clone {
        let names = self
            .bytes
            .strip_suffix(b"\0")
            .map(|names| names.split_str(b"\0"));
        names.into_iter().flatten().map(ByteSlice::as_bstr)
    }
}

impl<N: AsRef<[u8]>> FromIterator<N> for NameList<'_> {
    fn from_iter<T: IntoIterator<Item = N>>(names: T) -> Self {
        let mut bytes = Vec::new();
        let mut count = 0;
        for name in names {
            bytes.extend_from_slice(name.as_ref());
            bytes.push(0);
            count += 1;
        }
        NameList {
            bytes: bytes.into(),
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for names in [&[][..], &["a"], &["a", "b/", "c d"], &[""], &["", ""]] {
            let owned: NameList<'_> = names.iter().collect();
            let bytes = [owned.as_bytes(), b"rest"].concat();
            let mut rest = &bytes[..];
            let read = NameList::take(&mut rest, names.len()).expect("they are there");
            assert_eq!((&read, rest), (&owned, &b"rest"[..]));
            assert!(read.iter().eq(names.iter().map(BStr::new)));
            assert_eq!(read.len(), names.len());
            assert!(NameList::take(&mut &bytes[..], names.len() + 1).is_none());
        }
    }
}
