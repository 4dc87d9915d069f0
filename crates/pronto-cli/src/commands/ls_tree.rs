//! `ls-tree`: list the entries of a tree.

mod format;

use std::ffi::OsString;
use std::io::Write;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto::revision::ExpectedType;
use pronto::{Repository, path, quote};
use pronto_hash::{ObjectId, oid};
use pronto_object::{TreeEntries, TreeEntry};
use pronto_worktree::pathspec;

use crate::{CliError, Context, ExitCode};
use format::{TreeFormat, TreeFormatPiece};

/// The deepest nesting of trees.
const MAX_DEPTH: usize = 2048;

/// Arguments of `ls-tree`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show only trees
    #[arg(short = 'd')]
    only_trees: bool,
    /// Recurse into trees
    #[arg(short = 'r')]
    recursive: bool,
    /// Also show trees when recursing
    #[arg(short = 't')]
    show_trees: bool,
    /// Terminate lines with NUL, and quote nothing
    #[arg(short = 'z')]
    null: bool,
    /// Also show the sizes of files
    #[arg(long, short = 'l')]
    long: bool,
    /// Show only names
    #[arg(long)]
    name_only: bool,
    /// Show only names
    #[arg(long, hide = true)]
    name_status: bool,
    /// Show only ids
    #[arg(long)]
    object_only: bool,
    /// Show paths relative to the top of the worktree
    #[arg(long)]
    full_name: bool,
    /// List the whole tree, whatever the current directory
    #[arg(long)]
    full_tree: bool,
    /// The format of each entry
    #[arg(long, value_name = "FORMAT")]
    format: Option<OsString>,
    /// Show ids with this many digits
    #[arg(long, num_args = 0..=1, default_missing_value = "", value_name = "N")]
    abbrev: Option<String>,
    /// The tree, and paths in it
    #[arg(value_name = "TREE-ISH")]
    operands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    let name_only = args.name_only || args.name_status;
    let modes = [args.long, name_only, args.object_only];
    let modes = modes.into_iter().filter(|mode| *mode).count() + usize::from(args.format.is_some());
    let Some((name, paths)) = args.operands.split_first().filter(|_| modes < 2) else {
        return Err(CliError::unsupported(
            "this combination of arguments of 'ls-tree'",
        ));
    };
    let repository = context.repository()?;
    let name = name.as_encoded_bytes().as_bstr();
    let prefix = if args.full_tree {
        BString::default()
    } else {
        repository.prefix_or_empty()
    };
    let wanted = wanted_paths(paths, prefix.as_bstr(), &repository)?;
    let result = repository.try_resolve(name, ExpectedType::Anything);
    context.report();
    let id = match result {
        Ok(Some(id)) => id,
        Ok(None) => return Err(CliError::fatal(format!("Not a valid object name {name}"))),
        Err(error) if error.kind() == pronto::ErrorKind::Ambiguous => {
            context.report_error(error.message());
            context.hint(error.hint().unwrap_or_default());
            return Err(CliError::fatal(format!("Not a valid object name {name}")));
        }
        Err(error) => return Err(error.into()),
    };
    let tree = repository.peel_to(id, ObjectKind::Tree)?;
    let tree = tree.ok_or_else(|| CliError::fatal("not a tree object"))?;
    let format = match &args.format {
        Some(given) => TreeFormat::parse(given.as_encoded_bytes().as_bstr())?,
        None if args.long => TreeFormat::long(),
        None if name_only => TreeFormat::name_only(),
        None if args.object_only => TreeFormat::object_only(),
        None => TreeFormat::ordinary(),
    };
    let mut walk = TreeLister {
        digits: digits(args, &repository)?,
        quote_all: repository.config().bool_or("core.quotepath", true)?,
        show_trees: args.show_trees || (args.only_trees && args.recursive),
        chop: if args.full_name {
            BString::default()
        } else {
            prefix
        },
        args,
        repository: &repository,
        wanted,
        format,
        context,
    };
    walk.run(tree)?;
    Ok(ExitCode::SUCCESS)
}

fn digits(args: &Args, repository: &Repository) -> Result<Option<usize>, CliError> {
    match args.abbrev.as_deref() {
        None | Some("0") => Ok(None),
        Some("") => Ok(Some(repository.abbreviation_length()?)),
        Some(text) => {
            let number = text.parse();
            let wrong = |_| CliError::unsupported(format!("the number '{text}'"));
            number.map(Some).map_err(wrong)
        }
    }
}

/// Returns the paths relative to the top of the worktree, or the current directory if there are no
/// arguments.
fn wanted_paths(
    paths: &[OsString],
    prefix: &BStr,
    repository: &Repository,
) -> Result<Vec<BString>, CliError> {
    if paths.is_empty() {
        let below = (!prefix.is_empty()).then(|| prefix.to_owned());
        return Ok(below.into_iter().collect());
    }
    let mut wanted = Vec::new();
    for given in paths {
        let given = given.as_encoded_bytes().as_bstr();
        if given.is_empty() {
            let message = "empty string is not a valid pathspec. please use . instead if you \
                           meant to match all paths";
            return Err(CliError::fatal(message));
        }
        let read = pathspec::path_of(given).map_err(|error| match error.kind() {
            pronto_worktree::ErrorKind::Unsupported => CliError::lacking(error.message()),
            _ => CliError::fatal(error.message()),
        });
        let (is_from_top, text) = read?;
        if is_from_top {
            // As in Git, the path is not normalised.
            wanted.push(text.to_owned());
            continue;
        }
        let full = [prefix.as_bytes(), text.as_bytes()].concat();
        let normal = path::normalize(path::borrow(&full));
        if normal.starts_with("..") || normal.is_absolute() {
            let top = repository.work_tree().unwrap_or(repository.git_dir());
            let top = top.display();
            let message = format!("{given}: '{text}' is outside repository at '{top}'");
            return Err(CliError::fatal(message));
        }
        let mut normal = path::as_bytes(&normal).to_owned();
        if !normal.is_empty() && (full.ends_with(b"/") || full.ends_with(b"/.")) {
            normal.push(b'/');
        }
        wanted.push(normal);
    }
    Ok(wanted)
}

struct TreeLister<'a> {
    args: &'a Args,
    repository: &'a Repository,
    wanted: Vec<BString>,
    format: TreeFormat,
    digits: Option<usize>,
    quote_all: bool,
    show_trees: bool,
    /// The prefix that is removed from names.
    chop: BString,
    context: &'a mut Context,
}

/// A tree on the path of the traversal. The stack of levels is on the heap, because trees can be
/// nested more deeply than the stack of a thread permits.
struct OpenListing {
    content: Vec<u8>,
    /// The position of the next entry.
    at: usize,
    /// The length of the path of the parent tree.
    outer_len: usize,
}

/// Returns the type of the object that an entry with this mode names.
fn kind_of(mode: u32) -> ObjectKind {
    match mode & 0o170_000 {
        0o040_000 => ObjectKind::Tree,
        0o160_000 => ObjectKind::Commit,
        _ => ObjectKind::Blob,
    }
}

impl TreeLister<'_> {
    fn run(&mut self, top: ObjectId) -> Result<(), CliError> {
        let mut base = BString::default();
        let mut levels = vec![self.level(&top, 0)?];
        while let Some(level) = levels.last_mut() {
            let outer_len = base.len();
            let Some(below) = self.list(level, &mut base)? else {
                base.truncate(level.outer_len);
                levels.pop();
                continue;
            };
            if levels.len() > MAX_DEPTH {
                return Err(CliError::fatal("exceeded maximum allowed tree depth"));
            }
            levels.push(self.level(&below, outer_len)?);
        }
        Ok(())
    }

    fn level(&self, tree: &oid, outer_len: usize) -> Result<OpenListing, CliError> {
        let mut content = Vec::new();
        let found = self.repository.objects()?.find(tree, &mut content)?;
        if found != Some(ObjectKind::Tree) {
            return Err(CliError::fatal(format!("unable to read tree ({tree})")));
        }
        Ok(OpenListing {
            content,
            at: 0,
            outer_len,
        })
    }

    /// Lists entries up to the next tree to enter. Returns the id of that tree, and appends its
    /// name to `base`.
    fn list(
        &mut self,
        level: &mut OpenListing,
        base: &mut BString,
    ) -> Result<Option<ObjectId>, CliError> {
        let length = base.len();
        let id_length = self.repository.object_hash().len_in_bytes();
        let mut entries = TreeEntries::new(&level.content[level.at..], id_length);
        while let Some(entry) = entries.next() {
            let entry = Row::of(&entry)?;
            if !self.is_wanted(base.as_bstr(), &entry) {
                continue;
            }
            let kind = kind_of(entry.mode);
            let enters = kind == ObjectKind::Tree && self.is_entered(base.as_bstr(), entry.name);
            base.extend_from_slice(entry.name);
            let is_shown = match kind {
                ObjectKind::Tree => !enters || self.show_trees,
                ObjectKind::Blob => !self.args.only_trees,
                _ => true,
            };
            if is_shown {
                self.show(&entry, kind, base.as_bstr())?;
            }
            if enters {
                base.push(b'/');
                level.at = level.content.len() - entries.rest().len();
                return Ok(Some(entry.id));
            }
            base.truncate(length);
        }
        match entries.rest() {
            [] => Ok(None),
            _ => Err(malformed_tree()),
        }
    }

    /// Returns whether a wanted path is the entry, above it, or below it.
    fn is_wanted(&self, base: &BStr, entry: &Row<'_>) -> bool {
        let is_tree = kind_of(entry.mode) == ObjectKind::Tree;
        self.wanted.is_empty()
            || self.wanted.iter().any(|path| {
                let directory = path.strip_suffix(b"/").unwrap_or(path);
                let is_above = directory.is_empty()
                    || base
                        .strip_prefix(directory)
                        .is_some_and(|rest| rest.starts_with(b"/"));
                if is_above {
                    return true;
                }
                let rest = path.strip_prefix(base.as_bytes());
                let rest = rest.and_then(|rest| rest.strip_prefix(entry.name.as_bytes()));
                rest.is_some_and(|rest| rest.is_empty() || (is_tree && rest.starts_with(b"/")))
            })
    }

    /// Returns whether to recurse into the tree called `name`.
    fn is_entered(&self, base: &BStr, name: &BStr) -> bool {
        self.args.recursive
            || self.wanted.iter().any(|path| {
                let rest = path.strip_prefix(base.as_bytes());
                let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
                rest.is_some_and(|rest| rest.starts_with(b"/"))
            })
    }

    fn show(&mut self, entry: &Row<'_>, kind: ObjectKind, full: &BStr) -> Result<(), CliError> {
        let mut line = Vec::new();
        for piece in &self.format.pieces {
            match piece {
                TreeFormatPiece::Text(text) => line.extend_from_slice(text),
                TreeFormatPiece::Mode => write!(line, "{:06o}", entry.mode)?,
                TreeFormatPiece::Type => write!(line, "{kind}")?,
                TreeFormatPiece::Name => match self.digits {
                    Some(digits) => {
                        let short = self.repository.abbreviate_to(&entry.id, digits)?;
                        line.extend_from_slice(short.as_bytes());
                    }
                    None => write!(line, "{}", entry.id)?,
                },
                TreeFormatPiece::Size { padded } => {
                    let size = self.size(entry, kind)?;
                    let width = if *padded { 7 } else { 0 };
                    write!(line, "{size:>width$}")?;
                }
                TreeFormatPiece::Path => {
                    let name = relative(full, self.chop.as_bstr());
                    if self.args.null {
                        line.extend_from_slice(&name);
                    } else {
                        quote::c_quote_into(&name, self.quote_all, &mut line);
                    }
                }
            }
        }
        line.push(if self.args.null { 0 } else { b'\n' });
        self.context.out.write_all(&line)?;
        Ok(())
    }

    fn size(&self, entry: &Row<'_>, kind: ObjectKind) -> Result<String, CliError> {
        if kind != ObjectKind::Blob {
            return Ok("-".into());
        }
        match self.repository.objects()?.header(&entry.id)? {
            Some(header) => Ok(header.size.to_string()),
            None if self.args.long => Ok("BAD".into()),
            None => {
                let message = format!("could not get object info about '{}'", entry.id);
                Err(CliError::fatal(message))
            }
        }
    }
}

/// One entry of a tree.
struct Row<'a> {
    mode: u32,
    name: &'a BStr,
    id: ObjectId,
}

impl<'a> Row<'a> {
    fn of(entry: &TreeEntry<'a>) -> Result<Self, CliError> {
        match (entry.mode_bits(), entry.object_id()) {
            (Some(mode), Some(id)) => Ok(Row {
                mode,
                name: entry.name.as_bstr(),
                id,
            }),
            _ => Err(malformed_tree()),
        }
    }
}

fn malformed_tree() -> CliError {
    CliError::fatal("malformed tree")
}

fn relative(full: &BStr, prefix: &BStr) -> BString {
    if prefix.is_empty() {
        return full.to_owned();
    }
    match full.strip_prefix(prefix.as_bytes()) {
        Some(rest) if !rest.is_empty() => rest.into(),
        _ => path::as_bytes(&path::relative(path::borrow(full), path::borrow(prefix))).to_owned(),
    }
}
