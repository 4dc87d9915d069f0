//! The revisions that a bundle is made of, as the arguments of `git rev-list` name them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;

use crate::{Error, ErrorKind, Repository, Result};

/// A revision that a bundle includes, or whose history it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tip {
    /// The object.
    pub id: ObjectId,
    /// The name by which it was given.
    pub name: BString,
    /// Whether its history is left out.
    pub is_excluded: bool,
}

/// Parses `arguments`: names, `^NAME`, `A..B`, `--all`, `--branches`, `--tags` and `--not`.
/// Of several with one name the first counts.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if an argument is none of these, or names no object, which Git explains.
pub fn parse_tips(repository: &Repository, arguments: &[BString]) -> Result<Vec<Tip>> {
    let mut parser = Parser {
        repository,
        tips: Vec::new(),
        is_negated: false,
    };
    for argument in arguments {
        parser.add(argument.as_bstr())?;
    }
    let mut seen = HashSet::new();
    let mut tips = parser.tips;
    tips.retain(|tip| seen.insert(tip.name.clone()));
    Ok(tips)
}

struct Parser<'a> {
    repository: &'a Repository,
    tips: Vec<Tip>,
    is_negated: bool,
}

impl Parser<'_> {
    fn add(&mut self, argument: &BStr) -> Result<()> {
        match argument.as_bytes() {
            b"--not" => self.is_negated = !self.is_negated,
            b"--all" => {
                self.add_refs("refs/")?;
                let head = self.repository.refs().head()?.id();
                if let Some(id) = head {
                    self.push(id, "HEAD".into(), false);
                }
            }
            b"--branches" => self.add_refs("refs/heads/")?,
            b"--tags" => self.add_refs("refs/tags/")?,
            [b'-', ..] => return Err(unsupported(argument)),
            [b'^', name @ ..] => self.add_name(name.as_bstr(), true)?,
            name => match self.repository.split_range(name.as_bstr()) {
                Some((from, to, false)) => {
                    self.add_name(from, true)?;
                    self.add_name(to, false)?;
                }
                Some(_) => return Err(unsupported(argument)),
                None => self.add_name(argument, false)?,
            },
        }
        Ok(())
    }

    fn push(&mut self, id: ObjectId, name: BString, is_excluded: bool) {
        self.tips.push(Tip {
            id,
            name,
            is_excluded: is_excluded != self.is_negated,
        });
    }

    fn add_refs(&mut self, prefix: &str) -> Result<()> {
        let repository = self.repository;
        repository.refs().for_each(prefix, |found| {
            self.push(found.id, found.name.to_owned(), false);
            Ok(ControlFlow::Continue(()))
        })
    }

    fn add_name(&mut self, name: &BStr, is_excluded: bool) -> Result<()> {
        let has_suffix = ["^@", "^!", "^-"]
            .iter()
            .any(|part| name.contains_str(part));
        let here = self.repository.environment().current_dir();
        // Git refuses what could be a file.
        let is_file = here
            .join(crate::path::borrow(name))
            .symlink_metadata()
            .is_ok();
        if has_suffix || is_file {
            return Err(unsupported(name));
        }
        let found = self.repository.try_resolve(name, Default::default());
        match found.ok().flatten() {
            Some(id) => {
                self.push(id, name.to_owned(), is_excluded);
                Ok(())
            }
            None => Err(unsupported(name)),
        }
    }
}

fn unsupported(argument: &BStr) -> Error {
    let message = format!("cannot make a bundle of revision '{argument}'");
    Error::new(ErrorKind::Unsupported, message)
}
