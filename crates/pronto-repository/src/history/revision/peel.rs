//! Suffixes that derive one object from another: `^2`, `~3`, `^{tree}`, `^{/text}`.

use bstr::{BStr, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::ObjectId;

use super::ExpectedType;
use crate::history::Commits;
use crate::objects::from_odb;
use crate::{Error, ErrorKind, Repository, Result};
use pronto_object::TagRef;

/// The largest number of suffixes of one revision.
const MAX_STEPS: usize = 4096;

/// The last suffix of a revision.
enum RevisionSuffix<'a> {
    /// `^N`.
    Parent(usize),
    /// `~N`.
    Ancestor(usize),
    /// `^{…}`.
    Peel(&'a BStr),
}

/// Splits the last suffix off `text`. Fails if the suffix is malformed.
fn split(text: &BStr) -> Result<Option<(&BStr, RevisionSuffix<'_>)>, ()> {
    let digits = text
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let at = text.len() - digits;
    if at > 0 && matches!(text[at - 1], b'^' | b'~') {
        let number = match digits {
            0 => 1,
            _ => {
                let number = text[at..]
                    .to_str()
                    .ok()
                    .and_then(|text| text.parse::<i32>().ok());
                number.ok_or(())? as usize
            }
        };
        let step = match text[at - 1] {
            b'^' => RevisionSuffix::Parent(number),
            _ => RevisionSuffix::Ancestor(number),
        };
        return Ok(Some((text[..at - 1].as_bstr(), step)));
    }
    if !text.ends_with(b"}") {
        return Ok(None);
    }
    // Braces inside, as in `^{/a{2}}`, belong to the pattern: the first matching `^{` counts.
    match text.rfind(b"^{") {
        Some(at) => {
            let inner = text[at + 2..text.len() - 1].as_bstr();
            Ok(Some((text[..at].as_bstr(), RevisionSuffix::Peel(inner))))
        }
        None => Ok(None),
    }
}

impl Repository {
    /// Resolves `text`: a name with suffixes, but without a path.
    pub(super) fn resolve_object(
        &self,
        text: &BStr,
        want: ExpectedType,
        depth: usize,
    ) -> Result<Option<ObjectId>> {
        let mut steps = Vec::new();
        let mut base = text;
        loop {
            match split(base) {
                Ok(Some((rest, step))) if steps.len() + depth < MAX_STEPS => {
                    steps.push(step);
                    base = rest;
                }
                Ok(None) => break,
                _ => return Ok(None),
            }
        }
        let base_want = match steps.last() {
            None => want,
            Some(RevisionSuffix::Parent(_) | RevisionSuffix::Ancestor(_)) => {
                ExpectedType::Committish
            }
            Some(RevisionSuffix::Peel(inner)) => match inner.as_bytes() {
                b"commit" => ExpectedType::Committish,
                b"tree" => ExpectedType::Treeish,
                [b'/', ..] => ExpectedType::Committish,
                _ => ExpectedType::Anything,
            },
        };
        let Some(mut id) = self.resolve_name(base, base_want)? else {
            return Ok(None);
        };
        for step in steps.iter().rev() {
            match self.follow(id, step, text)? {
                Some(next) => id = next,
                None => return Ok(None),
            }
        }
        Ok(Some(id))
    }

    fn follow(
        &self,
        id: ObjectId,
        step: &RevisionSuffix<'_>,
        text: &BStr,
    ) -> Result<Option<ObjectId>> {
        match step {
            RevisionSuffix::Peel(inner) => self.peel_as(id, inner, text),
            RevisionSuffix::Parent(number) => {
                let Some(commit) = self.peel_to(id, ObjectKind::Commit)? else {
                    return Ok(None);
                };
                if *number == 0 {
                    return Ok(Some(commit));
                }
                let mut commits = Commits::new(self)?;
                let start = commits.number(&commit)?;
                match u32::try_from(number - 1) {
                    Ok(which) if which < commits.parent_count(start) => {
                        commits.parent_id(start, which).map(Some)
                    }
                    _ => Ok(None),
                }
            }
            RevisionSuffix::Ancestor(number) => {
                let Some(commit) = self.peel_to(id, ObjectKind::Commit)? else {
                    return Ok(None);
                };
                if *number == 0 {
                    return Ok(Some(commit));
                }
                let mut commits = Commits::new(self)?;
                let mut at = commits.number(&commit)?;
                for _ in 1..*number {
                    if commits.parent_count(at) == 0 {
                        return Ok(None);
                    }
                    at = commits.parent(at, 0)?;
                }
                match commits.parent_count(at) {
                    0 => Ok(None),
                    _ => commits.parent_id(at, 0).map(Some),
                }
            }
        }
    }

    fn peel_as(&self, id: ObjectId, inner: &BStr, text: &BStr) -> Result<Option<ObjectId>> {
        let kind = match inner.as_bytes() {
            b"" => return self.peel_tags(id),
            b"object" => return Ok(self.kind_of(id)?.map(|_| id)),
            b"commit" => ObjectKind::Commit,
            b"tree" => ObjectKind::Tree,
            b"blob" => ObjectKind::Blob,
            b"tag" => ObjectKind::Tag,
            [b'/', pattern @ ..] => {
                let Some(commit) = self.peel_to(id, ObjectKind::Commit)? else {
                    return Ok(None);
                };
                if pattern.is_empty() {
                    return Ok(Some(commit));
                }
                return self.newest_matching(pattern.as_bstr(), Some(commit));
            }
            _ => return Ok(None),
        };
        if let Some(found) = self.peel_to(id, kind)? {
            return Ok(Some(found));
        }
        let mut last = id;
        if let Some(target) = self.peel_tags(id)? {
            last = target;
        }
        let Some(mut found) = self.kind_of(last)? else {
            return Ok(None);
        };
        // Git peels a commit to its tree before it reports the error.
        if found == ObjectKind::Commit {
            found = ObjectKind::Tree;
        }
        let message =
            format!("{text}: expected {kind} type, but the object dereferences to {found} type");
        Err(Error::new(ErrorKind::InvalidInput, message))
    }

    /// Peels tags: returns the object to which the chain of tags at `id` leads, or `id` itself if it is
    /// not a tag. Returns `None` if an object is missing.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if a tag is malformed.
    pub fn peel_tags(&self, id: ObjectId) -> Result<Option<ObjectId>> {
        match self.kind_of(id)? {
            None => Ok(None),
            Some(ObjectKind::Tag) => self.peel_tag(id),
            Some(_) => Ok(Some(id)),
        }
    }

    /// Peels `id` to an object of type `kind`: over tags, and from a commit to its tree. Returns `None`
    /// if there is no such object.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Object`] if an object is malformed.
    pub fn peel_to(&self, id: ObjectId, kind: ObjectKind) -> Result<Option<ObjectId>> {
        let mut current = id;
        let mut buffer = Vec::new();
        for _ in 0..MAX_STEPS {
            let Some(found) = self.kind_of(current)? else {
                return Ok(None);
            };
            if found == kind {
                return Ok(Some(current));
            }
            match found {
                ObjectKind::Tag => {
                    self.objects()?
                        .find(&current, &mut buffer)
                        .map_err(from_odb)?;
                    let target = TagRef::new(&buffer).target();
                    current = target.ok_or_else(|| {
                        Error::new(ErrorKind::Corrupt, "malformed tag").on_object(current)
                    })?;
                }
                ObjectKind::Commit if kind == ObjectKind::Tree => {
                    current = self.commit_links(&current, &mut buffer)?.tree;
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
