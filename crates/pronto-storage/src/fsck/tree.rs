//! Checks of trees.

use std::cmp::Ordering;

use bstr::ByteSlice;
use pronto_hash::{Kind, ObjectId};

use super::{Findings, Message, names};

const SYMLINK: u32 = 0o120_000;
const TYPE_BITS: u32 = 0o170_000;
const DIRECTORY: u32 = 0o040_000;

/// One entry of a tree.
struct Entry<'a> {
    mode: u32,
    is_padded: bool,
    name: &'a [u8],
    id: &'a [u8],
}

/// Removes the first entry from `rest`. Fails with the reason if the entry is malformed.
fn take<'a>(rest: &mut &'a [u8], id_len: usize) -> Result<Entry<'a>, &'static str> {
    let content = *rest;
    if content.len() < id_len + 3 || content[content.len() - id_len - 1] != 0 {
        return Err("too-short tree object");
    }
    let malformed = "malformed mode in tree entry";
    let space = content.find_byte(b' ').ok_or(malformed)?;
    let digits = &content[..space];
    if digits.is_empty() || !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return Err(malformed);
    }
    let mode = digits
        .iter()
        .fold(0u32, |mode, digit| mode << 3 | u32::from(digit - b'0'));
    let after = &content[space + 1..];
    let end = after.find_byte(0).ok_or("too-short tree object")?;
    if end == 0 {
        return Err("empty filename in tree entry");
    }
    let (name, after) = (&after[..end], &after[end + 1..]);
    let (id, after) = after
        .split_at_checked(id_len)
        .ok_or("too-short tree file")?;
    *rest = after;
    Ok(Entry {
        mode,
        is_padded: digits[0] == b'0',
        name,
        id,
    })
}

/// The findings in all entries of one tree.
#[derive(Default)]
struct Flaws {
    null_id: bool,
    slash: bool,
    dot: bool,
    dot_dot: bool,
    dot_git: bool,
    padded_mode: bool,
    bad_mode: bool,
    duplicate: bool,
    unsorted: bool,
    large_name: bool,
}

pub(super) fn check(content: &[u8], hash: Kind, findings: &mut Findings<'_>) {
    let mut flaws = Flaws::default();
    let mut rest = content;
    let mut before: Option<Entry<'_>> = None;
    // The files whose names a later directory could repeat.
    let mut files: Vec<&[u8]> = Vec::new();
    while !rest.is_empty() {
        let entry = match take(&mut rest, hash.len_in_bytes()) {
            Ok(entry) => entry,
            Err(reason) => {
                findings.remark(reason);
                findings.report(Message::BadTree, "cannot be parsed as a tree");
                if before.is_none() {
                    return;
                }
                break;
            }
        };
        check_entry(&entry, &mut flaws, findings);
        if let Some(before) = &before {
            check_order(before, &entry, &mut files, &mut flaws);
        }
        before = Some(entry);
    }
    report(&flaws, findings);
}

fn report(flaws: &Flaws, findings: &mut Findings<'_>) {
    let all = [
        (
            flaws.null_id,
            Message::NullSha1,
            "contains entries pointing to null sha1",
        ),
        (
            flaws.slash,
            Message::FullPathname,
            "contains full pathnames",
        ),
        (flaws.dot, Message::HasDot, "contains '.'"),
        (flaws.dot_dot, Message::HasDotdot, "contains '..'"),
        (flaws.dot_git, Message::HasDotgit, "contains '.git'"),
        (
            flaws.padded_mode,
            Message::ZeroPaddedFilemode,
            "contains zero-padded file modes",
        ),
        (
            flaws.bad_mode,
            Message::BadFilemode,
            "contains bad file modes",
        ),
        (
            flaws.duplicate,
            Message::DuplicateEntries,
            "contains duplicate file entries",
        ),
        (
            flaws.unsorted,
            Message::TreeNotSorted,
            "not properly sorted",
        ),
        (
            flaws.large_name,
            Message::LargePathname,
            "contains excessively large pathname",
        ),
    ];
    for (_, message, text) in all.into_iter().filter(|(found, ..)| *found) {
        findings.report(message, text);
    }
}

fn check_entry(entry: &Entry<'_>, flaws: &mut Flaws, findings: &mut Findings<'_>) {
    let name = entry.name;
    flaws.large_name |= findings.levels.is_too_long(name.len());
    let is_symlink = entry.mode & TYPE_BITS == SYMLINK;
    flaws.null_id |= entry.id.iter().all(|byte| *byte == 0);
    flaws.slash |= name.contains(&b'/');
    flaws.dot |= name == b".";
    flaws.dot_dot |= name == b"..";
    flaws.padded_mode |= entry.is_padded;
    flaws.bad_mode |= !matches!(
        entry.mode,
        0o100_755 | 0o100_644 | SYMLINK | DIRECTORY | 0o160_000
    );
    if !names::may_be_special(name) {
        return;
    }
    flaws.dot_git |= names::is_dot_git(name);
    check_special(entry, name, is_symlink, findings);
    // On some file systems a backslash also separates directories.
    let mut rest = name;
    while let Some(at) = rest.find_byte(b'\\') {
        rest = &rest[at + 1..];
        flaws.dot_git |= names::is_dot_git_on_ntfs(rest);
        if names::MODULES.is_on_ntfs(rest) {
            modules(entry, is_symlink, findings);
        }
    }
}

fn check_special(entry: &Entry<'_>, name: &[u8], is_symlink: bool, findings: &mut Findings<'_>) {
    if names::MODULES.is(name) {
        modules(entry, is_symlink, findings);
    }
    if names::ATTRIBUTES.is(name) {
        match is_symlink {
            true => {
                findings.report(Message::GitattributesSymlink, ".gitattributes is a symlink");
            }
            false => findings.attributes.extend(ObjectId::try_from(entry.id)),
        }
    }
    if is_symlink && names::IGNORE.is(name) {
        findings.report(Message::GitignoreSymlink, ".gitignore is a symlink");
    }
    if is_symlink && names::MAILMAP.is(name) {
        findings.report(Message::MailmapSymlink, ".mailmap is a symlink");
    }
}

fn modules(entry: &Entry<'_>, is_symlink: bool, findings: &mut Findings<'_>) {
    match is_symlink {
        true => {
            let text = ".gitmodules is a symbolic link";
            findings.report(Message::GitmodulesSymlink, text);
        }
        false => findings.modules.extend(ObjectId::try_from(entry.id)),
    }
}

/// Compares two consecutive entries in the order of trees, in which names of directories end with a
/// slash.
fn check_order<'a>(
    before: &Entry<'a>,
    entry: &Entry<'a>,
    files: &mut Vec<&'a [u8]>,
    flaws: &mut Flaws,
) {
    let len = before.name.len().min(entry.name.len());
    match before.name[..len].cmp(&entry.name[..len]) {
        Ordering::Less => return,
        Ordering::Greater => {
            flaws.unsorted = true;
            return;
        }
        Ordering::Equal => {}
    }
    let next = |entry: &Entry<'_>| match entry.name.get(len) {
        Some(byte) => *byte,
        None if entry.mode & TYPE_BITS == DIRECTORY => b'/',
        None => 0,
    };
    if before.name.len() == entry.name.len() {
        flaws.duplicate = true;
        return;
    }
    let (first, second) = (next(before), next(entry));
    if first == 0 && second < b'/' {
        files.push(before.name);
    } else if second == b'/' && first < b'/' {
        while let Some(file) = files.pop() {
            let Some(behind) = entry.name.strip_prefix(file) else {
                continue;
            };
            match behind.first() {
                None => {
                    flaws.duplicate = true;
                    return;
                }
                Some(byte) if *byte < b'/' => {
                    files.push(file);
                    break;
                }
                Some(_) => {}
            }
        }
    }
    flaws.unsorted |= first >= second;
}
