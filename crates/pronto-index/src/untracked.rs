//! The untracked cache (`UNTR` extension): the untracked names of each directory, with the stat
//! data of the directory and the id of its ignore file.

mod names;

use crate::bytes::{push_varint, take, take_u32, take_until, take_varint};
use crate::ewah::Bitmap;
use crate::nesting::{self, Nesting};
use crate::stat::Stat;
use bstr::{BStr, ByteSlice};
use pronto_hash::{Kind, ObjectId};
use std::borrow::Cow;
use std::sync::OnceLock;

pub use names::NameList;

/// The nesting depth above which the untracked cache is discarded; it only saves work.
const DEEPEST: usize = 1024;

/// The cached state of an ignore file that applies to the whole worktree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcludeFile {
    /// The stat data of the file.
    pub stat: Stat,
    /// The object id of the content; the null id if the file does not exist.
    pub id: ObjectId,
}

/// The untracked cache. Data that were read from a file are borrowed. `Send + Sync`.
#[derive(Clone, Debug)]
pub struct UntrackedCache<'a> {
    /// The systems and worktrees for which the cache is valid: strings that each end with a NUL.
    /// Only the first string is compared.
    pub ident: Cow<'a, [u8]>,
    /// The state of `info/exclude`.
    pub info_exclude: ExcludeFile,
    /// The state of the file of `core.excludesFile`.
    pub excludes_file: ExcludeFile,
    /// The mode of the directory walk: [`NORMAL`](Self::NORMAL) or [`ALL`](Self::ALL).
    pub flags: u32,
    /// The name of the ignore file in each directory (`.gitignore`).
    pub exclude_per_directory: Cow<'a, BStr>,
    /// The directories in the order of the file: each directory precedes all directories below, and
    /// the top directory is first. Empty if no directory is known.
    directories: Vec<UntrackedDirectory<'a>>,
    /// The index of subdirectories, built at the first lookup by name.
    children: OnceLock<Children>,
}

/// The subdirectories of each directory, sorted for lookups by name.
#[derive(Clone, Debug)]
struct Children {
    /// The start of the positions of each directory in `positions`; they end at the next start.
    starts: Vec<u32>,
    positions: Vec<u32>,
}

/// The cached state of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrackedDirectory<'a> {
    /// The name of the directory in its parent; empty for the top directory.
    pub name: Cow<'a, BStr>,
    /// The untracked names in the directory; names of directories end with a slash.
    pub untracked: NameList<'a>,
    /// Whether the cached data are valid: no index entry that affects them has changed since.
    pub is_valid: bool,
    /// Whether the walk only checked that the directory contains an untracked file.
    pub check_only: bool,
    /// The stat data of the directory; zeros if `is_valid` is false.
    pub stat: Stat,
    /// The object id of the ignore file of the directory; the null id if there is none.
    pub exclude_id: ObjectId,
    /// The position after all directories below.
    end: u32,
}

impl<'a> UntrackedCache<'a> {
    /// The flags for `--untracked-files=normal`: an untracked directory that is not empty is listed
    /// as a whole.
    pub const NORMAL: u32 = 6;
    /// The flags for `--untracked-files=all`: each untracked file is listed.
    pub const ALL: u32 = 0;

    /// Returns an empty cache for the system and worktree `ident` (without a NUL).
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

    /// Parses the extension; `None` if the extension is malformed, because the cache only saves
    /// work. Costs one pass, and a constant number of allocations.
    pub fn parse(mut data: &'a [u8], kind: Kind) -> Option<UntrackedCache<'a>> {
        // The extension ends with a NUL.
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
        // Without directories, the count is the NUL that was removed.
        if data.is_empty() {
            return Some(cache);
        }
        let count = usize::try_from(take_varint(&mut data)?).ok()?;
        cache.directories = parse_directories(&mut data, count, kind)?;
        data.is_empty().then_some(cache)
    }

    /// Appends the encoded content of the extension as Git writes it.
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
            let nothing = NameList::default();
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

    /// Returns which directories are written as valid. The file stores `check_only` only for valid
    /// directories; for an invalid one, Git would list all names in it. So all directories above an
    /// invalid one are written as invalid, too.
    fn writable(&self) -> Vec<bool> {
        let mut valid: Vec<bool> = self.directories.iter().map(|it| it.is_valid).collect();
        for at in (0..valid.len()).rev() {
            // As in Git, invalidates all parents up to the top directory.
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

    /// Returns whether no directory is known.
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty()
    }

    /// Returns the directory at `position`; the top directory is at zero.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    pub fn directory(&self, position: usize) -> &UntrackedDirectory<'a> {
        &self.directories[position]
    }

    /// Returns the position after the last directory below the directory at `position`.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    pub fn end(&self, position: usize) -> usize {
        self.directories[position].end as usize
    }

    /// Returns the positions of the direct subdirectories of the directory at `position`, in order
    /// of names.
    pub fn children(&self, position: usize) -> impl Iterator<Item = usize> + '_ {
        let end = |at: usize| self.directories.get(at).map_or(0, |it| it.end as usize);
        nesting::children(position, end)
    }

    /// Returns the position of the direct subdirectory `name` of the directory at `position`.
    /// Logarithmic in the number of subdirectories; the first call is linear in all directories.
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

    /// Invalidates the directories whose state depends on the index entry at `path`, because the
    /// entry is added or removed.
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

    /// Invalidates the directory at `position`, and all directories below if `below`.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
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

    /// Returns an empty cache with the same settings, to be filled directory by directory. Each
    /// position that [`open`](Self::open) returns must be [closed](Self::close), in reverse order.
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

    /// Adds `directory` below the directory that was opened last. The subdirectories of a directory
    /// must be added in order of names.
    pub fn open(&mut self, directory: UntrackedDirectory<'a>) -> usize {
        self.children = OnceLock::new();
        self.directories.push(directory);
        self.directories.len() - 1
    }

    /// Ends the directory at `position`: directories that are added later are not below it.
    ///
    /// # Panics
    /// Panics if `position` is not less than [`len`](Self::len).
    pub fn close(&mut self, position: usize) {
        self.children = OnceLock::new();
        self.directories[position].end = self.directories.len() as u32;
    }

    /// Adds the directory at `position` of `other` and all directories below.
    ///
    /// # Panics
    /// Panics if `position` is not less than the length of `other`.
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

/// Compares the cached data, and ignores the index of subdirectories.
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
    /// Returns a directory without cached data.
    pub fn unknown(name: Cow<'a, BStr>, kind: Kind) -> UntrackedDirectory<'a> {
        UntrackedDirectory {
            name,
            untracked: NameList::default(),
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
    // Each directory needs at least three bytes.
    if count == 0 || count > data.len() / 3 {
        return None;
    }
    let mut directories: Vec<UntrackedDirectory<'a>> = Vec::with_capacity(count);
    let mut nesting = Nesting::default();
    for at in 0..count {
        let (directory, children) = parse_directory(data, kind)?;
        // Git sorts the subdirectories of a directory and searches them in this order.
        if let Some((_, Some(before))) = nesting.above()
            && directories[before].name >= directory.name
        {
            return None;
        }
        directories.push(directory);
        if !nesting.push(at, children, DEEPEST, |ended| {
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

/// Parses one directory. Returns the number of its direct subdirectories, too.
fn parse_directory<'a>(data: &mut &'a [u8], kind: Kind) -> Option<(UntrackedDirectory<'a>, u64)> {
    let count = usize::try_from(take_varint(data)?).ok()?;
    let children = take_varint(data)?;
    let name = take_until(data, 0)?.as_bstr();
    // Each name needs at least two bytes.
    if count > data.len() {
        return None;
    }
    let mut directory = UntrackedDirectory::unknown(Cow::Borrowed(name), kind);
    directory.check_only = false;
    directory.untracked = NameList::take(data, count)?;
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
