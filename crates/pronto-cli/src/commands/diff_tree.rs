//! `diff-tree`: compare trees, and show the changes of commits.

use std::ffi::OsString;
use std::io::{BufRead, Write};

use gix_object::Kind as ObjectKind;
use pronto::diff::{Options, TreeDiffDepth};
use pronto::{Repository, Watch};
use pronto_hash::ObjectId;

use crate::commands::shared::diffing::{DiffArgs, DiffPrinter, Revision, revisions_and_paths};
use crate::{CliError, Context, ExitCode};

/// Arguments of `diff-tree`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Recurse into directories
    #[arg(short = 'r')]
    recursive: bool,
    /// Also show the directories when recursing
    #[arg(short = 't')]
    show_trees: bool,
    /// For a commit without parents, show its whole tree
    #[arg(long)]
    root: bool,
    /// Read commits, or pairs of trees, from standard input
    #[arg(long)]
    stdin: bool,
    /// Compare merges with each parent
    #[arg(short = 'm')]
    merges: bool,
    /// Do not print the id of a commit before its changes
    #[arg(long)]
    no_commit_id: bool,
    #[command(flatten)]
    diff: DiffArgs,
    /// A commit or two trees, and paths to compare
    #[arg(value_name = "TREE-ISH")]
    operands: Vec<OsString>,
}

pub(crate) fn run(args: &Args, context: &mut Context) -> Result<ExitCode, CliError> {
    crate::commands::shared::diffing::refuse_patches(context)?;
    let repository = context.repository()?;
    let (revisions, paths) = revisions_and_paths(&args.operands, &repository, context)?;
    let options = args.diff.options(&repository, paths)?;
    let mut session = DiffTreeSession {
        args,
        printer: args.diff.printer(&repository, &options)?,
        repository: &repository,
        options,
        context,
    };
    match (revisions.as_slice(), args.stdin) {
        ([], true) => session.read()?,
        ([one], false) => {
            if let Some(commit) = session.commit_of(one)? {
                session.commit(commit, None)?;
            }
        }
        ([one, two], false) => {
            let (one, two) = match two.is_excluded {
                true => (two, one),
                false => (one, two),
            };
            let (old, new) = (session.tree_named(one)?, session.tree_named(two)?);
            session.compare(Some(old), Some(new), None)?;
        }
        _ => {
            return Err(CliError::misuse(
                "this combination of arguments of 'diff-tree' is not implemented natively",
            ));
        }
    }
    Ok(session.printer.code())
}

struct DiffTreeSession<'a> {
    args: &'a Args,
    repository: &'a Repository,
    options: Options,
    printer: DiffPrinter<'a>,
    context: &'a mut Context,
}

impl DiffTreeSession<'_> {
    fn commit_of(&mut self, revision: &Revision) -> Result<Option<ObjectId>, CliError> {
        let id = revision.id;
        if let Some(commit) = self.repository.peel_to(id, ObjectKind::Commit)? {
            return Ok(Some(commit));
        }
        let id = self.repository.peel_tags(id)?.unwrap_or(id);
        let Some(header) = self.repository.objects()?.header(&id)? else {
            return Err(revision.unusable(self.repository, format!("bad object {id}")));
        };
        let message = format!("object {id} is a {}, not a commit", header.kind);
        self.context.report_error(&message);
        Ok(None)
    }

    fn tree_of(&self, id: ObjectId) -> Result<ObjectId, CliError> {
        let tree = self.repository.peel_to(id, ObjectKind::Tree)?;
        tree.ok_or_else(|| CliError::fatal(format!("unable to read tree ({id})")))
    }

    fn tree_named(&self, revision: &Revision) -> Result<ObjectId, CliError> {
        let tree = self.repository.peel_to(revision.id, ObjectKind::Tree)?;
        let message = || format!("unable to read tree ({})", revision.id);
        tree.ok_or_else(|| revision.unusable(self.repository, message()))
    }

    /// Prints the changes of a commit relative to `parents`, or to its recorded parents.
    fn commit(&mut self, id: ObjectId, parents: Option<Vec<ObjectId>>) -> Result<(), CliError> {
        let links = self.repository.commit_links(&id, &mut Vec::new())?;
        let parents = parents.unwrap_or(links.parents);
        let header = (!self.args.no_commit_id).then_some(id);
        if parents.is_empty() && self.args.root {
            return self.compare(None, Some(links.tree), header);
        }
        if parents.len() > 1 && !self.args.merges {
            return Ok(());
        }
        for parent in parents {
            let old = self.tree_of(parent)?;
            self.compare(Some(old), Some(links.tree), header)?;
        }
        Ok(())
    }

    fn compare(
        &mut self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        header: Option<ObjectId>,
    ) -> Result<(), CliError> {
        let depth = TreeDiffDepth {
            recursive: self.args.recursive || self.args.show_trees,
            show_trees: self.args.show_trees,
        };
        let interrupt = &self.context.interrupt;
        let found = pronto::diff::trees(
            self.repository,
            old,
            new,
            depth,
            &self.options,
            &Watch::from(interrupt),
        )?;
        if found.differences.is_empty() {
            return Ok(());
        }
        if let Some(id) = header {
            write!(self.context.out, "{id}")?;
            self.context.out.write_all(&[self.printer.line_end()])?;
        }
        self.printer.print(&found, self.context)
    }

    /// Reads commits or pairs of trees from standard input (`--stdin`). A line of a commit may name
    /// other parents.
    fn read(&mut self) -> Result<(), CliError> {
        let mut input = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = input.read_until(b'\n', &mut line);
            let count = count
                .map_err(|error| CliError::fatal(format!("cannot read standard input: {error}")))?;
            if count == 0 {
                return Ok(());
            }
            if self.id_at(&line).is_none() {
                self.context.out.write_all(&line)?;
                self.context.out.flush()?;
            } else if let Some(line) = line.strip_suffix(b"\n") {
                self.read_line(line)?;
            }
        }
    }

    /// Returns the id at the start of `text`.
    fn id_at(&self, text: &[u8]) -> Option<ObjectId> {
        let digits = text.get(..self.repository.object_hash().len_in_hex())?;
        pronto_hash::parse_hex(digits).ok()
    }

    fn read_line(&mut self, line: &[u8]) -> Result<(), CliError> {
        let Some(id) = self.id_at(line) else {
            return Ok(());
        };
        let mut rest = &line[self.repository.object_hash().len_in_hex()..];
        let kind = self
            .repository
            .objects()?
            .header(&id)?
            .map(|header| header.kind);
        match kind {
            Some(ObjectKind::Commit) => {
                let mut parents = Vec::new();
                while rest.first().is_some_and(u8::is_ascii_whitespace) {
                    let Some(parent) = self.id_at(&rest[1..]) else {
                        break;
                    };
                    parents.push(parent);
                    rest = &rest[1 + self.repository.object_hash().len_in_hex()..];
                }
                self.commit(id, (!parents.is_empty()).then_some(parents))
            }
            Some(ObjectKind::Tree) => self.read_trees(id, rest),
            Some(kind) => {
                let message = format!("Object {id} is a {kind}, not a commit or tree");
                self.context.report_error(&message);
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn read_trees(&mut self, one: ObjectId, rest: &[u8]) -> Result<(), CliError> {
        let two = match rest.split_first() {
            Some((space, name)) if space.is_ascii_whitespace() => self
                .id_at(name)
                .filter(|two| name.len() == two.kind().len_in_hex()),
            _ => None,
        };
        let Some(two) = two else {
            self.context
                .report_error("Need exactly two trees, separated by a space");
            return Ok(());
        };
        let is_tree = self.repository.objects()?.header(&two)?;
        if is_tree.is_none_or(|header| header.kind != ObjectKind::Tree) {
            return Ok(());
        }
        writeln!(self.context.out, "{one} {two}")?;
        self.compare(Some(one), Some(two), None)
    }
}
