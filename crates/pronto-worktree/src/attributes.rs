//! Attributes of paths from `.gitattributes` and similar files.
//!
//! An [`Attributes`] value is created once for an operation and a selection of attributes. Every thread
//! has its own [`AttributeStack`], which shares the files that were read. Rules that do not affect the selected
//! attributes are dropped after parsing, so that attributes for diffs, for example, cost a checkout
//! nothing.
//!
//! The precedence, from highest to lowest, is: `info/attributes`; the `.gitattributes` of the directory
//! of the path, then those of its parents up to the top; `core.attributesFile`; the system file; the
//! built-in macro `binary` (gitattributes(5)). Within a file the last matching line wins.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bstr::{BStr, BString, ByteSlice};

use crate::Error;
use pronto_io::short::Short as _;
use rules::{AttributeLine, AttributeNumbers, AttributeRules, AttributeSlot};

mod names;
mod once;
mod rules;
mod source;

pub use names::Mentioned;
pub use once::Once;
pub use rules::Flaw;
pub use source::{AttributesByDirectory, FromIndex, FromWorktree, Growing, ReadAttributes};

/// The state of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AttributeState {
    /// No rule sets the attribute, or `!attr` resets it.
    #[default]
    Unspecified,
    /// `attr`.
    Set,
    /// `-attr`.
    Unset,
    /// `attr=value`.
    Value(Arc<BString>),
}

impl AttributeState {
    /// Returns the value, if the state has one.
    pub fn value(&self) -> Option<&BStr> {
        match self {
            AttributeState::Value(value) => Some(value.as_bstr()),
            _ => None,
        }
    }
}

/// The attributes files outside of the directories of the worktree.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The files that apply to every repository, lowest precedence first: the system file, then
    /// `core.attributesFile`. Missing files are skipped.
    pub global: Vec<PathBuf>,
    /// The file `info/attributes` of the repository.
    pub info: Option<PathBuf>,
    /// Match patterns without regard to case (`core.ignoreCase`).
    pub ignore_case: bool,
}

/// The attributes for one operation. Clones share the parsed files.
#[derive(Clone)]
pub struct Attributes(Arc<AttributesCache>);

struct AttributesCache {
    names: AttributeNumbers,
    /// The lists of the global files, lowest precedence first.
    global: Vec<Arc<AttributeRules>>,
    top: Option<Arc<AttributeRules>>,
    info: Option<Arc<AttributeRules>>,
    ignore_case: bool,
    source: Box<dyn ReadAttributes>,
    /// The lists by directory; `None` for a directory without matching rules.
    read: RwLock<HashMap<BString, Option<Arc<AttributeRules>>>>,
    /// Ignored lines, and the file of each.
    flaws: Mutex<Vec<(BString, Flaw)>>,
}

impl Attributes {
    /// Reads the global files and the attributes of the top directory. `selection` names the attributes
    /// that will be queried.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Patterns` if a file exists and cannot be read. As in Git, malformed lines
    /// are ignored.
    pub fn new(
        selection: &[&str],
        files: &Files,
        source: Box<dyn ReadAttributes>,
    ) -> Result<Self, Error> {
        let mut flaws = Vec::new();
        let mut parse = |bytes: Vec<u8>, file: &BStr| {
            let mut found = Vec::new();
            let lines = rules::parse(&bytes, true, &mut found);
            flaws.extend(found.into_iter().map(|flaw| (file.to_owned(), flaw)));
            lines
        };
        let mut definitions = vec![rules::built_in()];
        for path in &files.global {
            let bytes = source::read_global(path)?;
            definitions.extend(bytes.map(|bytes| parse(bytes, name_of(path))));
        }
        let top = source.read(b"".as_bstr())?;
        let top = top.map(|bytes| parse(bytes, source::NAME.as_bstr()));
        let info = match &files.info {
            Some(path) => source::read_global(path)?.map(|bytes| parse(bytes, name_of(path))),
            None => None,
        };
        let weakest_first = definitions.iter().chain(&top).chain(&info);
        let names = AttributeNumbers::new(selection, weakest_first.flat_map(|lines| lines.iter()));
        let compile = |lines: Vec<AttributeLine>| {
            let list = AttributeRules::new(BString::default(), lines, &names);
            (!list.is_empty()).then(|| Arc::new(list))
        };
        let global = definitions.into_iter().filter_map(compile).collect();
        Ok(Attributes(Arc::new(AttributesCache {
            global,
            top: top.and_then(compile),
            info: info.and_then(compile),
            ignore_case: files.ignore_case,
            source,
            read: RwLock::default(),
            flaws: Mutex::new(flaws),
            names,
        })))
    }

    /// Returns the lines and files that were ignored since the last call, each with the name of its
    /// file.
    pub fn take_flaws(&self) -> Vec<(BString, Flaw)> {
        self.0.take_flaws()
    }

    /// Creates a stack for queries by one thread.
    pub fn stack(&self) -> AttributeStack {
        AttributeStack {
            states: vec![AttributeState::Unspecified; self.0.names.selected()],
            slots: vec![None; self.0.names.len()],
            shared: Arc::clone(&self.0),
            directory: BString::default(),
            levels: Vec::new(),
        }
    }
}

/// Returns the path of the attributes file of a directory.
fn file_in(directory: &BStr) -> BString {
    match directory.is_empty() {
        true => source::NAME.into(),
        false => [directory.as_bytes(), b"/", source::NAME].concat().into(),
    }
}

/// Returns the name of a file in messages.
fn name_of(path: &Path) -> &BStr {
    path.as_os_str().as_encoded_bytes().as_bstr()
}

impl std::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attributes").finish_non_exhaustive()
    }
}

impl AttributesCache {
    fn take_flaws(&self) -> Vec<(BString, Flaw)> {
        let links = self.source.take_links().into_iter();
        let links = links.map(|directory| (file_in(directory.as_bstr()), Flaw::Link));
        let mut flaws = self.flaws.lock().unwrap_or_else(PoisonError::into_inner);
        links.chain(std::mem::take(&mut *flaws)).collect()
    }

    fn list(&self, directory: &BStr) -> Result<Option<Arc<AttributeRules>>, Error> {
        let read = self.read.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(directory) {
            return Ok(known.clone());
        }
        drop(read);
        let lines = self.source.read(directory)?;
        let list = lines
            .map(|bytes| {
                let mut flaws = Vec::new();
                let lines = rules::parse(&bytes, false, &mut flaws);
                let file = file_in(directory);
                let mut all = self.flaws.lock().unwrap_or_else(PoisonError::into_inner);
                all.extend(flaws.into_iter().map(|flaw| (file.clone(), flaw)));
                drop(all);
                AttributeRules::new(directory.to_owned(), lines, &self.names)
            })
            .filter(|list| !list.is_empty())
            .map(Arc::new);
        let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
        read.insert(directory.to_owned(), list.clone());
        Ok(list)
    }
}

/// Queries the attributes of paths, one after another. Consecutive paths in the same directory are
/// cheapest.
pub struct AttributeStack {
    shared: Arc<AttributesCache>,
    directory: BString,
    /// The end of each component of `directory`, and the rules of that directory.
    levels: Vec<(usize, Option<Arc<AttributeRules>>)>,
    /// The states of all attributes and macros that the rules of the current path have set so far.
    slots: Vec<AttributeSlot>,
    states: Vec<AttributeState>,
}

impl AttributeStack {
    /// Returns the lines that any stack of these attributes has ignored since the last call, each with
    /// the name of its file.
    pub fn take_flaws(&self) -> Vec<(BString, Flaw)> {
        self.shared.take_flaws()
    }

    /// Returns the state of each selected attribute for `path`, in the order of the selection. A path
    /// with a slash at its end is a directory, otherwise a file.
    ///
    /// # Errors
    /// Fails with `ErrorKind::Patterns` if an attributes file of a directory of the path cannot be
    /// read.
    pub fn states(&mut self, path: &BStr) -> Result<&[AttributeState], Error> {
        let (path, is_directory) = match path.strip_suffix(b"/") {
            Some(path) => (path.as_bstr(), true),
            None => (path, false),
        };
        let base = path.last_position_of(b'/').map_or(0, |slash| slash + 1);
        self.enter(path[..base.saturating_sub(1)].as_bstr())?;
        let shared = &self.shared;
        let strongest_first = shared
            .info
            .iter()
            .chain(
                self.levels
                    .iter()
                    .rev()
                    .filter_map(|(_, list)| list.as_ref()),
            )
            .chain(&shared.top)
            .chain(shared.global.iter().rev());
        for list in strongest_first {
            list.apply(
                path,
                is_directory,
                base,
                shared.ignore_case,
                &shared.names,
                &mut self.slots,
            );
        }
        for (state, slot) in self.states.iter_mut().zip(&mut self.slots) {
            *state = slot.take().unwrap_or_default();
        }
        self.slots.fill(None);
        Ok(&self.states)
    }

    fn enter(&mut self, directory: &BStr) -> Result<(), Error> {
        if directory == self.directory {
            return Ok(());
        }
        while let Some((end, _)) = self.levels.last() {
            let shared = directory.len() >= *end
                && directory[..*end] == self.directory[..*end]
                && directory.get(*end).is_none_or(|next| *next == b'/');
            if shared {
                break;
            }
            self.levels.pop();
        }
        let mut from = self.levels.last().map_or(0, |(end, _)| end + 1);
        self.directory.clear();
        self.directory
            .extend_from_slice(&directory[..from.saturating_sub(1)]);
        while from < directory.len() {
            let end = directory[from..]
                .position_of(b'/')
                .map_or(directory.len(), |slash| from + slash);
            let list = self.shared.list(directory[..end].as_bstr())?;
            self.levels.push((end, list));
            self.directory.clear();
            self.directory.extend_from_slice(&directory[..end]);
            from = end + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(files: &[(&str, &str)], selection: &[&str]) -> AttributeStack {
        let read: AttributesByDirectory = files
            .iter()
            .map(|(directory, text)| (BString::from(*directory), text.as_bytes().to_vec()))
            .collect();
        Attributes::new(selection, &Files::default(), Box::new(read))
            .expect("nothing to read fails")
            .stack()
    }

    fn show(stack: &mut AttributeStack, path: &str) -> Vec<String> {
        let states = stack.states(path.into()).expect("nothing fails");
        let show = |state: &AttributeState| match state {
            AttributeState::Unspecified => "-".to_owned(),
            AttributeState::Set => "set".to_owned(),
            AttributeState::Unset => "unset".to_owned(),
            AttributeState::Value(value) => value.to_string(),
        };
        states.iter().map(show).collect()
    }

    #[test]
    fn deeper_and_later_rules_win() {
        let mut stack = stack(
            &[
                ("", "* text=auto eol=lf\n*.bin binary\n*.c diff=cpp\n"),
                ("a/b", "*.c eol=crlf\n*.bin text\n/x !eol\n"),
            ],
            &["text", "eol"],
        );
        assert_eq!(show(&mut stack, "f"), ["auto", "lf"]);
        assert_eq!(show(&mut stack, "f.bin"), ["unset", "lf"]);
        assert_eq!(show(&mut stack, "a/b/f.c"), ["auto", "crlf"]);
        assert_eq!(show(&mut stack, "a/b/f.bin"), ["set", "lf"]);
        assert_eq!(show(&mut stack, "a/b/x"), ["auto", "-"]);
        assert_eq!(show(&mut stack, "a/b/c/x"), ["auto", "lf"]);
        assert_eq!(show(&mut stack, "a/bb/f.c"), ["auto", "lf"]);
    }

    #[test]
    fn macros_expand_where_they_are_set_and_only_the_top_defines_them() {
        let mut stack = stack(
            &[
                (
                    "",
                    "[attr]blob -text filter=x\n*.a blob\n*.b -blob\n*.a text\n",
                ),
                ("d", "[attr]other text\n* other\n"),
            ],
            &["text", "filter"],
        );
        assert_eq!(show(&mut stack, "f.a"), ["set", "x"]);
        assert_eq!(show(&mut stack, "f.b"), ["-", "-"]);
        assert_eq!(show(&mut stack, "d/f"), ["-", "-"]);
    }
}
