//! The `ident` attribute: `$Id$` in blobs, `$Id: <blob> $` in files.

use bstr::ByteSlice;
use pronto_hash::ObjectId;

/// An `$Id$` keyword in a text.
struct IdentKeyword {
    /// The position of its first `$`.
    start: usize,
    /// The position after its last `$`.
    end: usize,
}

/// Finds the next keyword from position `from`. A keyword does not span lines.
fn find(text: &[u8], mut from: usize) -> Option<IdentKeyword> {
    loop {
        let start = from + text.get(from..)?.find(b"$Id")?;
        let after = start + 3;
        match text.get(after)? {
            b'$' => {
                return Some(IdentKeyword {
                    start,
                    end: after + 1,
                });
            }
            b':' => {
                let rest = &text[after..];
                let stop = rest.find_byteset(b"$\n")?;
                if rest[stop] == b'$' {
                    return Some(IdentKeyword {
                        start,
                        end: after + stop + 1,
                    });
                }
                from = after + stop + 1;
            }
            _ => from = after,
        }
    }
}

/// Returns whether the keyword has another form than `$Id: <hex> $`. As in Git, such keywords of other
/// version control systems are not expanded.
fn is_foreign(found: &[u8]) -> bool {
    let Some(inner) = found
        .strip_prefix(b"$Id:")
        .and_then(|rest| rest.strip_suffix(b"$"))
    else {
        return false;
    };
    let Some(first) = inner.get(1..) else {
        return false;
    };
    first
        .find_byte(b' ')
        .is_some_and(|space| space + 1 < first.len())
}

/// Writes `text` with the keywords expanded to `id`. Returns `false` if there are none.
pub(super) fn expand(text: &[u8], id: &ObjectId, out: &mut Vec<u8>) -> bool {
    replace(text, out, |found, out| {
        if is_foreign(found) {
            return false;
        }
        out.extend_from_slice(b"$Id: ");
        out.extend_from_slice(id.to_string().as_bytes());
        out.extend_from_slice(b" $");
        true
    })
}

/// Writes `text` with the keywords reduced to `$Id$`. Returns `false` if there are none.
pub(super) fn reduce(text: &[u8], out: &mut Vec<u8>) -> bool {
    replace(text, out, |_, out| {
        out.extend_from_slice(b"$Id$");
        true
    })
}

fn replace(text: &[u8], out: &mut Vec<u8>, with: impl Fn(&[u8], &mut Vec<u8>) -> bool) -> bool {
    let mut changed = false;
    let mut copied = 0;
    let mut from = 0;
    out.clear();
    while let Some(found) = find(text, from) {
        from = found.end;
        let before = out.len();
        out.extend_from_slice(&text[copied..found.start]);
        if with(&text[found.start..found.end], out) {
            changed = true;
            copied = found.end;
        } else {
            out.truncate(before);
        }
    }
    if changed {
        out.extend_from_slice(&text[copied..]);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_expand_and_reduce() {
        let id = ObjectId::empty_blob(pronto_hash::Kind::Sha1);
        let mut out = Vec::new();
        assert!(expand(
            b"a $Id$ $Id: x $ $Idle$ $Id: foreign thing here $\n$Id: \n$",
            &id,
            &mut out
        ));
        let expected =
            format!("a $Id: {id} $ $Id: {id} $ $Idle$ $Id: foreign thing here $\n$Id: \n$");
        assert_eq!(out.as_bstr(), expected.as_bytes().as_bstr());
        let mut back = Vec::new();
        assert!(reduce(&out, &mut back));
        assert_eq!(back.as_bstr(), "a $Id$ $Id$ $Idle$ $Id$\n$Id: \n$");
        assert!(!reduce(b"$Id$x"[4..].as_ref(), &mut back));
    }
}
