//! The files that are flushed to disk: `core.fsync` and `core.fsyncMethod`.

use bstr::{BStr, BString};
use pronto_io::sync::SyncMethod;

use crate::Result;
use crate::config::Config;

/// A component of `core.fsync`: a kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Component {
    /// Loose objects (`loose-object`).
    LooseObject,
    /// Packs (`pack`).
    Pack,
    /// Files that belong to packs (`pack-metadata`): pack indexes, reverse indexes, bitmaps,
    /// multi-pack-indexes.
    PackMetadata,
    /// Commit-graphs (`commit-graph`).
    CommitGraph,
    /// The index (`index`).
    Index,
    /// Refs (`reference`).
    Reference,
}

impl Component {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

const OBJECTS: u8 = Component::LooseObject.bit() | Component::Pack.bit();
const DERIVED: u8 = Component::PackMetadata.bit() | Component::CommitGraph.bit();
const COMMITTED: u8 = OBJECTS | Component::Reference.bit();
const ADDED: u8 = COMMITTED | Component::Index.bit();
const DEFAULT: u8 = Component::Pack.bit() | DERIVED;

/// The names in `core.fsync`, with their components.
const NAMES: [(&str, u8); 12] = [
    ("loose-object", Component::LooseObject.bit()),
    ("pack", Component::Pack.bit()),
    ("pack-metadata", Component::PackMetadata.bit()),
    ("commit-graph", Component::CommitGraph.bit()),
    ("index", Component::Index.bit()),
    ("reference", Component::Reference.bit()),
    ("objects", OBJECTS),
    ("derived-metadata", DERIVED),
    ("committed", COMMITTED),
    ("added", ADDED),
    ("all", ADDED | DERIVED),
    ("default", DEFAULT),
];

/// The components that are flushed, and the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fsync {
    components: u8,
    method: SyncMethod,
}

impl Default for Fsync {
    fn default() -> Self {
        Fsync {
            components: DEFAULT,
            method: SyncMethod::Flush,
        }
    }
}

impl Fsync {
    /// Returns the durability settings of `config` (`core.fsync`, `core.fsyncMethod`,
    /// `core.fsyncObjectFiles`). Unknown names in `core.fsync` have no effect.
    ///
    /// # Errors
    /// Fails with `ErrorKind::ConfigValue` if a value does not have the type of its key.
    pub fn configured(config: &Config) -> Result<Fsync> {
        let mut fsync = Fsync::default();
        if let Some(list) = config.string("core.fsync")? {
            fsync.components = parse(list).0;
        }
        if config.bool_or("core.fsyncobjectfiles", false)? {
            fsync.components |= Component::LooseObject.bit();
        }
        // The method `batch` is replaced by a flush of each file, which is at least as durable.
        if config
            .string("core.fsyncmethod")?
            .is_some_and(|method| method == "writeout-only")
        {
            fsync.method = SyncMethod::WriteOut;
        }
        Ok(fsync)
    }

    /// Returns the unknown component names in `list`, a value of `core.fsync`.
    pub fn unknown_components(list: &BStr) -> Vec<BString> {
        parse(list).1
    }

    /// Returns the flush method for files of `component`.
    pub fn of(self, component: Component) -> SyncMethod {
        match self.components & component.bit() {
            0 => SyncMethod::No,
            _ => self.method,
        }
    }
}

/// Returns the components in a list of names, and the unknown names. A component that is both named
/// and negated with `-` is enabled, independent of the order.
fn parse(list: &[u8]) -> (u8, Vec<BString>) {
    let (mut base, mut on, mut off) = (DEFAULT, 0, 0);
    let mut unknown = Vec::new();
    let words = list.split(|byte| b", \t\r\n".contains(byte));
    for word in words.filter(|word| !word.is_empty()) {
        if word == b"none" {
            base = 0;
            continue;
        }
        let (name, side) = match word.strip_prefix(b"-") {
            Some(name) => (name, &mut off),
            None => (word, &mut on),
        };
        match NAMES.iter().find(|(known, _)| known.as_bytes() == name) {
            Some((_, bits)) => *side |= bits,
            None => unknown.push(name.into()),
        }
    }
    ((base & !off) | on, unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(list: &str) -> u8 {
        parse(list.as_bytes()).0
    }

    #[test]
    fn names_add_to_the_default_or_take_from_it() {
        assert_eq!(on(""), DEFAULT);
        assert_eq!(on("none"), 0);
        assert_eq!(on("reference"), DEFAULT | Component::Reference.bit());
        assert_eq!(on("none,reference"), Component::Reference.bit());
        assert_eq!(on("reference none"), Component::Reference.bit());
        assert_eq!(on("-derived-metadata"), Component::Pack.bit());
        assert_eq!(on("-pack,pack"), DEFAULT);
        assert_eq!(on("all,-index"), ADDED | DERIVED);
        assert_eq!(on("all"), 0b11_1111);
    }

    #[test]
    fn unknown_names_are_told() {
        let (components, unknown) = parse(b"none,index,Reference,-x,-");
        assert_eq!(components, Component::Index.bit());
        assert_eq!(unknown, ["Reference", "x", ""]);
    }
}
