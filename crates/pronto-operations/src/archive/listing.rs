//! Lists the entries of an archive: walks the tree, and applies attributes and pathspecs.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_io::watch::Watch;
use pronto_object::TreeEntries;
use pronto_odb::Store;
use pronto_worktree::attributes::{
    AttributeStack, AttributeState, Attributes, AttributesByDirectory, FromIndex, FromWorktree,
    ReadAttributes,
};
use pronto_worktree::filter::{self, PathConversion, Settings};
use pronto_worktree::pathspec::Pathspec;

use super::{Entry, MemberKind, Options, check, unsupported};
use crate::config::Config;
use crate::errors::{from_odb, from_worktree};
use crate::{Error, ErrorKind, Repository, Result, attributes};
use pronto_io::dir::Directory;
use pronto_io::error::IoContext;

/// The limit for the nesting of trees.
const MAX_DEPTH: usize = 2048;

/// The attributes that only archives use. The attributes for conversions follow them.
const OWN_ATTRIBUTES: [&str; 3] = ["export-ignore", "export-subst", "diff"];

/// The memory for an entry of a tree, without its path.
const BYTES_PER_ENTRY: u64 = size_of::<ListedEntry>() as u64;

/// All entries of a tree, each directory before its contents.
pub(super) struct ArchiveListing {
    found: Vec<ListedEntry>,
}

struct ListedEntry {
    /// The path, without a slash at the end.
    path: BString,
    mode: u32,
    id: ObjectId,
}

fn malformed_tree() -> Error {
    Error::new(ErrorKind::Corrupt, "malformed tree")
}

/// A tree that is being read. The levels are a stack on the heap.
struct TreeCursor {
    content: Vec<u8>,
    /// The position of the next entry.
    at: usize,
    path: BString,
}

impl ListedEntry {
    fn is_tree(&self) -> bool {
        self.mode & 0o170_000 == 0o040_000
    }

    fn kind(&self) -> MemberKind {
        match self.mode & 0o170_000 {
            0o100_000 => MemberKind::File {
                is_executable: self.mode & 0o100 != 0,
            },
            0o120_000 => MemberKind::Link,
            _ => MemberKind::Directory,
        }
    }
}

impl ArchiveListing {
    /// Walks the tree `top`. Costs memory for all paths, limited to `most_bytes`, because a few
    /// nested trees can have a huge number of entries.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tree is missing, malformed or nested too deeply, with
    /// [`ErrorKind::Refused`] if there are too many entries, with `ErrorKind::Interrupted` if the
    /// operation is interrupted, and with `ErrorKind::Unsupported` if a tree of a partial clone is
    /// missing.
    pub(super) fn read(
        repository: &Repository,
        top: ObjectId,
        most_bytes: u64,
        watch: &Watch<'_>,
    ) -> Result<Self> {
        let (mut found, mut bytes) = (Vec::new(), 0_u64);
        let mut levels = vec![level(repository, &top, BString::default())?];
        let id_length = repository.object_hash().len_in_bytes();
        while let Some(level_now) = levels.last_mut() {
            check(watch)?;
            let mut entries = TreeEntries::new(&level_now.content[level_now.at..], id_length);
            let mut below = None;
            for entry in entries.by_ref() {
                let (Some(mode), Some(id)) = (entry.mode_bits(), entry.object_id()) else {
                    return Err(malformed_tree());
                };
                let path = [level_now.path.as_slice(), entry.name].concat();
                bytes += path.len() as u64 + BYTES_PER_ENTRY;
                if bytes > most_bytes {
                    let message = format!("the tree {top} has too many entries for an archive");
                    return Err(Error::new(ErrorKind::Refused, message));
                }
                found.push(ListedEntry {
                    path: path.into(),
                    mode,
                    id,
                });
                if found.last().is_some_and(ListedEntry::is_tree) {
                    below = Some(id);
                    break;
                }
            }
            if below.is_none() && !entries.rest().is_empty() {
                return Err(malformed_tree());
            }
            level_now.at = level_now.content.len() - entries.rest().len();
            match (below, found.last()) {
                (Some(id), Some(tree)) => {
                    let path = [tree.path.as_slice(), b"/"].concat();
                    levels.push(level(repository, &id, path.into())?);
                }
                _ => drop(levels.pop()),
            }
            if levels.len() > MAX_DEPTH {
                let message = "exceeded maximum allowed tree depth";
                return Err(Error::new(ErrorKind::Object, message));
            }
        }
        Ok(ArchiveListing { found })
    }

    /// Selects the entries by attributes and pathspecs. A directory is selected if an entry below
    /// it is.
    ///
    /// # Errors
    /// Fails if attributes cannot be read, a pathspec matches no file, or the operation is
    /// interrupted.
    pub(super) fn select(
        &self,
        repository: &Repository,
        options: &Options,
        settings: &Settings,
        watch: &Watch<'_>,
    ) -> Result<Vec<Entry>> {
        let here = match options.is_served {
            true => BString::default(),
            false => repository.prefix_or_empty(),
        };
        let selection = PathSelection::parse(repository, options, here.as_bstr())?;
        selection.check(&self.found, here.as_bstr())?;
        let attributes = self.attributes(repository, options)?;
        let mut choice = Choice {
            repository,
            settings,
            here: here.as_bstr(),
            stack: attributes.stack(),
            waiting: Vec::new(),
            ignored: None,
            entries: Vec::new(),
        };
        for found in &self.found {
            check(watch)?;
            let is_file = !found.is_tree();
            let is_directory = found.kind() == MemberKind::Directory;
            if is_file && !selection.takes(found.path.as_bstr(), is_directory) {
                continue;
            }
            choice.take(found)?;
        }
        let mut entries = choice.entries;
        if !here.is_empty() {
            entries.retain(|entry| entry.path.starts_with(&here) && entry.path != here);
            for entry in &mut entries {
                entry.path.drain(..here.len());
            }
        }
        attributes::notify_of_flaws(repository, &attributes);
        Ok(entries)
    }

    fn attributes(&self, repository: &Repository, options: &Options) -> Result<Attributes> {
        let files = repository.attribute_files()?;
        let source: Box<dyn ReadAttributes> =
            match (options.worktree_attributes, repository.work_tree()) {
                (false, _) => {
                    let blobs = self.found.iter().filter(|found| !found.is_tree());
                    let blobs = blobs.map(|found| (found.path.as_bstr(), found.id));
                    Box::new(FromIndex {
                        blobs: FromIndex::<Store>::find(blobs),
                        objects: repository.objects()?.clone(),
                        worktree: None,
                    })
                }
                (true, Some(path)) => {
                    let top = Directory::open(path).context(ErrorKind::Io, "cannot open", path)?;
                    Box::new(FromWorktree::new(top, AttributesByDirectory::new()))
                }
                (true, None) => Box::new(AttributesByDirectory::new()),
            };
        let names = [&OWN_ATTRIBUTES[..], &filter::ATTRIBUTES].concat();
        Attributes::new(&names, &files, source).map_err(from_worktree)
    }
}

fn level(repository: &Repository, tree: &ObjectId, path: BString) -> Result<TreeCursor> {
    let mut content = Vec::new();
    let objects = repository.objects()?;
    match objects.find(tree, &mut content).map_err(from_odb)? {
        Some(Kind::Tree) => Ok(TreeCursor {
            content,
            at: 0,
            path,
        }),
        None if repository.has_promisor()? => Err(unsupported(
            "archiving a tree that is missing in a partial clone",
        )),
        _ => {
            let message = format!("unable to read tree ({tree})");
            Err(Error::new(ErrorKind::Object, message))
        }
    }
}

/// The pathspecs of a call.
struct PathSelection(Pathspec);

impl PathSelection {
    /// Parses the pathspecs. If there are none, the current directory `here` is selected.
    fn parse(repository: &Repository, options: &Options, here: &BStr) -> Result<Self> {
        let dot = BString::from(".");
        let mut specs: Vec<&BStr> = options
            .pathspecs
            .iter()
            .map(|spec| spec.as_bstr())
            .collect();
        if specs.is_empty() && !here.is_empty() {
            specs.push(dot.as_bstr());
        }
        repository.pathspec_below_here(specs).map(PathSelection)
    }

    /// Checks that each pathspec matches a file, and only files below the current directory `here`.
    fn check(&self, all: &[ListedEntry], here: &BStr) -> Result<()> {
        let pathspec = &self.0;
        let mut outside = vec![false; pathspec.len()];
        let mut inside = outside.clone();
        for found in all.iter().filter(|_| !pathspec.is_empty()) {
            let is_below = found.path.starts_with(here);
            if !is_below && found.is_tree() {
                continue;
            }
            let seen = if is_below { &mut inside } else { &mut outside };
            pathspec.mark(found.path.as_bstr(), seen);
            if found.kind() == MemberKind::Directory {
                let directory = [found.path.as_slice(), b"/"].concat();
                pathspec.mark(directory.as_bstr(), seen);
            }
        }
        for at in (0..pathspec.len()).filter(|at| !pathspec.excludes(*at)) {
            let spec = pathspec.original(at);
            let problem = match (outside[at], inside[at]) {
                (true, _) => "matches files outside the current directory",
                (false, false) if here.is_empty() || spec != "." => "did not match any files",
                _ => continue,
            };
            let message = format!("pathspec '{spec}' {problem}");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Ok(())
    }

    /// Returns whether the file or submodule at `path` is selected.
    fn takes(&self, path: &BStr, is_directory: bool) -> bool {
        self.0.is_empty() || self.0.matches(path, is_directory)
    }
}

/// The state of selecting entries.
struct Choice<'a> {
    repository: &'a Repository,
    settings: &'a Settings,
    /// The current directory.
    here: &'a BStr,
    stack: AttributeStack,
    /// The leading directories of the current entry that are not selected yet.
    waiting: Vec<Entry>,
    /// The ignored directory whose content is skipped, with a slash at the end.
    ignored: Option<BString>,
    entries: Vec<Entry>,
}

impl Choice<'_> {
    fn states(&mut self, path: &BStr) -> Result<PathAttributes> {
        let states = self.stack.states(path).map_err(from_worktree)?;
        let [ignore, substitute, diff, conversion @ ..] = states else {
            let message = format!("cannot look up the attributes of '{path}'");
            return Err(Error::new(ErrorKind::Worktree, message));
        };
        Ok(PathAttributes {
            is_ignored: *ignore == AttributeState::Set,
            substitutes: *substitute == AttributeState::Set,
            is_binary: is_binary(self.repository.config(), diff)?,
            conversion: self.settings.conversion(conversion),
        })
    }

    fn take(&mut self, found: &ListedEntry) -> Result<()> {
        let path = found.path.as_bstr();
        if let Some(ignored) = &self.ignored {
            if path.starts_with(ignored) {
                return Ok(());
            }
            self.ignored = None;
        }
        self.waiting
            .retain(|directory| path.starts_with(directory.path.as_slice()));
        let kind = found.kind();
        let mut asked = found.path.clone();
        if kind == MemberKind::Directory {
            asked.push(b'/');
        }
        let states = self.states(asked.as_bstr())?;
        if states.is_ignored {
            self.ignored = found.is_tree().then_some(asked);
            return Ok(());
        }
        let substitutes = states.substitutes && matches!(kind, MemberKind::File { .. });
        // As in Git, the other attributes are looked up by the path in the archive.
        let states = match asked.strip_prefix(self.here.as_bytes()) {
            Some(b"") => return Ok(()),
            Some(shown) if !self.here.is_empty() => self.states(shown.as_bstr())?,
            _ => states,
        };
        let entry = Entry {
            kind,
            id: found.id,
            substitutes,
            is_binary: states.is_binary,
            conversion: match kind {
                MemberKind::File { .. } => states.conversion,
                _ => PathConversion::NONE,
            },
            path: asked,
        };
        if found.is_tree() {
            self.waiting.push(entry);
        } else {
            self.entries.append(&mut self.waiting);
            self.entries.push(entry);
        }
        Ok(())
    }
}

/// The attributes of a path.
struct PathAttributes {
    /// The attribute `export-ignore`.
    is_ignored: bool,
    /// The attribute `export-subst`.
    substitutes: bool,
    is_binary: Option<bool>,
    conversion: PathConversion,
}

/// Returns whether the attribute `diff` marks the content as binary or text.
fn is_binary(config: &Config, diff: &AttributeState) -> Result<Option<bool>> {
    Ok(match diff {
        AttributeState::Set => Some(false),
        AttributeState::Unset => Some(true),
        AttributeState::Unspecified => None,
        AttributeState::Value(driver) => {
            let key = [b"diff.", driver.as_slice(), b".binary"].concat();
            config.bool(key)?
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Environment;
    use test_support::Scratch;
    use test_support::git::isolated;

    #[test]
    fn few_trees_with_many_entries_are_refused() {
        let scratch = Scratch::new();
        let git = |arguments: &[&str], input: &str| {
            let output = isolated(scratch.path(), arguments, input.as_bytes());
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout)
                .expect("text")
                .trim()
                .to_owned()
        };
        git(&["init", "-q"], "");
        let blob = git(&["hash-object", "-w", "--stdin"], "x");
        let lines = |kind: &str, id: &str| -> String {
            (0..10).map(|at| format!("{kind} {id}\t{at}\n")).collect()
        };
        let mut tree = git(&["mktree"], &lines("100644 blob", &blob));
        for _ in 0..7 {
            tree = git(&["mktree"], &lines("040000 tree", &tree));
        }
        let environment = Environment::empty(scratch.path());
        let repository = Repository::open(scratch.join(".git"), &environment);
        let repository = repository.expect("a repository");
        let top = pronto_hash::parse_hex(tree.as_bytes()).expect("an id");
        let listed = ArchiveListing::read(&repository, top, 1 << 20, &Watch::none());
        let error = listed.err().expect("it has 111,111,110 entries");
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(&tree), "{error}");
    }
}
