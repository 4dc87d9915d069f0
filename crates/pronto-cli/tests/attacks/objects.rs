//! Writes trees and commits that git refuses to write.

use crate::pack::{self, Pack};
use crate::sandbox::Sandbox;

pub(crate) const FILE: &str = "100644";
pub(crate) const LINK: &str = "120000";
pub(crate) const DIRECTORY: &str = "40000";
pub(crate) const SUBMODULE: &str = "160000";

/// An entry of a tree.
pub(crate) struct Entry {
    pub(crate) mode: &'static str,
    pub(crate) name: Vec<u8>,
    pub(crate) id: [u8; 20],
}

/// Objects for one commit, in a pack.
pub(crate) struct Forge {
    pack: Pack,
}

impl Forge {
    pub(crate) fn new() -> Self {
        Forge { pack: Pack::new() }
    }

    fn add(&mut self, kind: u8, name: &str, content: &[u8]) -> [u8; 20] {
        let pack = std::mem::replace(&mut self.pack, Pack::new());
        self.pack = pack.object(kind, content);
        pack::id(name, content)
    }

    pub(crate) fn blob(&mut self, content: impl AsRef<[u8]>) -> [u8; 20] {
        self.add(pack::BLOB, "blob", content.as_ref())
    }

    /// Writes a tree with the entries in the given order.
    pub(crate) fn tree(&mut self, entries: &[Entry]) -> [u8; 20] {
        let mut content = Vec::new();
        for entry in entries {
            content.extend_from_slice(format!("{} ", entry.mode).as_bytes());
            content.extend_from_slice(&entry.name);
            content.push(0);
            content.extend_from_slice(&entry.id);
        }
        self.add(pack::TREE, "tree", &content)
    }

    pub(crate) fn commit(&mut self, tree: [u8; 20]) -> [u8; 20] {
        let text = format!(
            "tree {}\nauthor a <a@x> 1112911993 -0700\ncommitter c <c@x> 1112911993 -0700\n\nmade\n",
            pack::hex(&tree)
        );
        self.add(pack::COMMIT, "commit", text.as_bytes())
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.pack.finish()
    }
}

/// Creates an entry of a tree.
pub(crate) fn entry(mode: &'static str, name: impl AsRef<[u8]>, id: [u8; 20]) -> Entry {
    Entry {
        mode,
        name: name.as_ref().to_owned(),
        id,
    }
}

/// Creates the repository `server/evil`, whose branch `main` is a commit of the tree that `make`
/// builds. Returns the id of the commit.
pub(crate) fn evil(sandbox: &Sandbox, make: impl FnOnce(&mut Forge) -> [u8; 20]) -> String {
    let mut forge = Forge::new();
    let tree = make(&mut forge);
    let commit = pack::hex(&forge.commit(tree));
    sandbox.git("server", &["init", "-q", "-b", "main", "evil"]);
    let pack = forge.finish();
    sandbox.git_reading("server/evil", &["unpack-objects", "-q"], &pack);
    sandbox.git("server/evil", &["update-ref", "refs/heads/main", &commit]);
    commit
}
