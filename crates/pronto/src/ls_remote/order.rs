//! Sorts listed refs: the keys of `git ls-remote --sort`.

use std::cmp::Ordering;

use bstr::{BStr, ByteSlice};

use super::AdvertisedRef;
use super::properties::{ObjectPart, ObjectProperties};
use crate::{Error, ErrorKind, Repository, Result};

/// A field of `--sort`: a property of a ref or of its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The full name (`refname`).
    Name,
    /// The full name, with numbers in it compared by their values (`version:refname`).
    Version,
    /// The object id (`objectname`).
    Id,
    /// The target of a symref (`symref`).
    SymrefTarget,
    /// The type of the object (`objecttype`).
    ObjectType,
    /// The size of the object (`objectsize`).
    ObjectSize,
    /// The author date of a commit (`authordate`).
    AuthorDate,
    /// The committer date of a commit (`committerdate`).
    CommitterDate,
    /// The tagger date of a tag (`taggerdate`).
    TaggerDate,
    /// The committer date of a commit or tagger date of a tag (`creatordate`).
    CreatorDate,
}

/// The names of the fields in sort keys.
const FIELDS: &[(&str, Field)] = &[
    ("refname", Field::Name),
    ("version:refname", Field::Version),
    ("v:refname", Field::Version),
    ("objectname", Field::Id),
    ("symref", Field::SymrefTarget),
    ("objecttype", Field::ObjectType),
    ("objectsize", Field::ObjectSize),
    ("authordate", Field::AuthorDate),
    ("committerdate", Field::CommitterDate),
    ("taggerdate", Field::TaggerDate),
    ("creatordate", Field::CreatorDate),
];

impl Field {
    /// Whether the field is a property of the object, which must be in the local repository.
    fn is_of_object(self) -> bool {
        !matches!(
            self,
            Field::Name | Field::Version | Field::Id | Field::SymrefTarget
        )
    }

    /// Whether the field is part of the content of the object, and not of its header.
    fn is_in_content(self) -> bool {
        self.is_of_object() && !matches!(self, Field::ObjectType | Field::ObjectSize)
    }

    fn name(self) -> &'static str {
        let found = FIELDS.iter().find(|(_, field)| *field == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A sort key (`--sort`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefSortKey {
    /// The field to compare.
    pub field: Field,
    /// Whether the order is descending (`-` before the field).
    pub descending: bool,
}

impl RefSortKey {
    /// Parses a sort key such as `-version:refname`. Returns `None` if the key is not supported.
    pub fn parse(text: &BStr) -> Option<Self> {
        let (descending, name) = match text.strip_prefix(b"-") {
            Some(name) => (true, name),
            None => (false, text.as_bytes()),
        };
        let mut fields = FIELDS.iter();
        let found = fields.find(|(known, _)| known.as_bytes() == name);
        found.map(|&(_, field)| RefSortKey { field, descending })
    }

    fn compare(self, a: &Entry, b: &Entry) -> Ordering {
        let order = match self.field {
            Field::Name => a.listed.name.cmp(&b.listed.name),
            Field::Version => compare_versions(&a.listed.name, &b.listed.name),
            Field::Id => a.listed.id.cmp(&b.listed.id),
            Field::SymrefTarget => target(&a.listed).cmp(target(&b.listed)),
            Field::ObjectType => a.properties.type_name.cmp(b.properties.type_name),
            Field::ObjectSize => a.properties.size.cmp(&b.properties.size),
            Field::AuthorDate => a.properties.author_date.cmp(&b.properties.author_date),
            Field::CommitterDate => a
                .properties
                .committer_date
                .cmp(&b.properties.committer_date),
            Field::TaggerDate => a.properties.tagger_date.cmp(&b.properties.tagger_date),
            Field::CreatorDate => {
                let date = |properties: &ObjectProperties| {
                    properties.committer_date.max(properties.tagger_date)
                };
                date(&a.properties).cmp(&date(&b.properties))
            }
        };
        match self.descending {
            true => order.reverse(),
            false => order,
        }
    }
}

fn target(listed: &AdvertisedRef) -> &BStr {
    let target = listed.symref_target.as_ref();
    target.map_or(BStr::new(""), |target| target.as_bstr())
}

/// A ref that is being sorted.
struct Entry {
    listed: AdvertisedRef,
    properties: ObjectProperties,
    is_known: bool,
}

/// Sorts `listed` by `keys`, of which the last one is the primary key, and by name if all keys are
/// equal.
///
/// Fields of objects are read from `repository`: each object once, when its ref is compared for the
/// first time.
///
/// # Errors
/// Fails with [`ErrorKind::NoRepository`] if a key needs objects and `repository` is `None`, and
/// with `ErrorKind::Object` if an object is missing or cannot be read.
pub fn sort(
    listed: Vec<AdvertisedRef>,
    keys: &[RefSortKey],
    repository: Option<&Repository>,
) -> Result<Vec<AdvertisedRef>> {
    let is_lacking = |key: &&RefSortKey| {
        let is_plain = matches!(
            key.field,
            Field::Name | Field::Version | Field::SymrefTarget
        );
        repository.is_none() && !is_plain
    };
    if let Some(key) = keys.iter().find(is_lacking) {
        let name = key.field.name();
        let message =
            format!("not a git repository, but the field '{name}' requires access to object data");
        return Err(Error::new(ErrorKind::NoRepository, message));
    }
    if keys.is_empty() {
        return Ok(listed);
    }
    let known = match keys.iter().any(|key| key.field.is_in_content()) {
        true => ObjectPart::Content,
        false => ObjectPart::Header,
    };
    let source = repository.filter(|_| keys.iter().any(|key| key.field.is_of_object()));
    let mut sorter = Sorter {
        keys,
        source,
        known,
        buffer: Vec::new(),
    };
    let mut entries = Vec::with_capacity(listed.len());
    entries.extend(listed.into_iter().map(|listed| Entry {
        listed,
        properties: ObjectProperties::default(),
        is_known: false,
    }));
    let sorted = sorter.sort(entries)?;
    Ok(sorted.into_iter().map(|entry| entry.listed).collect())
}

struct Sorter<'a> {
    keys: &'a [RefSortKey],
    /// The repository, if a key needs objects.
    source: Option<&'a Repository>,
    known: ObjectPart,
    buffer: Vec<u8>,
}

impl Sorter<'_> {
    /// Sorts by merging halves, the smaller one first: as in Git, this decides which of several
    /// missing objects an error names.
    fn sort(&mut self, mut left: Vec<Entry>) -> Result<Vec<Entry>> {
        if left.len() < 2 {
            return Ok(left);
        }
        let right = left.split_off(left.len() / 2);
        let mut sorted = Vec::with_capacity(left.len() + right.len());
        let mut left = self.sort(left)?.into_iter().peekable();
        let mut right = self.sort(right)?.into_iter().peekable();
        while let (Some(a), Some(b)) = (left.peek_mut(), right.peek_mut()) {
            let next = match self.compare(a, b)? {
                Ordering::Greater => right.next(),
                _ => left.next(),
            };
            sorted.extend(next);
        }
        sorted.extend(left);
        sorted.extend(right);
        Ok(sorted)
    }

    fn compare(&mut self, a: &mut Entry, b: &mut Entry) -> Result<Ordering> {
        if let Some(repository) = self.source {
            for entry in [&mut *a, &mut *b] {
                if !entry.is_known {
                    let buffer = &mut self.buffer;
                    entry.properties =
                        ObjectProperties::read(repository, &entry.listed, self.known, buffer)?;
                    entry.is_known = true;
                }
            }
        }
        let orders = self.keys.iter().rev().map(|key| key.compare(a, b));
        let first = orders.into_iter().find(|order| order.is_ne());
        Ok(first.unwrap_or_else(|| a.listed.name.cmp(&b.listed.name)))
    }
}

/// Compares texts with numbers in them, like `strverscmp(3)`: a number without leading zeros is
/// compared by its value, and a number with leading zeros like the digits after a decimal point.
fn compare_versions(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let byte = |text: &[u8]| text.get(common).copied().unwrap_or(0);
    let (x, y) = (byte(a), byte(b));
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let shared = a[..common].iter().rev();
    let begin = common - shared.take_while(|byte| byte.is_ascii_digit()).count();
    let number = &a[begin..common];
    let by_value = || {
        let (a, b) = (digits(&a[common..]), digits(&b[common..]));
        a.cmp(&b).then(x.cmp(&y))
    };
    let are_digits = (x.is_ascii_digit(), y.is_ascii_digit());
    match number.first() {
        None if are_digits == (true, true) && x != b'0' && y != b'0' => by_value(),
        None => x.cmp(&y),
        Some(b'0') if number.iter().all(|&digit| digit == b'0') => match are_digits {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            _ => x.cmp(&y),
        },
        Some(b'0') => x.cmp(&y),
        Some(_) if are_digits == (false, false) => x.cmp(&y),
        Some(_) => by_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_by_value_or_as_fractions() {
        let sorted = ["000", "00", "01", "010", "09", "0", "1", "9", "10"];
        for pair in sorted.windows(2) {
            let order = compare_versions(pair[0].as_bytes(), pair[1].as_bytes());
            assert_eq!(order, Ordering::Less, "{pair:?}");
        }
        let less = [
            ("v1.9", "v1.10"),
            ("v1", "v1.1"),
            ("a", "b"),
            ("v1-rc", "v12"),
        ];
        for (a, b) in less {
            assert_eq!(compare_versions(a.as_bytes(), b.as_bytes()), Ordering::Less);
            assert_eq!(
                compare_versions(b.as_bytes(), a.as_bytes()),
                Ordering::Greater
            );
        }
        assert_eq!(compare_versions(b"v1", b"v1"), Ordering::Equal);
    }

    #[test]
    fn keys_are_parsed_with_their_direction() {
        let key = RefSortKey::parse("-v:refname".into()).expect("a key");
        assert_eq!((key.field, key.descending), (Field::Version, true));
        let key = RefSortKey::parse("creatordate".into()).expect("a key");
        assert_eq!((key.field, key.descending), (Field::CreatorDate, false));
        assert_eq!(RefSortKey::parse("creatordate:iso".into()), None);
    }

    #[test]
    fn keys_about_objects_need_a_repository() {
        let key = RefSortKey::parse("creatordate".into()).expect("a key");
        let error = sort(Vec::new(), &[key], None).expect_err("no repository");
        assert_eq!(error.kind(), ErrorKind::NoRepository);
    }
}
