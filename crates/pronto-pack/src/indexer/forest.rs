//! The unresolved deltas after the pack has arrived, as trees whose parents are the bases. The
//! trees are arrays indexed by entry number; nothing is allocated for each delta.

use super::arrive::PendingDelta;
use super::digesting::NumberedIds;
use super::kept::DeltaPosition;
use super::receive::ByBaseId;
use super::tables::{EntryBase, EntryTables};
use pronto_hash::ObjectId;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

const UNCLAIMED: u32 = u32::MAX;

/// A delta in the forest.
#[derive(Clone, Copy)]
pub(super) struct DeltaNode {
    pub(super) index: u32,
    pub(super) kept: DeltaPosition,
    /// Whether the object already has an id; it is resolved again only as a base of other deltas.
    pub(super) known: bool,
}

/// The deltas that name the same base by its id.
pub(super) struct RefDeltaGroup {
    pub(super) id: ObjectId,
    pub(super) nodes: Range<u32>,
    base: AtomicU32,
}

impl RefDeltaGroup {
    /// Sets `index` as the base of the group. Returns `false` if the group already has a base.
    pub(super) fn claim(&self, index: u32) -> bool {
        self.base
            .compare_exchange(UNCLAIMED, index, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the entry number of the base, if it is known.
    pub(super) fn base(&self) -> Option<u32> {
        let base = self.base.load(Ordering::Relaxed);
        (base != UNCLAIMED).then_some(base)
    }
}

/// All trees of deltas. The children of a base are consecutive, and the child with the most
/// descendants is last, so that a walk can release the base when it enters that child.
pub(super) struct Forest {
    pub(super) nodes: Vec<DeltaNode>,
    /// The start of the children of each entry. They end at the start of the next entry.
    first: Vec<u32>,
    /// The bases that are not deltas, ordered with large trees first.
    pub(super) roots: Vec<u32>,
    /// The groups, in the order of their first deltas.
    pub(super) groups: Vec<RefDeltaGroup>,
    group_of: HashMap<ObjectId, u32>,
    /// The number of deltas whose objects have no id yet.
    pub(super) waiting: usize,
}

/// The number of descendants from which a tree is large, so that its walk begins before those of
/// other trees.
const LARGE_TREE: u32 = 256;

#[derive(Clone, Copy, PartialEq, Eq)]
enum BaseState {
    Apart,
    Waits,
    Known,
}

impl Forest {
    /// Builds the trees of the `pending` deltas. For a delta that names its base by one of `ids`,
    /// the entry number of the base is stored in `tables`.
    pub(super) fn plant(
        tables: &mut EntryTables,
        mut pending: Vec<PendingDelta>,
        by_id: Vec<ByBaseId>,
        ids: &[&NumberedIds],
    ) -> Forest {
        pending.sort_unstable_by_key(|pending| pending.index);
        let waiting = pending.len();
        let unknown = attach(tables, by_id, ids);
        let (states, members) = members(tables, &pending);
        let weights = weights(tables, &states);
        let mut first = starts(tables, &states);
        let mut nodes = vec![
            DeltaNode {
                index: 0,
                kept: DeltaPosition::NOT,
                known: true,
            };
            first.last().map_or(0, |end| *end as usize)
        ];
        for node in members {
            if let Some(base) = tables.bases[node.index as usize].index() {
                let slot = &mut first[base as usize];
                nodes[*slot as usize] = node;
                *slot += 1;
            }
        }
        // While the nodes were filled in, each start was moved to its end; this moves them back.
        first.rotate_right(1);
        if let Some(start) = first.first_mut() {
            *start = 0;
        }
        let mut forest = Forest {
            nodes,
            first,
            roots: Vec::new(),
            groups: Vec::new(),
            group_of: HashMap::new(),
            waiting,
        };
        forest.heaviest_last(&weights);
        forest.find_roots(tables, &weights);
        forest.add_groups(unknown, &pending);
        forest
    }

    /// Returns the children of an entry, as a range of [`nodes`](Self::nodes).
    pub(super) fn children(&self, index: u32) -> Range<u32> {
        let index = index as usize;
        match (self.first.get(index), self.first.get(index + 1)) {
            (Some(start), Some(end)) => *start..*end,
            _ => 0..0,
        }
    }

    /// Returns the group of deltas whose base is the object with this id.
    pub(super) fn group(&self, id: &ObjectId) -> Option<&RefDeltaGroup> {
        if self.groups.is_empty() {
            return None;
        }
        let number = self.group_of.get(id)?;
        Some(&self.groups[*number as usize])
    }

    fn heaviest_last(&mut self, weights: &[u32]) {
        for index in 0..self.first.len().saturating_sub(1) {
            let children = self.first[index] as usize..self.first[index + 1] as usize;
            if children.len() > 1 {
                let children = &mut self.nodes[children];
                let heaviest = (0..children.len())
                    .max_by_key(|child| weights[children[*child].index as usize])
                    .unwrap_or(0);
                children.swap(heaviest, children.len() - 1);
            }
        }
    }

    fn find_roots(&mut self, tables: &EntryTables, weights: &[u32]) {
        let count = tables.len() as u32;
        self.roots = (0..count)
            .filter(|index| {
                tables.bases[*index as usize] == EntryBase::NONE
                    && !self.children(*index).is_empty()
            })
            .collect();
        self.roots.sort_by_key(|index| {
            let weight = weights[*index as usize];
            let weight = if weight >= LARGE_TREE { weight } else { 0 };
            std::cmp::Reverse(weight)
        });
    }

    fn add_groups(&mut self, mut by_id: Vec<ByBaseId>, pending: &[PendingDelta]) {
        by_id.sort_by(|a, b| (&a.base, a.index).cmp(&(&b.base, b.index)));
        for members in by_id.chunk_by(|a, b| a.base == b.base) {
            let start = self.nodes.len() as u32;
            self.nodes.extend(members.iter().map(|member| {
                let kept = pending
                    .binary_search_by_key(&member.index, |pending| pending.index)
                    .map_or(DeltaPosition::NOT, |at| pending[at].kept);
                DeltaNode {
                    index: member.index,
                    kept,
                    known: false,
                }
            }));
            self.groups.push(RefDeltaGroup {
                id: members[0].base,
                nodes: start..self.nodes.len() as u32,
                base: AtomicU32::new(UNCLAIMED),
            });
        }
        let nodes = &self.nodes;
        self.groups
            .sort_by_key(|group| nodes[group.nodes.start as usize].index);
        let numbered = self.groups.iter().zip(0..);
        self.group_of = numbered.map(|(group, number)| (group.id, number)).collect();
    }
}

/// Stores the entry number of the base of each delta whose base is one of `ids`. Returns the other
/// deltas.
fn attach(tables: &mut EntryTables, by_id: Vec<ByBaseId>, ids: &[&NumberedIds]) -> Vec<ByBaseId> {
    if by_id.is_empty() {
        return by_id;
    }
    let mut wanted: HashMap<ObjectId, Option<u32>> =
        by_id.iter().map(|delta| (delta.base, None)).collect();
    for (index, id) in ids.iter().flat_map(|ids| ids.iter()) {
        if let Some(found) = wanted.get_mut(pronto_hash::oid::from_bytes_unchecked(id)) {
            // If the base is contained several times, the first copy is used.
            *found = Some(found.map_or(index, |found| found.min(index)));
        }
    }
    let (known, unknown) = by_id
        .into_iter()
        .partition::<Vec<_>, _>(|delta| wanted.get(&delta.base).is_some_and(Option::is_some));
    for delta in known {
        if let Some(Some(base)) = wanted.get(&delta.base) {
            tables.bases[delta.index as usize] = EntryBase::entry(*base);
        }
    }
    unknown
}

/// Returns the nodes of the forest: the unresolved deltas, and resolved deltas between them and
/// their bases.
fn members(tables: &EntryTables, pending: &[PendingDelta]) -> (Vec<BaseState>, Vec<DeltaNode>) {
    let mut states = vec![BaseState::Apart; tables.len()];
    for pending in pending {
        states[pending.index as usize] = BaseState::Waits;
    }
    let mut nodes: Vec<DeltaNode> = pending
        .iter()
        .map(|pending| DeltaNode {
            index: pending.index,
            kept: pending.kept,
            known: false,
        })
        .collect();
    for pending in pending {
        let mut base = tables.bases[pending.index as usize].index();
        while let Some(index) = base {
            let next = tables.bases[index as usize];
            if next == EntryBase::NONE || states[index as usize] != BaseState::Apart {
                break;
            }
            states[index as usize] = BaseState::Known;
            nodes.push(DeltaNode {
                index,
                kept: DeltaPosition::NOT,
                known: true,
            });
            base = next.index();
        }
    }
    (states, nodes)
}

/// Returns the number of entries in the tree below each entry, including the entry. The result is
/// exact if bases precede their deltas.
fn weights(tables: &EntryTables, states: &[BaseState]) -> Vec<u32> {
    let mut weights = vec![0u32; states.len()];
    for index in (0..states.len()).rev() {
        if states[index] != BaseState::Apart {
            weights[index] += 1;
            if let Some(base) = tables.bases[index].index() {
                weights[base as usize] = weights[base as usize].saturating_add(weights[index]);
            }
        }
    }
    weights
}

/// Returns the start of the children of each entry if they are ordered by base, and the end of the
/// last children.
fn starts(tables: &EntryTables, states: &[BaseState]) -> Vec<u32> {
    let mut first = vec![0u32; states.len() + 1];
    for (base, state) in tables.bases.iter().zip(states) {
        if let (Some(base), true) = (base.index(), *state != BaseState::Apart) {
            first[base as usize] += 1;
        }
    }
    let mut sum = 0;
    for slot in &mut first {
        (*slot, sum) = (sum, sum + *slot);
    }
    first
}
