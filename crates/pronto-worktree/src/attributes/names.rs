//! The names of all attributes (`git check-attr --all`).

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};

use super::rules::{self, AttributeLine};
use super::{Files, ReadAttributes, source};
use crate::Error;

/// The names of all attributes in attributes files, in the order in which they occur: first those of
/// the files that apply everywhere, then those of the directories that are [entered](Mentioned::enter).
#[derive(Debug, Default)]
pub struct Mentioned {
    names: Vec<BString>,
    known: HashSet<BString>,
    entered: HashSet<BString>,
}

impl Mentioned {
    /// Collects the attributes of the built-in macro, of `files` and of the top directory.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Patterns`](crate::ErrorKind::Patterns) if a file exists and cannot be
    /// read.
    pub fn new(files: &Files, top: &dyn ReadAttributes) -> Result<Self, Error> {
        let mut mentioned = Mentioned::default();
        mentioned.add(&rules::built_in());
        for path in &files.global {
            mentioned.read(source::read_global(path)?, true);
        }
        mentioned.read(top.read(b"".as_bstr())?, true);
        if let Some(info) = &files.info {
            mentioned.read(source::read_global(info)?, true);
        }
        Ok(mentioned)
    }

    /// Returns whether `directory` and its parents were entered, so that no file has to be read.
    pub fn knows(&self, directory: &BStr) -> bool {
        directory.is_empty() || self.entered.contains(directory)
    }

    /// Adds the attributes of `directory` and of its parents. `directory` has no slash at its end and
    /// is not the top.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Patterns`](crate::ErrorKind::Patterns) if a file exists and cannot be
    /// read.
    pub fn enter(&mut self, directory: &BStr, source: &dyn ReadAttributes) -> Result<(), Error> {
        if self.knows(directory) {
            return Ok(());
        }
        for end in directory.find_iter("/").chain([directory.len()]) {
            let above = directory[..end].as_bstr();
            if self.entered.insert(above.to_owned()) {
                self.read(source.read(above)?, false);
            }
        }
        Ok(())
    }

    /// Returns all names collected so far.
    pub fn names(&self) -> &[BString] {
        &self.names
    }

    fn read(&mut self, content: Option<Vec<u8>>, macros: bool) {
        if let Some(content) = content {
            self.add(&rules::parse(&content, macros, &mut Vec::new()));
        }
    }

    fn add(&mut self, lines: &[AttributeLine]) {
        for name in lines.iter().flat_map(AttributeLine::names) {
            if self.known.insert(name.to_owned()) {
                self.names.push(name.to_owned());
            }
        }
    }
}
