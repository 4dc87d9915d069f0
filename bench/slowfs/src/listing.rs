//! Directory listings in the form that the kernel reads.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use fuser::{Errno, FileHandle, FileType, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};

use crate::filesystem::Slow;

/// Inode numbers, file types and names.
pub(crate) type InodeListing = Vec<(INodeNo, FileType, OsString)>;

impl Slow {
    /// Lists the directory `inode`.
    pub(crate) fn list(&self, inode: INodeNo) -> Result<FileHandle, Errno> {
        let path = self.nodes.path(inode)?;
        let mut entries = vec![
            (inode, FileType::Directory, OsString::from(".")),
            (inode, FileType::Directory, OsString::from("..")),
        ];
        for entry in std::fs::read_dir(&path)? {
            let entry = entry?;
            let kind = FileType::from_std(entry.file_type()?).unwrap_or(FileType::RegularFile);
            let number = std::os::unix::fs::DirEntryExt::ino(&entry);
            entries.push((INodeNo(self.nodes.number(number)), kind, entry.file_name()));
        }
        Ok(self.listings.insert(entries))
    }

    /// Adds names from `offset` until the reply is full.
    pub(crate) fn give_names(
        &self,
        listing: &InodeListing,
        offset: u64,
        reply: &mut ReplyDirectory,
    ) {
        for (slot, (inode, kind, name)) in listing.iter().enumerate().skip(offset as usize) {
            if reply.add(*inode, slot as u64 + 1, *kind, name) {
                break;
            }
        }
    }

    /// Adds names of the directory `inode` with their attributes, from `offset` until the reply is
    /// full.
    pub(crate) fn give_attributes(
        &self,
        inode: INodeNo,
        listing: &InodeListing,
        offset: u64,
        reply: &mut ReplyDirectoryPlus,
    ) {
        let cache = &self.model.cache;
        let Ok(directory) = self.nodes.path(inode) else {
            return;
        };
        for (slot, (number, _, name)) in listing.iter().enumerate().skip(offset as usize) {
            let found = match name.as_bytes() {
                b"." | b".." => self.attributes(inode).map(|found| (found, Generation(0))),
                // The entry has its stored name, so the rules for names do not apply.
                _ => self.entry(directory.join(name)),
            };
            // Files that were removed since the listing are skipped.
            let Ok((attributes, generation)) = found else {
                continue;
            };
            let next = slot as u64 + 1;
            if reply.add(*number, next, name, cache, &attributes, generation) {
                break;
            }
        }
    }
}
