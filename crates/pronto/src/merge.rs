//! Merging what is in files: three texts, and conflicts of the index made anew.

use bstr::{BStr, BString};
use gix_object::Kind;
use pronto_hash::ObjectId;
use pronto_index::{Index, mode};
use pronto_worktree::attributes::{Attributes, State};
use pronto_worktree::unpack::Side;

use crate::objects::from_odb;
use crate::switch::Prepared;
use crate::worktree::from_worktree;
use crate::{Error, ErrorKind, Repository, Result};

pub use pronto_worktree::merge::{Favor, MARKER_LEN, Merged, Options, Style, merge};

/// In so many bytes a NUL makes a text binary.
const LOOKED_AT: usize = 8000;

/// Whether `content` is no text, as Git takes it.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(LOOKED_AT)].contains(&0)
}

/// The style of conflicts that is called so.
pub fn style_named(name: &[u8]) -> Option<Style> {
    match name {
        b"merge" => Some(Style::Merge),
        b"diff3" => Some(Style::Diff3),
        b"zdiff3" => Some(Style::ZealousDiff3),
        _ => None,
    }
}

impl Repository {
    /// How conflicts look (`merge.conflictStyle`).
    ///
    /// # Errors
    /// The value is none of those known.
    pub fn conflict_style(&self) -> Result<Style> {
        let Some(value) = self.config().string("merge.conflictstyle")? else {
            return Ok(Style::default());
        };
        style_named(value).ok_or_else(|| {
            let message = format!("unknown style '{value}' given for 'merge.conflictstyle'");
            Error::new(ErrorKind::ConfigValue, message)
        })
    }
}

/// Makes conflicts of the index anew, as files had them.
pub(crate) struct Remaking<'a> {
    prepared: &'a Prepared<'a>,
    attributes: Attributes,
    style: Style,
}

impl<'a> Remaking<'a> {
    /// Gets ready.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported) where configuration wants other merges than those of
    /// texts, or conflicts are remembered that were resolved.
    pub(crate) fn new(prepared: &'a Prepared<'a>, style: Style) -> Result<Self> {
        let repository = prepared.repository;
        let config = repository.config();
        let remembers = prepared
            .index
            .resolve_undo()
            .map_err(crate::worktree::from_index)?
            .is_some();
        if remembers {
            return Err(lacking("bringing back conflicts that were resolved"));
        }
        if config.bool_or("merge.renormalize", false)? || config.contains("merge.default") {
            return Err(lacking("merges that are configured"));
        }
        let names = ["merge", "conflict-marker-size"];
        let attributes = repository.attributes_selected(&prepared.index, &names)?;
        Ok(Remaking {
            prepared,
            attributes,
            style,
        })
    }

    /// The conflict of `path` as a blob, which is added to the repository; `None` if one side does
    /// not have it.
    ///
    /// # Errors
    /// [`Unsupported`](ErrorKind::Unsupported), or an object cannot be read or written.
    pub(crate) fn remake(&self, index: &Index, path: &BStr) -> Result<Option<Side>> {
        let mut sides: [Option<(ObjectId, u32)>; 4] = [None; 4];
        for at in index.stages(path) {
            let entry = index.entry(at);
            let side = sides.get_mut(usize::from(entry.stage()));
            side.into_iter()
                .for_each(|side| *side = Some((entry.id.to_owned(), entry.mode)));
        }
        let (Some(ours), Some(theirs)) = (sides[2], sides[3]) else {
            return Ok(None);
        };
        let is_plain = |state: &State| matches!(state, State::Unspecified);
        let mut stack = self.attributes.stack();
        let states = stack.states(path).map_err(from_worktree)?;
        if !states.iter().all(is_plain) {
            return Err(lacking("merges that attributes choose"));
        }
        let is_file = |side: &(ObjectId, u32)| matches!(side.1, mode::FILE | mode::EXECUTABLE);
        if !sides.iter().flatten().all(is_file) {
            return Err(lacking("conflicts of other than files"));
        }
        let read = |side: Option<(ObjectId, u32)>| -> Result<Vec<u8>> {
            let mut content = Vec::new();
            if let Some((id, _)) = side {
                let found = self.prepared.objects.find(&id, &mut content);
                if found.map_err(from_odb)? != Some(Kind::Blob) {
                    let message = format!("unable to read blob object {id}");
                    return Err(Error::new(ErrorKind::Object, message));
                }
            }
            Ok(content)
        };
        let (base, ours_text, theirs_text) =
            (read(sides[1])?, read(Some(ours))?, read(Some(theirs))?);
        if [&base, &ours_text, &theirs_text]
            .iter()
            .any(|text| is_binary(text))
        {
            return Err(lacking("conflicts of binary files"));
        }
        let options = Options {
            style: self.style,
            names: ["ours", "base", "theirs"].map(|name| Some(BString::from(name))),
            ..Options::default()
        };
        let merged = merge(&ours_text, &base, &theirs_text, &options);
        let written = self.prepared.objects.write(Kind::Blob, &merged.text);
        Ok(Some(Side {
            id: written.map_err(from_odb)?,
            mode: ours.1,
        }))
    }
}

fn lacking(what: &str) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        format!("pronto does not have {what}"),
    )
}
