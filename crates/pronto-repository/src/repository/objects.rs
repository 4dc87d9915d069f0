//! The object store of a repository, and simple object queries.

mod contents;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, oid};
use pronto_odb::{FirstUse, Options, Store};

use crate::durability::Component;
use crate::packs::loose_compression;
use crate::repository::{Notice, NoticeReceiver};
use crate::shared;
use crate::{Error, ErrorKind, Repository, Result, path, quote};
use pronto_object::TagRef;

pub use crate::errors::from_odb;
pub use contents::{CommitObject, OwnedTreeEntry};

/// The largest number of nested tags.
const MAX_TAG_DEPTH: usize = 64;

impl Repository {
    /// Returns the object store, which is opened on first use with the configured options. Replacements
    /// of objects (`refs/replace/`) apply unless `GIT_NO_REPLACE_OBJECTS` or `core.useReplaceRefs`
    /// disables them.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] if a list of alternates exists and cannot be read, or
    /// [`ErrorKind::ConfigValue`] if a setting is not of its type.
    pub fn objects(&self) -> Result<&Store> {
        if let Some(store) = self.objects.get() {
            return Ok(store);
        }
        let store = Store::open(self.objects_dir(), self.object_options()?).map_err(from_odb)?;
        let flaws = store.warnings().iter();
        let flaws: Vec<Notice> = flaws
            .filter_map(|flaw| self.unusable_alternate(flaw))
            .collect();
        if !flaws.is_empty() {
            store.on_first_lookup(self.report_at_first_use(flaws));
        }
        let (replacements, flaws) = self.replacements()?;
        let store = match flaws.is_empty() {
            true => store.with_replacements(replacements),
            false => {
                store.with_reported_replacements(replacements, self.report_at_first_use(flaws))
            }
        };
        Ok(self.objects.get_or_init(|| store))
    }

    /// Returns the notice about an alternate that cannot be used.
    fn unusable_alternate(&self, error: &pronto_odb::Error) -> Option<Notice> {
        let path = error.path()?;
        if error.kind() == pronto_odb::ErrorKind::Limit {
            return Some(Notice::AlternatesTooDeep(path.to_owned()));
        }
        if path.parent().is_some_and(Path::exists) {
            return Some(Notice::MissingObjectDirectory(path.to_owned()));
        }
        // The variable may name it by a relative path.
        let environment = self.environment();
        let named = environment.bytes("GIT_ALTERNATE_OBJECT_DIRECTORIES");
        let mut named = alternates_in(named.unwrap_or_default()).into_iter();
        let named = named.find(|part| environment.resolve(path::borrow(part)) == path);
        let named = named.map_or(path.to_owned(), |part| path::from_bytes(&part));
        Some(Notice::UnreachableAlternate(named))
    }

    fn report_at_first_use(&self, notices: Vec<Notice>) -> Box<dyn FirstUse> {
        Box::new(WaitingNotices {
            receiver: self.notices().clone(),
            notices: Mutex::new(notices),
        })
    }

    fn object_options(&self) -> Result<Options> {
        let config = self.config();
        let mut options = Options::default();
        options.kind = self.object_hash();
        options.alternates = self.environment_alternates();
        options.sharing = shared::configured(config)?;
        if let Some(limit) = config.u64("core.deltabasecachelimit")? {
            options.delta_base_cache_bytes = usize::try_from(limit).unwrap_or(usize::MAX);
        }
        options.multi_pack_index = config.bool_or("core.multipackindex", true)?;
        options.loose_compression = loose_compression(config)?;
        options.fsync_loose = self.fsync()?.of(Component::LooseObject);
        Ok(options)
    }

    fn environment_alternates(&self) -> Vec<PathBuf> {
        let environment = self.environment();
        let text = environment
            .bytes("GIT_ALTERNATE_OBJECT_DIRECTORIES")
            .unwrap_or_default();
        alternates_in(text)
            .into_iter()
            .map(|part| environment.resolve(path::borrow(&part)))
            .collect()
    }

    /// Returns the replacements of objects, from the refs below `refs/replace/`, and a notice for each
    /// of these refs that does not name an object.
    fn replacements(&self) -> Result<(HashMap<ObjectId, ObjectId>, Vec<Notice>)> {
        let (mut map, mut flaws) = (HashMap::new(), Vec::new());
        let environment = self.environment();
        if environment.get("GIT_NO_REPLACE_OBJECTS").is_some()
            || !self.config().bool_or("core.usereplacerefs", true)?
        {
            return Ok((map, flaws));
        }
        let base = environment
            .bytes("GIT_REPLACE_REF_BASE")
            .unwrap_or(b"refs/replace/");
        self.refs().for_each(base, |reference| {
            let name = &reference.name[base.len()..];
            match pronto_hash::parse_hex(name) {
                Ok(replaced) => {
                    map.insert(replaced, reference.id);
                }
                Err(_) => flaws.push(Notice::MalformedReplacement(name.into())),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((map, flaws))
    }

    /// Refuses to set the ref `name` to a missing object, or a branch to an object that is not a
    /// commit.
    pub(crate) fn check_storable(&self, name: &BStr, id: &oid) -> Result<()> {
        let header = self.objects()?.header(id).map_err(from_odb)?;
        let is_branch = name == "HEAD" || name.starts_with(b"refs/heads/");
        let message = match header {
            None => format!("trying to write ref '{name}' with nonexistent object {id}"),
            Some(header) if is_branch && header.kind != ObjectKind::Commit => {
                format!("trying to write non-commit object {id} to branch '{name}'")
            }
            Some(_) => return Ok(()),
        };
        Err(Error::new(ErrorKind::Reference, message))
    }

    /// Peels the tag `id` to an object that is not a tag. Returns `None` if `id` is not a tag, or an
    /// object does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tag is malformed, or states another type than that of its
    /// target.
    pub fn peel_tag(&self, id: ObjectId) -> Result<Option<ObjectId>> {
        let objects = self.objects()?;
        let mut current = id;
        let mut claimed = None;
        let mut buffer = Vec::new();
        for _ in 0..MAX_TAG_DEPTH {
            let Some(header) = objects.header(&current).map_err(from_odb)? else {
                return Ok(None);
            };
            if let Some(claimed) = claimed.filter(|claimed| *claimed != header.kind) {
                let message = format!("object {current} is a {}, not a {claimed}", header.kind);
                return Err(Error::new(ErrorKind::Object, message));
            }
            if header.kind != ObjectKind::Tag {
                return Ok((current != id).then_some(current));
            }
            objects.find(&current, &mut buffer).map_err(from_odb)?;
            claimed = tag_kind(&buffer);
            current = TagRef::new(&buffer).target().ok_or_else(|| {
                Error::new(ErrorKind::Corrupt, "malformed tag").on_object(current)
            })?;
        }
        Ok(None)
    }

    /// Returns whether the repository is a partial clone, so that missing objects can be fetched from a
    /// promisor remote.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if `remote.<name>.promisor` is not a boolean.
    pub fn has_promisor(&self) -> Result<bool> {
        let config = self.config();
        if config.contains("extensions.partialclone") {
            return Ok(true);
        }
        for remote in config.subsections("remote") {
            let key = |variable: &str| format!("remote.{remote}.{variable}");
            if config.bool_or(key("promisor"), false)? || config.contains(key("partialclonefilter"))
            {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Notices that wait until the store uses what they are about.
#[derive(Debug)]
struct WaitingNotices {
    receiver: NoticeReceiver,
    notices: Mutex<Vec<Notice>>,
}

impl FirstUse for WaitingNotices {
    fn first_used(&self) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        for notice in notices.drain(..) {
            self.receiver.notice(notice);
        }
    }
}

/// Returns the object type in the `type` line of a tag.
fn tag_kind(tag: &[u8]) -> Option<ObjectKind> {
    let line = tag.lines().nth(1)?;
    ObjectKind::from_bytes(line.strip_prefix(b"type ")?).ok()
}

/// Splits a list of object directories at colons (`GIT_ALTERNATE_OBJECT_DIRECTORIES`). A path in double
/// quotes may contain colons and escapes.
fn alternates_in(text: &[u8]) -> Vec<BString> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let quoted = quoted_len(rest).and_then(|len| rest.split_at_checked(len));
        let unquoted = quoted.and_then(|(part, after)| Some((quote::c_unquote(part)?, after)));
        let (part, after) = unquoted.unwrap_or_else(|| {
            let end = rest.find_byte(b':').unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            (part.to_vec(), after)
        });
        if !part.is_empty() {
            found.push(part.into());
        }
        rest = after.strip_prefix(b":").unwrap_or(after);
    }
    found
}

/// Returns the length of the quoted part at the start of `text`, if `text` begins with a double quote.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    let inner = text.strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })?;
    Some(end + 2)
}
