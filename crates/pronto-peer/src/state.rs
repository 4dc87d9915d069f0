//! The position of a transfer from a peer, stored between sessions.

use std::path::Path;

use bstr::ByteSlice as _;
use pronto_hash::ObjectId;
use pronto_io::error::IoContext as _;
use pronto_netsync::message::{MARK_BYTES, Resume};

use pronto::{ErrorKind, Result};

/// The position of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TransferState {
    pub(super) resume: Option<Resume>,
    /// The tips of the commits in the quarantine: commits that are not parents of other commits
    /// there.
    pub(super) heads: Vec<ObjectId>,
    /// The existing commits that are parents of commits in the quarantine.
    pub(super) edges: Vec<ObjectId>,
}

impl TransferState {
    /// Reads the state. Returns `None` if it is missing or invalid, in which case objects are sent
    /// again.
    pub(super) fn read(path: &Path) -> Option<TransferState> {
        let content = std::fs::read(path).ok()?;
        let mut lines = content.lines();
        let objects = lines.next()?.strip_prefix(b"objects ")?;
        let objects = objects.to_str().ok()?.parse().ok()?;
        // The mark has as many hexadecimal digits as a SHA-256 id.
        let mark = pronto_hash::parse_hex(lines.next()?.strip_prefix(b"mark ")?).ok()?;
        let mut state = TransferState {
            resume: Some(Resume {
                objects,
                mark: <[u8; MARK_BYTES]>::try_from(mark.as_slice()).ok()?,
            }),
            ..TransferState::default()
        };
        for line in lines {
            let (list, hex) = match line.strip_prefix(b"head ") {
                Some(hex) => (&mut state.heads, hex),
                None => (&mut state.edges, line.strip_prefix(b"edge ")?),
            };
            list.push(pronto_hash::parse_hex(hex).ok()?);
        }
        Some(state)
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let Some(resume) = self.resume else {
            return Ok(());
        };
        let mark = resume.mark.iter().map(|byte| format!("{byte:02x}"));
        let mut text = format!(
            "objects {}\nmark {}\n",
            resume.objects,
            mark.collect::<String>()
        );
        for (word, ids) in [("head", &self.heads), ("edge", &self.edges)] {
            for id in ids {
                text.push_str(&format!("{word} {id}\n"));
            }
        }
        let new = path.with_extension("new");
        std::fs::write(&new, text).context(ErrorKind::Io, "cannot write", &new)?;
        std::fs::rename(&new, path).context(ErrorKind::Io, "cannot rename", &new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else() {
        let path = std::env::temp_dir().join(format!("pronto-state-{}", std::process::id()));
        let id = |digit: &str| pronto_hash::parse_hex(digit.repeat(40).as_bytes()).expect("an id");
        let state = TransferState {
            resume: Some(Resume {
                objects: 7,
                mark: [3; MARK_BYTES],
            }),
            heads: vec![id("a"), id("b")],
            edges: vec![id("c")],
        };
        state.write(&path).expect("it is written");
        assert_eq!(TransferState::read(&path).as_ref(), Some(&state));
        let text = std::fs::read_to_string(&path).expect("text");
        for broken in [
            "",
            "objects x",
            "objects 7\nmark 12\n",
            &text.replace("edge", "else"),
        ] {
            std::fs::write(&path, broken).expect("a file");
            assert_eq!(TransferState::read(&path), None, "{broken}");
        }
        std::fs::remove_file(&path).expect("it goes");
    }
}
