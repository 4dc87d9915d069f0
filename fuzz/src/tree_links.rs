//! Fuzzes the entries of a tree that are found by means of a delta: they equal the entries that
//! parsing finds. Base and delta are untrusted, and the first byte gives the length of the base.

use pronto_pack::pack::{EntryStarts, TreePiece};

pub(crate) fn run(data: &[u8]) {
    let Some((&cut, rest)) = data.split_first() else {
        return;
    };
    let (base, delta) = rest.split_at(usize::from(cut).min(rest.len()));
    let (mut content, mut entries) = (Vec::new(), Vec::new());
    let mut starts = EntryStarts::default();
    let is_tree = starts.whole(base, 20, |entry| entries.push(entry.id.to_vec()));
    if is_tree.is_none() || pronto_pack::delta::apply(base, delta, &mut content).is_err() {
        return;
    }
    let (mut expected, mut whole) = (Vec::new(), EntryStarts::default());
    let parsed = whole.whole(&content, 20, |entry| expected.push(entry.id.to_vec()));
    let (mut found, mut by_delta) = (Vec::new(), EntryStarts::default());
    let derived = by_delta.derived(&starts, delta, &content, 20, |run| match run {
        TreePiece::Copied { first, count } => {
            found.extend_from_slice(&entries[first as usize..][..count as usize]);
        }
        TreePiece::Entry(entry) => found.push(entry.id.to_vec()),
    });
    assert_eq!(parsed, derived);
    if parsed.is_some() {
        assert_eq!((expected, whole), (found, by_delta));
    }
}
