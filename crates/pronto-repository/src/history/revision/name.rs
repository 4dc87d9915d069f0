//! Revisions without suffixes: refs, object ids and abbreviated ids.

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{ObjectId, Prefix};
use pronto_object::{CommitRef, IdentityRef, TagRef, date};
use pronto_odb::PrefixMatches;

use super::full_name::FullName;
use super::{ExpectedType, logs};
use crate::objects::from_odb;
use crate::refs::{ResolvedRef, name};
use crate::repository::Notice;
use crate::{Error, ErrorKind, Repository, Result};

/// The smallest length of an abbreviated id.
const SHORTEST_PREFIX: usize = 4;

/// The largest number of candidates that are listed for an ambiguous prefix.
const LONGEST_LIST: usize = 10_000;

impl Repository {
    /// Returns the ref to which `short` expands, with `@{upstream}` and similar suffixes resolved, if
    /// the ref points to an object.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Reference`] if a branch has no upstream, or a ref is broken.
    pub fn find_reference(&self, short: impl AsRef<[u8]>) -> Result<Option<FullName>> {
        let short = short.as_ref().as_bstr();
        let replaced = self.interpret_branch_name(short)?;
        let short = replaced.as_ref().map_or(short, |name| name.as_bstr());
        let mut found: Option<FullName> = None;
        let candidates = name::candidates(short)
            .filter(|candidate| name::is_valid(candidate.as_bstr(), name::Form::OneLevel));
        let all: Vec<BString> = candidates.collect();
        let is_enough = !self.warns_of_ambiguity()?;
        for (candidate, resolved) in self.refs().resolve_each(all, is_enough) {
            match resolved {
                Ok(Some(ResolvedRef {
                    name, id: Some(id), ..
                })) => match &mut found {
                    Some(found) => {
                        found.is_ambiguous = true;
                        return Ok(Some(found.clone()));
                    }
                    None => {
                        let direct = candidate;
                        found = Some(FullName {
                            name,
                            direct,
                            id,
                            is_ambiguous: false,
                        });
                        if is_enough {
                            break;
                        }
                    }
                },
                Ok(Some(ResolvedRef { id: None, .. })) if candidate != "HEAD" => {
                    self.notify(Notice::DanglingReference(candidate));
                }
                Ok(_) => {}
                // A symref to a broken ref or to an invalid name.
                Err(_) if candidate != "HEAD" && self.refs().is_symbolic(&candidate) => {
                    self.notify(Notice::DanglingReference(candidate));
                }
                Err(_) if candidate.contains(&b'/') => {
                    self.notify(Notice::BrokenReference(candidate));
                }
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// Returns whether ambiguous names cause a warning (`core.warnAmbiguousRefs`).
    ///
    /// # Errors
    /// Fails with [`ErrorKind::ConfigValue`] if the value is not a boolean.
    pub fn warns_of_ambiguity(&self) -> Result<bool> {
        self.config().bool_or("core.warnambiguousrefs", true)
    }

    /// Resolves `text` without suffixes (`^`, `~`, `:`).
    pub(super) fn resolve_name(&self, text: &BStr, want: ExpectedType) -> Result<Option<ObjectId>> {
        if let Some(id) = self.full_id(text) {
            self.warn_of_reference_named_like_an_id(text)?;
            return Ok(Some(id));
        }
        if let Some(found) = self.resolve_reference(text)? {
            return Ok(Some(found));
        }
        if let Some(id) = self.resolve_description(text)? {
            return Ok(Some(id));
        }
        self.resolve_prefix(text, want)
    }

    /// Parses `text` as a full object id. The object need not exist.
    pub fn full_id(&self, text: &BStr) -> Option<ObjectId> {
        let is_whole = text.len() == self.object_hash().len_in_hex();
        is_whole
            .then(|| pronto_hash::parse_hex(text).ok())
            .flatten()
    }

    fn warn_of_reference_named_like_an_id(&self, text: &BStr) -> Result<()> {
        if self.warns_of_ambiguity()? && self.find_reference(text)?.is_some() {
            self.warn_of_ambiguity(text);
        }
        Ok(())
    }

    /// Reports that the ref name `text` is ambiguous, as a notice.
    pub fn warn_of_ambiguity(&self, text: &BStr) {
        self.notify(Notice::AmbiguousName(text.to_owned()));
    }

    fn resolve_reference(&self, text: &BStr) -> Result<Option<ObjectId>> {
        let selector = match logs::selector(text) {
            Ok(selector) => selector,
            Err(logs::Impossible) => return Ok(None),
        };
        let Some((base, selector)) = selector else {
            return self.resolve_current(text);
        };
        let (log_of, current) = if base.is_empty() {
            match self.find_reference("HEAD")? {
                Some(head) => (head.name, head.id),
                None => return Ok(None),
            }
        } else {
            let Some(found) = self.find_log(base)? else {
                return Ok(None);
            };
            if found.is_ambiguous && self.warns_of_ambiguity()? {
                self.warn_of_ambiguity(base);
            }
            (found.name, found.id)
        };
        self.resolve_logged(base, log_of.as_bstr(), current, selector)
    }

    fn resolve_current(&self, text: &BStr) -> Result<Option<ObjectId>> {
        if text.starts_with(b"@{-") {
            match self.interpret_branch_name(text)? {
                Some(branch) => {
                    if let Some(id) = self.full_id(branch.as_bstr()) {
                        return Ok(Some(id));
                    }
                }
                None => return Ok(None),
            }
        }
        let Some(found) = self.find_reference(text)? else {
            return Ok(None);
        };
        if self.warns_of_ambiguity()? {
            let is_prefix = || {
                let prefix = self.matches_of(text)?;
                Ok::<bool, Error>(matches!(prefix, Some(PrefixMatches::One(_))))
            };
            if found.is_ambiguous || is_prefix()? {
                self.warn_of_ambiguity(text);
            }
        }
        Ok(Some(found.id))
    }

    /// Resolves `name-COUNT-gPREFIX`, the output of `git describe`.
    fn resolve_description(&self, text: &BStr) -> Result<Option<ObjectId>> {
        let digits = text
            .iter()
            .rev()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        let start = text.len() - digits;
        let described = text[..start].strip_suffix(b"-g").unwrap_or_default();
        if digits == 0 || !name::is_valid(described.as_bstr(), name::Form::OneLevel) {
            return Ok(None);
        }
        self.resolve_prefix(text[start..].as_bstr(), ExpectedType::Committish)
    }

    fn matches_of(&self, text: &BStr) -> Result<Option<PrefixMatches>> {
        let length = text.len();
        if length < SHORTEST_PREFIX
            || length > self.object_hash().len_in_hex()
            || !text.iter().all(u8::is_ascii_hexdigit)
        {
            return Ok(None);
        }
        let lower = text.to_ascii_lowercase();
        let Ok(prefix) = Prefix::from_hex_nonempty(&lower.to_str_lossy()) else {
            return Ok(None);
        };
        self.objects()?.prefix(prefix).map(Some).map_err(from_odb)
    }

    /// Returns all objects whose ids begin with `text`, sorted (`git rev-parse --disambiguate`).
    /// Returns `None` if `text` is too short or not hexadecimal.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the object store cannot be read.
    pub fn objects_with_prefix(&self, text: &BStr) -> Result<Option<Vec<ObjectId>>> {
        Ok(self.matches_of(text)?.map(|matches| match matches {
            PrefixMatches::None => Vec::new(),
            PrefixMatches::One(id) => vec![id],
            PrefixMatches::Ambiguous(ids) => ids,
        }))
    }

    fn resolve_prefix(&self, text: &BStr, want: ExpectedType) -> Result<Option<ObjectId>> {
        let ids = match self.matches_of(text)? {
            None | Some(PrefixMatches::None) => return Ok(None),
            Some(PrefixMatches::One(id)) => return Ok(Some(id)),
            Some(PrefixMatches::Ambiguous(ids)) => ids,
        };
        let want = self.configured_want(want)?;
        let mut fitting = Vec::new();
        for id in &ids {
            if self.fits(*id, want)? {
                fitting.push(*id);
            }
        }
        match fitting.as_slice() {
            [id] => Ok(Some(*id)),
            [] => Err(self.ambiguous(text, &ids)?),
            _ => Err(self.ambiguous(text, &fitting)?),
        }
    }

    fn configured_want(&self, want: ExpectedType) -> Result<ExpectedType> {
        if want != ExpectedType::Anything {
            return Ok(want);
        }
        let Some(entry) = self.config().entry_of("core.disambiguate") else {
            return Ok(want);
        };
        match entry.string()?.as_bytes() {
            b"none" => Ok(ExpectedType::Anything),
            b"commit" => Ok(ExpectedType::Commit),
            b"committish" => Ok(ExpectedType::Committish),
            b"tree" => Ok(ExpectedType::Tree),
            b"treeish" => Ok(ExpectedType::Treeish),
            b"blob" => Ok(ExpectedType::Blob),
            other => {
                let message = format!("unknown hint type for '{}': {}", entry.key, other.as_bstr());
                Err(Error::new(ErrorKind::ConfigValue, message))
            }
        }
    }

    fn fits(&self, id: ObjectId, want: ExpectedType) -> Result<bool> {
        if want == ExpectedType::Anything {
            return Ok(true);
        }
        let mut kind = self.kind_of(id)?;
        if kind == Some(ObjectKind::Tag)
            && matches!(want, ExpectedType::Committish | ExpectedType::Treeish)
        {
            kind = match self.peel_tag(id) {
                Ok(Some(target)) => self.kind_of(target)?,
                _ => None,
            };
        }
        Ok(match want {
            ExpectedType::Anything => true,
            ExpectedType::Commit | ExpectedType::Committish => kind == Some(ObjectKind::Commit),
            ExpectedType::Tree => kind == Some(ObjectKind::Tree),
            ExpectedType::Treeish => matches!(kind, Some(ObjectKind::Tree | ObjectKind::Commit)),
            ExpectedType::Blob => kind == Some(ObjectKind::Blob),
        })
    }

    /// Returns the type of the object `id`; `None` if the object does not exist.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Io`] or [`ErrorKind::Object`] if the object cannot be read.
    pub fn kind_of(&self, id: ObjectId) -> Result<Option<ObjectKind>> {
        let header = self.objects()?.header(&id).map_err(from_odb)?;
        Ok(header.map(|header| header.kind))
    }

    fn ambiguous(&self, text: &BStr, ids: &[ObjectId]) -> Result<Error> {
        let mut lines = Vec::new();
        for id in ids.iter().take(LONGEST_LIST) {
            lines.push((
                self.kind_of(*id)?.map_or(9, rank),
                *id,
                self.describe_candidate(*id)?,
            ));
        }
        lines.sort();
        let mut hint = String::from("The candidates are:");
        for (_, _, line) in &lines {
            hint.push_str("\n  ");
            hint.push_str(line);
        }
        let message = format!("short object ID {text} is ambiguous");
        Ok(Error::new(ErrorKind::Ambiguous, message).with_hint(hint))
    }

    fn describe_candidate(&self, id: ObjectId) -> Result<String> {
        let short = self.abbreviate(&id)?;
        let mut content = Vec::new();
        let kind = self.objects()?.find(&id, &mut content).map_err(from_odb)?;
        Ok(match kind {
            Some(ObjectKind::Commit) => {
                let commit = CommitRef::new(&content);
                let date = short_date(commit.author());
                format!("{short} commit {date} - {}", commit.subject())
            }
            Some(ObjectKind::Tag) => {
                let tag = TagRef::new(&content);
                let date = short_date(tag.tagger());
                format!("{short} tag {date} - {}", tag.name().unwrap_or_default())
            }
            Some(ObjectKind::Tree) => format!("{short} tree"),
            Some(ObjectKind::Blob) => format!("{short} blob"),
            None => format!("{short} [bad object]"),
        })
    }
}

/// Formats the date of an identity (`--date=short`).
fn short_date(identity: Option<IdentityRef<'_>>) -> String {
    let time = identity.and_then(IdentityRef::time);
    time.and_then(date::short).unwrap_or_default()
}

/// Returns the sort key of an object type in the list of candidates.
fn rank(kind: ObjectKind) -> u8 {
    match kind {
        ObjectKind::Tag => 0,
        ObjectKind::Commit => 1,
        ObjectKind::Tree => 2,
        ObjectKind::Blob => 3,
    }
}
