//! The order of listed refs: the keys of `--sort` that need no objects.

use std::cmp::Ordering;

use bstr::{BStr, ByteSlice};

use super::Listed;

/// A property of a ref by which refs are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The full name.
    Name,
    /// The full name, with numbers in it compared by their values.
    Version,
    /// The object id.
    Id,
    /// The target of a symbolic ref.
    SymrefTarget,
}

/// One key of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SortKey {
    /// The property.
    pub field: Field,
    /// Whether the largest comes first.
    pub descending: bool,
}

impl SortKey {
    /// Parses a key such as `-version:refname`. `None` if it is not one of those that need only what
    /// a server reports about a ref.
    pub fn parse(text: &BStr) -> Option<Self> {
        let (descending, name) = match text.strip_prefix(b"-") {
            Some(name) => (true, name),
            None => (false, text.as_bytes()),
        };
        let field = match name {
            b"refname" => Field::Name,
            b"version:refname" | b"v:refname" => Field::Version,
            b"objectname" => Field::Id,
            b"symref" => Field::SymrefTarget,
            _ => return None,
        };
        Some(SortKey { field, descending })
    }

    fn compare(self, a: &Listed, b: &Listed) -> Ordering {
        let order = match self.field {
            Field::Name => a.name.cmp(&b.name),
            Field::Version => compare_versions(&a.name, &b.name),
            Field::Id => a.id.cmp(&b.id),
            Field::SymrefTarget => target(a).cmp(target(b)),
        };
        match self.descending {
            true => order.reverse(),
            false => order,
        }
    }
}

fn target(listed: &Listed) -> &BStr {
    let target = listed.symref_target.as_ref();
    target.map_or(BStr::new(""), |target| target.as_bstr())
}

/// Sorts by `keys`, of which the last one counts first, and by name if they leave a choice.
pub(super) fn sort(listed: &mut [Listed], keys: &[SortKey]) {
    if keys.is_empty() {
        return;
    }
    listed.sort_by(|a, b| {
        let orders = keys.iter().rev().map(|key| key.compare(a, b));
        let first = orders.into_iter().find(|order| order.is_ne());
        first.unwrap_or_else(|| a.name.cmp(&b.name))
    });
}

/// Compares texts with numbers in them, as `strverscmp(3)` does: a number without leading zeros is
/// compared by its value, one with leading zeros like the digits after a decimal point.
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
    fn keys_that_need_objects_are_not_known() {
        let key = SortKey::parse("-v:refname".into()).expect("a key");
        assert_eq!((key.field, key.descending), (Field::Version, true));
        assert_eq!(SortKey::parse("committerdate".into()), None);
    }
}
