//! Decodes all trees of a pack. All trees of a delta family are processed by one worker.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use pronto_hash::ObjectId;
use pronto_io::interrupt::Interrupt;
use pronto_io::pool::{self, Workers};

use super::super::decode::{DeltaLink, with_data};
use super::super::{PackOrder, PackPosition, PackReader, ReadWindow};
use super::scan::{Scan, TREE};
use super::shape::{EntryStarts, RawEntry, TreePiece};
use super::{LinkArena, NONE, PackFiles, StoredLink, Tag, TreeLinks, TreeRecord};
use crate::delta;
use crate::entry::EntryHeader;
use crate::error::{Error, ErrorKind};
use crate::idx::PackIndex;
use crate::inflate::Inflater;

/// The memory for contents of each worker; a tree that takes more than half of it is unknown.
const MOST_HELD: usize = 64 << 20;

/// The memory for names of each worker.
const MOST_NAME_BYTES: usize = 64 << 20;

/// The number of ids that are searched at once.
const LOOKED_UP: usize = 512;

/// Returns the memory for pieces: 192 MiB, and 192 bytes for each object.
fn most_pieces(objects: u32) -> usize {
    (16 << 20) + objects as usize * 16
}

impl TreeLinks {
    /// Decodes all trees of a pack with `threads` threads. `scan` must be of the same pack. Trees
    /// that cannot be read, or would take too much memory, are unknown.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Interrupted` if the operation is cancelled, and with
    /// `ErrorKind::Truncated` if a mapped file was truncated.
    pub fn new(
        files: PackFiles<'_>,
        scan: &Scan,
        threads: usize,
        interrupt: &Interrupt,
    ) -> Result<TreeLinks, Error> {
        let PackFiles { pack, index, order } = files;
        let family = DeltaFamily::new(scan);
        let shared = LinkContext {
            pack,
            index,
            order,
            family: &family,
            interrupt,
            most_pieces: most_pieces(order.len()) / threads.max(1),
        };
        let done = Mutex::new(Vec::new());
        let summary = pool::run(
            Workers::Exactly(threads),
            family.roots.len(),
            || LinkWorker::new(&shared),
            |worker, items| {
                for root in &family.roots[items] {
                    worker.family(*root);
                }
                match interrupt.check() {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            },
            |mut worker| {
                worker.look_up();
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                done.push((worker.arena, worker.records));
            },
        );
        if !summary.complete {
            let message = pronto_io::interrupt::Interrupted.to_string();
            return Err(Error::new(ErrorKind::Interrupted, message));
        }
        pack.intact(0)?;
        index.verify()?;
        let nothing = TreeRecord {
            arena: NONE,
            start: 0,
            len: 0,
            base: NONE,
        };
        let mut links = TreeLinks {
            records: vec![nothing; order.len() as usize],
            arenas: Vec::new(),
        };
        for (arena, records) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let number = links.arenas.len() as u32;
            for (row, record) in records {
                if let Some(place) = links.records.get_mut(row as usize) {
                    *place = TreeRecord {
                        arena: number,
                        ..record
                    };
                }
            }
            links.arenas.push(arena);
        }
        Ok(links)
    }
}

/// The delta relations between trees.
struct DeltaFamily {
    roots: Vec<u32>,
    /// The first delta that is based on each entry.
    children: Vec<u32>,
    /// The next delta with the same base, for each entry.
    siblings: Vec<u32>,
}

impl DeltaFamily {
    fn new(scan: &Scan) -> DeltaFamily {
        let mut family = DeltaFamily {
            roots: Vec::new(),
            children: vec![NONE; scan.bases.len()],
            siblings: vec![NONE; scan.bases.len()],
        };
        for position in (0..scan.bases.len() as u32).rev() {
            if !scan.is_tree(position) {
                continue;
            }
            match scan.bases[position as usize] {
                TREE => family.roots.push(position),
                base => {
                    let child = &mut family.children[base as usize];
                    family.siblings[position as usize] = *child;
                    *child = position;
                }
            }
        }
        family.roots.reverse();
        family
    }
}

struct LinkContext<'a> {
    pack: &'a PackReader,
    index: &'a PackIndex,
    order: &'a PackOrder,
    family: &'a DeltaFamily,
    interrupt: &'a Interrupt,
    most_pieces: usize,
}

/// A tree that is the base of other trees.
#[derive(Default)]
struct BaseTree {
    row: u32,
    content: Vec<u8>,
    starts: EntryStarts,
    /// The next delta based on this tree.
    next: u32,
}

struct LinkWorker<'a> {
    shared: &'a LinkContext<'a>,
    inflater: Inflater,
    window: ReadWindow,
    delta: Vec<u8>,
    held: Vec<BaseTree>,
    held_bytes: usize,
    spare: Vec<BaseTree>,
    names: HashMap<Box<[u8]>, u32>,
    /// The ids to search, with the pieces to which they belong.
    ids: Vec<ObjectId>,
    waiting: Vec<u32>,
    arena: LinkArena,
    records: Vec<(u32, TreeRecord)>,
}

impl<'a> LinkWorker<'a> {
    fn new(shared: &'a LinkContext<'a>) -> Self {
        LinkWorker {
            shared,
            inflater: Inflater::new(),
            window: ReadWindow::default(),
            delta: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            spare: Vec::new(),
            names: HashMap::new(),
            ids: Vec::with_capacity(LOOKED_UP),
            waiting: Vec::with_capacity(LOOKED_UP),
            arena: LinkArena::default(),
            records: Vec::new(),
        }
    }

    /// Decodes a tree that is not a delta, and all deltas based on it.
    fn family(&mut self, root: u32) {
        self.tree(root);
        while let Some(base) = self.held.last_mut() {
            let next = base.next;
            if next == NONE || self.shared.interrupt.check().is_err() {
                self.let_go();
                continue;
            }
            base.next = self.shared.family.siblings[next as usize];
            self.tree(next);
        }
    }

    fn let_go(&mut self) {
        if let Some(held) = self.held.pop() {
            self.held_bytes -= held.content.len();
            self.spare.push(held);
        }
    }

    /// Decodes a tree. If the tree is a delta, its base must be the last held tree. The tree is
    /// held if deltas are based on it. If it cannot be read, it is unknown together with these
    /// deltas.
    fn tree(&mut self, position: u32) {
        let mut tree = self.spare.pop().unwrap_or_default();
        let first = self.arena.pieces.len();
        let is_read = self.decode(position, &mut tree);
        if is_read.is_none() {
            self.arena.pieces.truncate(first);
            self.ids.truncate(
                self.waiting
                    .partition_point(|piece| (*piece as usize) < first),
            );
            self.waiting.truncate(self.ids.len());
            self.spare.push(tree);
            return;
        }
        let record = TreeRecord {
            arena: 0,
            start: first as u32,
            len: (self.arena.pieces.len() - first) as u32,
            base: self.held.last().map_or(NONE, |base| base.row),
        };
        self.records.push((tree.row, record));
        if self.ids.len() >= LOOKED_UP {
            self.look_up();
        }
        tree.next = self.shared.family.children[position as usize];
        match tree.next {
            NONE => self.spare.push(tree),
            _ => {
                self.held_bytes += tree.content.len();
                self.held.push(tree);
            }
        }
    }

    fn decode(&mut self, position: u32, tree: &mut BaseTree) -> Option<()> {
        let pack = self.shared.pack;
        let (offset, row) = self.shared.order.get(PackPosition(position))?;
        tree.row = row.0;
        let entry = pack.entry_in(&mut self.window, offset).ok()?;
        let room = MOST_HELD.checked_sub(self.held_bytes)?.min(MOST_HELD / 2);
        if entry.size_bytes > room as u64 {
            return None;
        }
        let link = DeltaLink {
            offset,
            data_offset: offset.0 + entry.header_len as u64,
            size_bytes: entry.size_bytes,
        };
        let is_whole = matches!(entry.header, EntryHeader::Object(_));
        let (inflater, out) = match is_whole {
            true => (&mut self.inflater, &mut tree.content),
            false => (&mut self.inflater, &mut self.delta),
        };
        with_data(pack, &mut self.window, link, link.size_bytes, |data| {
            inflater.inflate(data, link.size_bytes, out)
        })
        .ok()?;
        let hash_len = pack.kind().len_in_bytes();
        if is_whole {
            let content = std::mem::take(&mut tree.content);
            let parsed = tree
                .starts
                .whole(&content, hash_len, |entry| self.add(entry));
            tree.content = content;
            parsed?;
        } else {
            let base = self.held.pop()?;
            let made = self.derive(&base, tree, hash_len, room);
            self.held.push(base);
            made?;
        }
        let is_little = self.arena.pieces.len() <= self.shared.most_pieces
            && self.arena.names.len() <= MOST_NAME_BYTES;
        is_little.then_some(())
    }

    /// Builds a tree with the delta that was inflated last.
    fn derive(
        &mut self,
        base: &BaseTree,
        tree: &mut BaseTree,
        hash_len: usize,
        room: usize,
    ) -> Option<()> {
        let sizes = delta::sizes(&self.delta).ok()?;
        if sizes.result_bytes > room as u64 {
            return None;
        }
        delta::apply(&base.content, &self.delta, &mut tree.content).ok()?;
        let delta = std::mem::take(&mut self.delta);
        let first = self.arena.pieces.len();
        let made =
            tree.starts.derived(
                &base.starts,
                &delta,
                &tree.content,
                hash_len,
                |run| match run {
                    TreePiece::Entry(entry) => self.add(entry),
                    TreePiece::Copied { first: from, count } => self.copied(first, from, count),
                },
            );
        self.delta = delta;
        made
    }

    /// Records a run of copied entries of the tree whose pieces begin at `start`.
    fn copied(&mut self, start: usize, first: u32, count: u32) {
        if let Some(StoredLink {
            tag: Tag::Copied,
            target,
            name,
        }) = self.arena.pieces[start..].last_mut()
            && *target + *name == first
        {
            *name += count;
            return;
        }
        self.arena.pieces.push(StoredLink {
            tag: Tag::Copied,
            target: first,
            name: count,
        });
    }

    fn add(&mut self, entry: RawEntry<'_>) {
        let name = self.name(entry.name);
        let id = ObjectId::from_bytes_or_panic(entry.id);
        let tag = match entry.mode {
            b"40000" | b"040000" => Tag::Tree,
            b"160000" => Tag::Submodule,
            _ => Tag::Blob,
        };
        let target = self.arena.outside.len() as u32;
        match tag {
            Tag::Submodule => self.arena.outside.push(id),
            _ => {
                self.waiting.push(self.arena.pieces.len() as u32);
                self.ids.push(id);
            }
        }
        self.arena.pieces.push(StoredLink { tag, target, name });
    }

    fn name(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.arena.ends.len() as u32;
        self.arena.names.extend_from_slice(name);
        self.arena.ends.push(self.arena.names.len() as u32);
        self.names.insert(name.into(), number);
        number
    }

    /// Searches the pending ids. An id that is not in the index is outside the pack.
    fn look_up(&mut self) {
        let (pieces, waiting) = (&mut self.arena.pieces, &self.waiting);
        for piece in waiting {
            pieces[*piece as usize].target = NONE;
        }
        let ids = self.ids.iter().map(|id| -> &pronto_hash::oid { id });
        // If the index cannot be read, all ids count as outside.
        let _ = self.shared.index.find_many(ids, |place, row| {
            pieces[waiting[place] as usize].target = row.0;
        });
        for (id, piece) in self.ids.drain(..).zip(self.waiting.drain(..)) {
            let piece = &mut pieces[piece as usize];
            if piece.target == NONE {
                piece.target = self.arena.outside.len() as u32;
                piece.tag = match piece.tag {
                    Tag::Tree => Tag::OutsideTree,
                    _ => Tag::OutsideBlob,
                };
                self.arena.outside.push(id);
            }
        }
    }
}
