//! Merges the content of files: three versions of a text, and unmerged index entries.

use bstr::{BStr, ByteSlice};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_index::{Index, mode};
use pronto_odb::Store;
use pronto_worktree::attributes::{AttributeState, Attributes};
use pronto_worktree::unpack::TreeFile;

use crate::config::Config;
use crate::errors::from_worktree;
use crate::objects::from_odb;
use crate::session::WorktreeSession;
use crate::{Error, ErrorKind, Repository, Result, attributes};

pub use pronto_diff::merge::{ConflictStyle, Favor, MARKER_LEN, MergedText, Options, merge};

/// The number of bytes at the start of a content in which a NUL marks the content as binary.
const LOOKED_AT: usize = 8000;

/// Whether Git treats `content` as binary.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(LOOKED_AT)].contains(&0)
}

/// Returns the conflict style called `name` (`merge`, `diff3` or `zdiff3`).
pub fn style_named(name: &[u8]) -> Option<ConflictStyle> {
    match name {
        b"merge" => Some(ConflictStyle::Merge),
        b"diff3" => Some(ConflictStyle::Diff3),
        b"zdiff3" => Some(ConflictStyle::ZealousDiff3),
        _ => None,
    }
}

/// Returns the configured conflict style (`merge.conflictStyle`).
///
/// # Errors
/// Fails if the value is not a known style.
pub fn conflict_style(repository: &Repository) -> Result<ConflictStyle> {
    conflict_style_of(repository.config())
}

/// Returns the conflict style that `config` sets (`merge.conflictStyle`).
///
/// # Errors
/// Fails if the value is not a known style.
pub fn conflict_style_of(config: &Config) -> Result<ConflictStyle> {
    let mut style = ConflictStyle::default();
    for entry in config.entries("merge.conflictstyle") {
        let value = entry.string()?;
        style = style_named(value).ok_or_else(|| {
            let message = format!("unknown style '{value}' given for 'merge.conflictstyle'");
            entry.bad_variable().reported_after(message)
        })?;
    }
    Ok(style)
}

/// The attributes that select another merge driver than that for text.
const CHOOSING: [&str; 2] = ["merge", "conflict-marker-size"];

/// Merges blobs as text, if no setting or attribute requires another merge driver.
pub(crate) struct TextMerge<'a> {
    objects: &'a Store,
    attributes: Attributes,
    style: ConflictStyle,
}

impl<'a> TextMerge<'a> {
    /// Prepares merges in the conflict style `style`.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](ErrorKind::Unsupported) if the configuration requires another
    /// merge than that of text with the default diff algorithm.
    pub(crate) fn new(prepared: &'a WorktreeSession<'_>, style: ConflictStyle) -> Result<Self> {
        let repository = prepared.repository;
        let config = repository.config();
        if config.bool_or("merge.renormalize", false)? || config.contains("merge.default") {
            return Err(lacking("merging with merge.renormalize or merge.default"));
        }
        let algorithm = config.raw("diff.algorithm");
        if algorithm.is_some_and(|name| name != "default" && name != "myers") {
            return Err(lacking("merging with diff.algorithm"));
        }
        Ok(TextMerge {
            objects: prepared.objects,
            attributes: attributes::attributes_selected(repository, &prepared.index, &CHOOSING)?,
            style,
        })
    }

    /// Merges the changes of `ours` and `theirs` since `base` (`None`: an empty file), and stores
    /// the resulting blob. `names` are the labels of ours, base and theirs in conflict markers.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](ErrorKind::Unsupported) if a version is binary or an attribute
    /// requires another merge driver, and with [`ErrorKind::Object`] if an object cannot be read or
    /// written.
    pub(crate) fn merge(
        &self,
        path: &BStr,
        [ours, base, theirs]: [Option<ObjectId>; 3],
        names: [&BStr; 3],
    ) -> Result<ObjectId> {
        let is_plain = |state: &AttributeState| matches!(state, AttributeState::Unspecified);
        let mut stack = self.attributes.stack();
        let states = stack.states(path).map_err(from_worktree)?;
        if !states.iter().all(is_plain) {
            return Err(lacking("merging a file with a 'merge' attribute"));
        }
        let (ours, base, theirs) = (self.read(ours)?, self.read(base)?, self.read(theirs)?);
        if [&ours, &base, &theirs].iter().any(|text| is_binary(text)) {
            return Err(lacking("a conflict in a binary file"));
        }
        let mut options = Options::default();
        options.style = self.style;
        options.names = names.map(|name| Some(name.to_owned()));
        let merged = merge(&ours, &base, &theirs, &options);
        let written = self.objects.write(Kind::Blob, &merged.text);
        written.map_err(from_odb)
    }

    fn read(&self, id: Option<ObjectId>) -> Result<Vec<u8>> {
        let mut content = Vec::new();
        if let Some(id) = id {
            let found = self.objects.find(&id, &mut content);
            if found.map_err(from_odb)? != Some(Kind::Blob) {
                let message = format!("unable to read blob object {id}");
                return Err(Error::new(ErrorKind::Object, message));
            }
        }
        Ok(content)
    }
}

/// Recreates the conflicts of unmerged index entries in files (`--merge`).
pub(crate) struct Remaking<'a>(TextMerge<'a>);

impl<'a> Remaking<'a> {
    /// Prepares recreating conflicts in the conflict style `style`.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](ErrorKind::Unsupported) if the configuration requires another
    /// merge than that of text, or if the index has resolve-undo data.
    pub(crate) fn new(prepared: &'a WorktreeSession<'_>, style: ConflictStyle) -> Result<Self> {
        let remembered = prepared.index.resolve_undo();
        if remembered.map_err(crate::errors::from_index)?.is_some() {
            return Err(lacking(
                "recreating a resolved conflict (resolve-undo data)",
            ));
        }
        Ok(Remaking(TextMerge::new(prepared, style)?))
    }

    /// Merges the stages of `path` again, and stores the result with conflict markers as a blob.
    /// Returns `None` if our or their stage is missing.
    ///
    /// # Errors
    /// Fails with [`Unsupported`](ErrorKind::Unsupported) if a stage is not a text file, and with
    /// [`ErrorKind::Object`] if an object cannot be read or written.
    pub(crate) fn remake(&self, index: &Index, path: &BStr) -> Result<Option<TreeFile>> {
        let mut sides: [Option<TreeFile>; 4] = [None; 4];
        for at in index.stages(path) {
            let entry = index.entry(at);
            let side = sides.get_mut(usize::from(entry.stage()));
            side.into_iter().for_each(|side| {
                *side = Some(TreeFile {
                    id: entry.id.to_owned(),
                    mode: entry.mode,
                });
            });
        }
        let (Some(ours), Some(theirs)) = (sides[2], sides[3]) else {
            return Ok(None);
        };
        if !sides.iter().flatten().all(|side| is_file(*side)) {
            return Err(lacking(
                "a conflict between entries that are not regular files",
            ));
        }
        let base = sides[1].map(|side| side.id);
        let names = ["ours", "base", "theirs"].map(|name| name.as_bytes().as_bstr());
        let id = self
            .0
            .merge(path, [Some(ours.id), base, Some(theirs.id)], names)?;
        let mode = ours.mode;
        Ok(Some(TreeFile { id, mode }))
    }
}

pub(crate) fn lacking(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("{what} is not implemented natively"),
    )
}

/// Whether `side` is a regular file.
fn is_file(side: TreeFile) -> bool {
    matches!(side.mode, mode::FILE | mode::EXECUTABLE)
}
