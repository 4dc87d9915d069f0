//! Derives the entries of a tree from those of its delta base. Entries that the delta copies are
//! not parsed again.

use crate::delta::parse_copy;

/// One entry of a tree in its stored form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEntry<'a> {
    /// The digits of the mode.
    pub mode: &'a [u8],
    /// The name.
    pub name: &'a [u8],
    /// The bytes of the id.
    pub id: &'a [u8],
}

/// A part of the list of entries of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreePiece<'a> {
    /// Entries that are copied from the base.
    Copied {
        /// The number of the first entry in the base.
        first: u32,
        /// The number of entries.
        count: u32,
    },
    /// An entry that was parsed.
    Entry(RawEntry<'a>),
}

/// The start of each entry of a tree, and the end of the last entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryStarts(Vec<u32>);

impl EntryStarts {
    /// Returns the number of entries of the tree.
    pub fn len(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Returns whether the tree has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Parses the whole `content`, whose ids have `hash_len` bytes, and calls `visit` for each
    /// entry. Returns `None` if the content is not a valid tree, or takes 4 GiB or more. Costs one
    /// pass.
    pub fn whole(
        &mut self,
        content: &[u8],
        hash_len: usize,
        mut visit: impl FnMut(RawEntry<'_>),
    ) -> Option<()> {
        u32::try_from(content.len()).ok()?;
        self.0.clear();
        let mut at = 0;
        while at < content.len() {
            self.0.push(at as u32);
            let (entry, end) = parse(content, at, hash_len)?;
            visit(entry);
            at = end;
        }
        self.0.push(at as u32);
        Some(())
    }

    /// Does the same as [`whole`](Self::whole) for `content` that `delta` builds from a tree whose
    /// entries start at `base`. Costs one step for each instruction and each entry that is not
    /// copied completely, and four bytes for each copied entry.
    pub fn derived(
        &mut self,
        base: &EntryStarts,
        delta: &[u8],
        content: &[u8],
        hash_len: usize,
        mut visit: impl FnMut(TreePiece<'_>),
    ) -> Option<()> {
        u32::try_from(content.len()).ok()?;
        self.0.clear();
        let mut from = crate::delta::sizes(delta).ok()?.header_len;
        // The start of the next entry, and the output position of the next instruction.
        let (mut at, mut to) = (0, 0);
        while let Some(&instruction) = delta.get(from) {
            from += 1;
            let (start, len) = match instruction & 0x80 {
                0 => {
                    from += usize::from(instruction);
                    (None, usize::from(instruction))
                }
                _ => {
                    let (start, len) = parse_copy(instruction, delta, &mut from)?;
                    (Some(start), len)
                }
            };
            let end = to + len;
            while at < end {
                let copied = start.and_then(|start| base.within(start + (at - to)..start + len));
                if let Some((first, count)) = copied {
                    visit(TreePiece::Copied { first, count });
                    at = self.copy(base, first, count, at);
                    continue;
                }
                self.0.push(at as u32);
                let (entry, end) = parse(content, at, hash_len)?;
                visit(TreePiece::Entry(entry));
                at = end;
            }
            to = end;
        }
        self.0.push(at as u32);
        (at == content.len() && to == at).then_some(())
    }

    /// Returns the number of the entry that starts at the start of `range`, and the number of
    /// entries in the range; `None` if no entry starts there.
    fn within(&self, range: std::ops::Range<usize>) -> Option<(u32, u32)> {
        let start = u32::try_from(range.start).ok()?;
        let end = u32::try_from(range.end).unwrap_or(u32::MAX);
        let first = self.0.binary_search(&start).ok()?;
        let rest = &self.0[first + 1..];
        let count = rest.partition_point(|next| *next <= end);
        (count > 0).then_some((first as u32, count as u32))
    }

    /// Copies starts of `base`, moved so that the first one is at `at`. Returns the end of the last
    /// entry.
    fn copy(&mut self, base: &EntryStarts, first: u32, count: u32, at: usize) -> usize {
        let starts = &base.0[first as usize..][..=count as usize];
        let moved = (at as u32).wrapping_sub(starts[0]);
        let (last, starts) = starts.split_last().unwrap_or((&0, &[]));
        let starts = starts.iter().map(|start| start.wrapping_add(moved));
        self.0.extend(starts);
        last.wrapping_add(moved) as usize
    }
}

/// Parses the entry at `at`. Returns the entry and its end.
#[inline]
fn parse(content: &[u8], at: usize, hash_len: usize) -> Option<(RawEntry<'_>, usize)> {
    let rest = content.get(at..)?;
    let space = rest.iter().position(|byte| *byte == b' ')?;
    let name_len = rest[space + 1..].iter().position(|byte| *byte == 0)?;
    let id = space + name_len + 2;
    let entry = RawEntry {
        mode: &rest[..space],
        name: &rest[space + 1..id - 1],
        id: rest.get(id..id + hash_len)?,
    };
    Some((entry, at + id + hash_len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta;
    use crate::delta::make::{BaseBlocks, make};

    /// A deterministic generator of pseudo-random numbers.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % limit as u64) as usize
        }
    }

    type Entries = Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>;

    fn owned(entry: RawEntry<'_>) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        (entry.mode.into(), entry.name.into(), entry.id.into())
    }

    fn tree(entries: &Entries) -> Vec<u8> {
        let lines = entries.iter().map(|(mode, name, id)| {
            [mode.as_slice(), b" ", name.as_slice(), b"\0", id.as_slice()].concat()
        });
        lines.collect::<Vec<_>>().concat()
    }

    fn parsed(content: &[u8]) -> Option<(Entries, EntryStarts)> {
        let (mut entries, mut starts) = (Entries::new(), EntryStarts::default());
        starts.whole(content, 20, |entry| entries.push(owned(entry)))?;
        Some((entries, starts))
    }

    /// Returns the entries, derived with the delta, and the number of copied entries.
    fn derived(
        (base, starts): (&Entries, &EntryStarts),
        delta: &[u8],
        content: &[u8],
    ) -> Option<(Entries, EntryStarts, u32)> {
        let (mut entries, mut found, mut copied) = (Entries::new(), EntryStarts::default(), 0);
        found.derived(starts, delta, content, 20, |run| match run {
            TreePiece::Copied { first, count } => {
                copied += count;
                entries.extend_from_slice(&base[first as usize..][..count as usize]);
            }
            TreePiece::Entry(entry) => entries.push(owned(entry)),
        })?;
        Some((entries, found, copied))
    }

    fn entry(numbers: &mut Numbers) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
        let mode: &[u8] = [&b"100644"[..], b"40000", b"160000"][numbers.below(3)];
        let name = format!("name-{}", numbers.below(5000)).into_bytes();
        // Few different byte values, so that parts of ids are equal, too.
        let id = (0..20).map(|_| b" \x001"[numbers.below(3)]).collect();
        (mode.into(), name, id)
    }

    fn change(entries: &mut Entries, numbers: &mut Numbers) {
        for _ in 0..1 + numbers.below(4) {
            let at = numbers.below(entries.len() + 1);
            match numbers.below(4) {
                0 => entries.insert(at, entry(numbers)),
                1 if at < entries.len() => _ = entries.remove(at),
                2 if at < entries.len() => entries[at].2[numbers.below(20)] ^= 1,
                _ if at < entries.len() => entries.rotate_left(at),
                _ => {}
            }
        }
    }

    #[test]
    fn entries_by_way_of_deltas_are_those_of_the_trees() {
        let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
        let mut all_copied = 0;
        for _ in 0..300 {
            let len = 1 + numbers.below(120);
            let mut entries: Entries = (0..len).map(|_| entry(&mut numbers)).collect();
            let mut base = tree(&entries);
            let (_, mut starts) = parsed(&base).expect("a tree");
            for _ in 0..6 {
                let before = entries.clone();
                change(&mut entries, &mut numbers);
                let content = tree(&entries);
                let Some(blocks) = BaseBlocks::new(&base) else {
                    break;
                };
                let mut delta = Vec::new();
                if !make(&base, &blocks, &content, usize::MAX, &mut delta) {
                    break;
                }
                let mut applied = Vec::new();
                delta::apply(&base, &delta, &mut applied).expect("it fits");
                assert_eq!(applied, content);
                let (found, by_delta, copied) =
                    derived((&before, &starts), &delta, &content).expect("a tree");
                let (expected, whole) = parsed(&content).expect("a tree");
                assert_eq!(found, expected);
                assert_eq!(by_delta, whole);
                all_copied += copied;
                (base, starts) = (content, whole);
            }
        }
        assert!(all_copied > 10_000, "{all_copied}");
    }

    #[test]
    fn random_instructions_give_what_parsing_gives() {
        let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
        for _ in 0..3000 {
            let entries: Entries = (0..1 + numbers.below(9))
                .map(|_| entry(&mut numbers))
                .collect();
            let base = tree(&entries);
            let (_, starts) = parsed(&base).expect("a tree");
            let mut delta = vec![0, 0];
            let mut content = Vec::new();
            for _ in 0..1 + numbers.below(4) {
                let from = match numbers.below(2) {
                    0 => starts.0[numbers.below(starts.0.len())] as usize,
                    _ => numbers.below(base.len()),
                };
                let len = numbers.below((base.len() - from).min(100) + 1);
                if len == 0 {
                    continue;
                }
                let bytes = &base[from..from + len];
                content.extend_from_slice(bytes);
                match numbers.below(3) {
                    0 => {
                        delta.push(len as u8);
                        delta.extend_from_slice(bytes);
                    }
                    _ => delta.extend([0x80 | 0x13, from as u8, (from >> 8) as u8, len as u8]),
                }
            }
            let found = derived((&entries, &starts), &delta, &content);
            let expected = parsed(&content);
            assert_eq!(found.map(|found| (found.0, found.1)), expected);
        }
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for content in [&b"100644"[..], b"100644 name", b"100644 name\0short"] {
            assert_eq!(parsed(content), None);
            let starts = parsed(b"").expect("an empty tree").1;
            let delta = [&[0, 0, content.len() as u8], content].concat();
            assert_eq!(derived((&Entries::new(), &starts), &delta, content), None);
        }
    }
}
