//! Names of objects in the store, below the prefix of a repository.

use std::fmt;

use pronto_hash::ObjectId;

use crate::hex;

/// The prefix of the names of generations.
pub(crate) const GENERATIONS: &str = "generation/";

/// The prefixes of the names of all other objects that a generation can reference.
pub(crate) const CONTENTS: [&str; 5] = ["bundle/", "graph/", "midx/", "pack/", "refs/"];

/// The name of the object that is written to read the clock of the store.
pub(crate) const TIME: &str = "upkeep/time";

/// The name of the marker object of a repository whose generations are in a database. The object
/// contains the name of the store there.
pub(crate) const DATABASE: &str = "database";

/// A random number that makes the name of an upload unique, so that no other process writes that
/// object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UploadId(pub u64);

impl UploadId {
    /// Parses 16 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(|bytes| UploadId(u64::from_be_bytes(bytes)))
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Returns the name of generation `number`. Newer generations sort before older ones.
pub(crate) fn generation(number: u64) -> String {
    format!("{GENERATIONS}{:016x}-{number}", u64::MAX - number)
}

/// Returns the number in the name of a generation, or `None` for any other name.
pub(crate) fn parse_generation(name: &str) -> Option<u64> {
    let (inverse, _) = name.strip_prefix(GENERATIONS)?.split_once('-')?;
    let number = u64::MAX - hex::decode(inverse).map(u64::from_be_bytes)?;
    (generation(number) == name).then_some(number)
}

/// Returns the name of a file of the pack with the checksum `id`.
pub(crate) fn pack(id: &ObjectId, upload: UploadId, extension: &str) -> String {
    format!("pack/{id}-{upload}.{extension}")
}

/// Returns the name of a table.
pub(crate) fn table(upload: UploadId) -> String {
    format!("refs/{upload}.ref")
}

/// Returns whether `text` can be the name of an object that a generation references: a prefix of
/// [`CONTENTS`], followed by letters, digits, `.`, `-` and `_`.
pub(crate) fn is_content(text: &str) -> bool {
    let rest = CONTENTS.iter().find_map(|prefix| text.strip_prefix(prefix));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    rest.is_some_and(|rest| {
        rest.len() <= 255
            && rest
                .as_bytes()
                .first()
                .is_some_and(u8::is_ascii_alphanumeric)
            && rest.bytes().all(is_plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_generations_come_first() {
        let names: Vec<String> = [u64::MAX, 1 << 40, 10, 9, 1].map(generation).to_vec();
        assert!(names.is_sorted());
        for number in [0, 1, 9, 10, u64::MAX] {
            assert_eq!(parse_generation(&generation(number)), Some(number));
        }
        assert_eq!(names[4], "generation/fffffffffffffffe-1");
        for bad in [
            "generation/fffffffffffffffe-2",
            "generation/FFFFFFFFFFFFFFFE-1",
            "generation/fffffffffffffffe-01",
            "generation/",
            "pack/fffffffffffffffe-1",
        ] {
            assert_eq!(parse_generation(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_contents_stay_below_their_prefix() {
        assert!(is_content("pack/0a-0b.pack") && is_content(&table(UploadId(7))));
        for bad in [
            "pack/",
            "pack/../x",
            "pack/a/b",
            "pack/.x",
            "generation/1",
            "packs/a",
        ] {
            assert!(!is_content(bad), "{bad}");
        }
    }
}
