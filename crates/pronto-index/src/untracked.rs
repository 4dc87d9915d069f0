//! The `UNTR` extension: the untracked names of each directory, and the stat data of the directory
//! and its ignore file at that time.

mod names;

use crate::bytes::{push_varint, take, take_u32, take_until, take_varint};
use crate::ewah::Bitmap;
use crate::nesting::{self, Nesting};
use crate::stat::Stat;
use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use std::borrow::Cow;
use std::sync::OnceLock;

pub use names::Names;

/// Deeper caches are dropped: they only save work.
const DEEPEST: usize = 1024;

/// The entry of the cache for an ignore file that holds for the whole worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcludeFile {
    /// The stat data of the file.
    pub stat: Stat,
    /// Its content; null if there is no such file.
    pub id: ObjectId,
}

/// The untracked cache. What was read from a file is borrowed from there. `Send + Sync`.
#[derive(Clone, Debug)]
pub struct UntrackedCache<'a> {
    /// The places in which the cache may be used: strings that each end with a NUL, of which the
    /// first counts.
    pub ident: Cow<'a, [u8]>,
    /// `info/exclude`.
    pub info_exclude: ExcludeFile,
    /// `core.excludesFile`.
    pub excludes_file: ExcludeFile,
    /// The mode of the walk: [`NORMAL`](Self::NORMAL) or [`ALL`](Self::ALL).
    pub flags: u32,
    /// The name of the ignore files of directories.
    pub exclude_per_directory: Cow<'a, BStr>,
    /// In the order of the file: a directory, then all below it. The top comes first; empty if
    /// nothing is known.
    directories: Vec<UntrackedDirectory<'a>>,
    /// Built at the first lookup by name.
    children: OnceLock<Children>,
}

/// The directories directly below each, so that one is found by its name.
#[derive(Clone, Debug)]
struct Children {
    /// The start of each directory's positions in `positions`; they end at the start of the next.
    starts: Vec<u32>,
    positions: Vec<u32>,
}

/// The entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrackedDirectory<'a> {
    /// Its name within its parent; empty for the top.
    pub name: Cow<'a, BStr>,
    /// Untracked names in it; those of directories end with a slash.
    pub untracked: Names<'a>,
    /// Whether the data below were verified since the index last changed here.
    pub is_valid: bool,
    /// Whether the walk only checked that there is something untracked in it.
    pub check_only: bool,
    /// The stat data of the directory; zeros unless it is valid.
    pub stat: Stat,
    /// Its ignore file; null if there was none.
    pub exclude_id: ObjectId,
    /// The position after all directories below.
    end: u32,
}

impl<'a> UntrackedCache<'a> {
    /// Directories without tracked files are named as a whole, if there is something in them.
    pub const NORMAL: u32 = 6;
    /// Each file is named.
    pub const ALL: u32 = 0;

    /// Creates an empty cache for the place that `ident` states (without a NUL).
    pub fn new(ident: &[u8], flags: u32, kind: Kind) -> UntrackedCache<'a> {
        let nothing = ExcludeFile {
            stat: Stat::default(),
            id: kind.null(),
        };
        UntrackedCache {
            ident: [ident, b"\0"].concat().into(),
            info_exclude: nothing,
            excludes_file: nothing,
            flags,
            exclude_per_directory: Cow::Borrowed(b".gitignore".as_bstr()),
            directories: Vec::new(),
            children: OnceLock::new(),
        }
    }

    /// Reads the extension. `None` if it is damaged: it only saves work. One pass; a few
    /// allocations for all of it, none for each directory.
    pub fn parse(mut data: &'a [u8], kind: Kind) -> Option<UntrackedCache<'a>> {
        // A NUL guards the end, whatever comes before.
        data = data.strip_suffix(b"\0")?;
        let ident_len = usize::try_from(take_varint(&mut data)?).ok()?;
        let ident = take(&mut data, ident_len)?;
        let stats = [take_stat(&mut data)?, take_stat(&mut data)?];
        let flags = take_u32(&mut data)?;
        let ids = [take_id(&mut data, kind)?, take_id(&mut data, kind)?];
        let mut cache = UntrackedCache {
            ident: ident.into(),
            info_exclude: ExcludeFile {
                stat: stats[0],
                id: ids[0],
            },
            excludes_file: ExcludeFile {
                stat: stats[1],
                id: ids[1],
            },
            flags,
            exclude_per_directory: Cow::Borrowed(b"".as_bstr()),
            directories: Vec::new(),
            children: OnceLock::new(),
        };
        cache.exclude_per_directory = Cow::Borrowed(take_until(&mut data, 0)?.as_bstr());
        // Without a directory the count is the NUL that was taken off.
        if data.is_empty() {
            return Some(cache);
        }
        let count = usize::try_from(take_varint(&mut data)?).ok()?;
        cache.directories = parse_directories(&mut data, count, kind)?;
        data.is_empty().then_some(cache)
    }

    /// Appends the extension's content as Git writes it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        push_varint(out, self.ident.len() as u64);
        out.extend_from_slice(&self.ident);
        push_stat(out, &self.info_exclude.stat);
        push_stat(out, &self.excludes_file.stat);
        out.extend_from_slice(&self.flags.to_be_bytes());
        out.extend_from_slice(self.info_exclude.id.as_slice());
        out.extend_from_slice(self.excludes_file.id.as_slice());
        out.extend_from_slice(&self.exclude_per_directory);
        out.push(0);
        push_varint(out, self.directories.len() as u64);
        if self.directories.is_empty() {
            return;
        }
        let valid = self.writable();
        for (at, directory) in self.directories.iter().enumerate() {
            let nothing = Names::default();
            let untracked = match valid[at] {
                true => &directory.untracked,
                false => &nothing,
            };
            push_varint(out, untracked.len() as u64);
            push_varint(out, self.children(at).count() as u64);
            out.extend_from_slice(&directory.name);
            out.push(0);
            out.extend_from_slice(untracked.as_bytes());
        }
        let all = &self.directories;
        let positions = |wanted: &dyn Fn(usize) -> bool| {
            let positions = (0..all.len()).filter(|&at| wanted(at));
            Bitmap::new(positions.map(|at| at as u32))
        };
        positions(&|at| valid[at]).encode(out);
        positions(&|at| valid[at] && all[at].check_only).encode(out);
        positions(&|at| !all[at].exclude_id.is_null()).encode(out);
        for (directory, _) in all.iter().zip(&valid).filter(|(_, valid)| **valid) {
            push_stat(out, &directory.stat);
        }
        for directory in &self.directories {
            if !directory.exclude_id.is_null() {
                out.extend_from_slice(directory.exclude_id.as_slice());
            }
        }
        out.push(0);
    }

    /// Which directories are written as valid. One that is not loses the mark that it was only
    /// asked about, and Git would name all that is in it: so those above it must be read again.
    fn writable(&self) -> Vec<bool> {
        let mut valid: Vec<bool> = self.directories.iter().map(|it| it.is_valid).collect();
        for at in (0..valid.len()).rev() {
            // As Git itself forgets: up to the top.
            if self.flags != Self::ALL && self.children(at).any(|child| !valid[child]) {
                valid[at] = false;
            }
        }
        valid
    }

    /// Returns the number of known directories.
    pub fn len(&self) -> usize {
        self.directories.len()
    }

    /// Whether no directory is known.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// The directory at `position`; the top is at zero.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn directory(&self, position: usize) -> &UntrackedDirectory<'a> {
        &self.directories[position]
    }

    /// The position after the last directory below the one at `position`.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn end(&self, position: usize) -> usize {
        self.directories[position].end as usize
    }

    /// The positions of the directories directly below the one at `position`, in the order of
    /// their names.
    pub fn children(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        let end = |at: usize| self.directories.get(at).map_or(0, |it| it.end as usize);
        nesting::children(position, end)
    }

    /// The position of the directory called `name` directly below the one at `position`.
    /// Logarithmic in how many there are; the first call is linear in all directories.
    pub fn child(&self, position: usize, name: &BStr) -> Option<usize> {
        let children = self.children.get_or_init(|| self.find_children());
        let (start, end) = (
            *children.starts.get(position)? as usize,
            *children.starts.get(position + 1)? as usize,
        );
        let below = &children.positions[start..end];
        let found = below.binary_search_by(|&child| {
            let other: &BStr = &self.directories[child as usize].name;
            other.cmp(name)
        });
        found.ok().map(|at| below[at] as usize)
    }

    fn find_children(&self) -> Children {
        let mut children = Children {
            starts: Vec::with_capacity(self.len() + 1),
            positions: Vec::with_capacity(self.len()),
        };
        for at in 0..self.len() {
            children.starts.push(children.positions.len() as u32);
            let below = self.children(at).map(|child| child as u32);
            children.positions.extend(below);
        }
        children.starts.push(children.positions.len() as u32);
        children
    }

    /// Forgets what is known about the directories that an entry at `path` matters for, because
    /// it comes or goes.
    pub fn invalidate(&mut self, path: &BStr) {
        let Some((mut at, mut rest)) = (!self.is_empty()).then_some((0, path)) else {
            return;
        };
        loop {
            let slash = rest.find_byte(b'/');
            if slash.is_none() || self.flags != Self::ALL {
                self.directories[at].is_valid = false;
            }
            let Some(slash) = slash else { return };
            let Some(child) = self.child(at, rest[..slash].as_bstr()) else {
                return;
            };
            (at, rest) = (child, rest[slash + 1..].as_bstr());
        }
    }

    /// Forgets what is known about the directory at `position` and, with `below`, about all below.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn invalidate_directory(&mut self, position: usize, below: bool) {
        let end = if below {
            self.end(position)
        } else {
            position + 1
        };
        for directory in &mut self.directories[position..end] {
            directory.is_valid = false;
        }
    }

    /// Starts on a cache with the same settings, directory by directory. The positions that are
    /// returned by [`open`](Self::open) are to be [closed](Self::close) in reverse.
    #[must_use]
    pub fn successor(&self) -> UntrackedCache<'a> {
        UntrackedCache {
            directories: Vec::with_capacity(self.len()),
            ..self.clone_settings()
        }
    }

    fn clone_settings(&self) -> UntrackedCache<'a> {
        UntrackedCache {
            ident: self.ident.clone(),
            info_exclude: self.info_exclude,
            excludes_file: self.excludes_file,
            flags: self.flags,
            exclude_per_directory: self.exclude_per_directory.clone(),
            directories: Vec::new(),
            children: OnceLock::new(),
        }
    }

    /// Adds `directory` below the one that was opened last. Those of one parent come in the order
    /// of their names.
    pub fn open(&mut self, directory: UntrackedDirectory<'a>) -> usize {
        self.children = OnceLock::new();
        self.directories.push(directory);
        self.directories.len() - 1
    }

    /// Ends the directory at `position`: what is added then is no longer below it.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn close(&mut self, position: usize) {
        self.children = OnceLock::new();
        self.directories[position].end = self.directories.len() as u32;
    }

    /// Adds the directory at `position` of `other` and all below it.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn copy(&mut self, other: &UntrackedCache<'a>, position: usize) {
        self.children = OnceLock::new();
        let (start, end) = (self.directories.len(), other.end(position));
        self.directories
            .extend_from_slice(&other.directories[position..end]);
        for directory in &mut self.directories[start..] {
            directory.end = (directory.end as usize - position + start) as u32;
        }
    }
}

/// Whether the same is known: how it is looked up does not count.
impl PartialEq for UntrackedCache<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.ident == other.ident
            && self.info_exclude == other.info_exclude
            && self.excludes_file == other.excludes_file
            && self.flags == other.flags
            && self.exclude_per_directory == other.exclude_per_directory
            && self.directories == other.directories
    }
}

impl Eq for UntrackedCache<'_> {}

impl<'a> UntrackedDirectory<'a> {
    /// A directory about which nothing is known, not even whether there are tracked files in it.
    pub fn unknown(name: Cow<'a, BStr>, kind: Kind) -> UntrackedDirectory<'a> {
        UntrackedDirectory {
            name,
            untracked: Names::default(),
            is_valid: false,
            check_only: true,
            stat: Stat::default(),
            exclude_id: kind.null(),
            end: 0,
        }
    }
}

fn parse_directories<'a>(
    data: &mut &'a [u8],
    count: usize,
    kind: Kind,
) -> Option<Vec<UntrackedDirectory<'a>>> {
    // Each takes three bytes or more.
    if count == 0 || count > data.len() / 3 {
        return None;
    }
    let mut directories: Vec<UntrackedDirectory<'a>> = Vec::with_capacity(count);
    let mut nesting = Nesting::default();
    for at in 0..count {
        let (directory, children) = parse_directory(data, kind)?;
        // Git sorts those of one directory and searches them in this order.
        if let Some((_, Some(before))) = nesting.above()
            && directories[before].name >= directory.name
        {
            return None;
        }
        directories.push(directory);
        if !nesting.push((at, children), DEEPEST, |ended| {
            directories[ended].end = at as u32 + 1;
        }) {
            return None;
        }
        if nesting.is_complete() {
            break;
        }
    }
    if !nesting.is_complete() || directories.len() != count {
        return None;
    }
    let valid = Bitmap::parse(data, count).ok()?;
    let check_only = Bitmap::parse(data, count).ok()?;
    let with_id = Bitmap::parse(data, count).ok()?;
    for at in check_only.iter() {
        directories[at].check_only = true;
    }
    for at in valid.iter() {
        directories[at].stat = take_stat(data)?;
        directories[at].is_valid = true;
    }
    for at in with_id.iter() {
        directories[at].exclude_id = take_id(data, kind)?;
    }
    Some(directories)
}

/// One directory, and how many are directly below.
fn parse_directory<'a>(data: &mut &'a [u8], kind: Kind) -> Option<(UntrackedDirectory<'a>, u64)> {
    let count = usize::try_from(take_varint(data)?).ok()?;
    let children = take_varint(data)?;
    let name = take_until(data, 0)?.as_bstr();
    // Each name takes two bytes or more.
    if count > data.len() {
        return None;
    }
    let mut directory = UntrackedDirectory::unknown(Cow::Borrowed(name), kind);
    directory.check_only = false;
    directory.untracked = Names::take(data, count)?;
    Some((directory, children))
}

fn take_id(data: &mut &[u8], kind: Kind) -> Option<ObjectId> {
    Some(ObjectId::from_bytes_or_panic(take(
        data,
        kind.len_in_bytes(),
    )?))
}

fn take_stat(data: &mut &[u8]) -> Option<Stat> {
    let bytes = take(data, 4 * Stat::FIELDS)?;
    let mut fields = [0; Stat::FIELDS];
    for (field, bytes) in fields.iter_mut().zip(bytes.as_chunks().0) {
        *field = u32::from_be_bytes(*bytes);
    }
    Some(Stat::from_fields(fields))
}

fn push_stat(out: &mut Vec<u8>, stat: &Stat) {
    for field in stat.fields() {
        out.extend_from_slice(&field.to_be_bytes());
    }
}
