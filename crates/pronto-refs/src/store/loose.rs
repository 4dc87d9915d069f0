//! Reads the files of loose refs.

use std::path::Path;

use bstr::{BStr, BString};
use pronto_hash::{Kind, ObjectId};
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::{RefName, RefTarget, name};
use pronto_config::{Error, ErrorKind, Result, path};

/// The largest file of a loose ref in bytes, with a symref target as long as a path can be.
const MAX_FILE_SIZE: usize = 4352;

/// The contents of the file of a loose ref, before the target of a symref is validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LooseRefContents {
    /// The id of the object to which the ref points.
    Object(ObjectId),
    /// The text of a symref, which should be the name of another ref.
    Symbolic(BString),
    /// A symbolic link to a file that does not exist. The link hides a packed ref of the same name
    /// from lookups, but not from lists.
    DanglingLink,
}

impl LooseRefContents {
    /// Returns the contents as the target of ref `name`; `None` for a dangling symbolic link.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a symref holds text that is not a ref name.
    pub(super) fn target(self, name: &BStr) -> Result<Option<RefTarget>> {
        match self {
            LooseRefContents::Object(id) => Ok(Some(RefTarget::Object(id))),
            LooseRefContents::Symbolic(text) => match RefName::new(text) {
                Ok(target) => Ok(Some(RefTarget::Symbolic(target))),
                Err(_) => Err(super::broken(name)),
            },
            LooseRefContents::DanglingLink => Ok(None),
        }
    }
}

/// Reads the file of the loose ref `name`; `None` if the file does not exist. Costs three system
/// calls.
///
/// # Errors
/// Fails with [`ErrorKind::Reference`] if the file cannot be read, or contains neither an object id
/// nor a symref.
pub(super) fn read(file: &Path, name: &BStr, hash: Kind) -> Result<Option<LooseRefContents>> {
    // The buffer is not cleared, because most of it is never read.
    let mut content = Vec::with_capacity(MAX_FILE_SIZE);
    let mut started = read_start(file, OFlags::NOFOLLOW, &mut content);
    if started == Err(Errno::LOOP) {
        if let Some(target) = link_target(file) {
            return Ok(Some(target));
        }
        // As in Git, a symbolic link to any other file is read through.
        started = read_start(file, OFlags::empty(), &mut content);
        if started == Err(Errno::NOENT) {
            return Ok(Some(LooseRefContents::DanglingLink));
        }
    }
    match started {
        Ok(_) => {}
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ISDIR) => return Ok(None),
        Err(error) => {
            let reason = pronto_io::error::reason(&error.into());
            let message = format!("unable to resolve reference '{name}': {reason}");
            return Err(Error::new(ErrorKind::Reference, message));
        }
    }
    match parse(&content, hash) {
        Some(contents) => Ok(Some(contents)),
        None => Err(super::broken(name)),
    }
}

fn read_start(file: &Path, links: OFlags, content: &mut Vec<u8>) -> Result<usize, Errno> {
    // With `NONBLOCK`, opening a FIFO instead of a regular file does not block.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | links;
    let file = rustix::fs::open(file, flags, Mode::empty())?;
    rustix::io::retry_on_intr(|| rustix::io::read(&file, spare_capacity(content)))
}

/// Reads the old form of a symref: a symbolic link whose text is the name of another ref.
fn link_target(file: &Path) -> Option<LooseRefContents> {
    let target = std::fs::read_link(file).ok()?;
    let text = path::as_bytes(&target);
    let is_name = text.starts_with(b"refs/") && name::is_valid(text, name::Form::Full);
    is_name.then(|| LooseRefContents::Symbolic(text.to_owned()))
}

fn parse(content: &[u8], hash: Kind) -> Option<LooseRefContents> {
    if let Some(target) = content.strip_prefix(b"ref:") {
        let target = target.trim_ascii();
        return Some(LooseRefContents::Symbolic(target.into()));
    }
    let length = hash.len_in_hex();
    let id = pronto_hash::parse_hex(content.get(..length)?).ok()?;
    let ends = content.get(length).is_none_or(u8::is_ascii_whitespace);
    ends.then_some(LooseRefContents::Object(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_hold_an_id_or_a_name() {
        let id = "0123456789012345678901234567890123456789";
        let read = |text: &str| parse(text.as_bytes(), Kind::Sha1);
        let object = pronto_hash::parse_hex(id.as_bytes()).expect("an id");
        assert_eq!(read(id), Some(LooseRefContents::Object(object)));
        assert_eq!(
            read(&format!("{id}\n")),
            Some(LooseRefContents::Object(object))
        );
        assert_eq!(
            read("ref: refs/heads/a\n"),
            Some(LooseRefContents::Symbolic("refs/heads/a".into()))
        );
        assert_eq!(read(&format!("{id}0")), None);
        assert_eq!(read(&id[1..]), None);
        assert_eq!(read(""), None);
    }
}
