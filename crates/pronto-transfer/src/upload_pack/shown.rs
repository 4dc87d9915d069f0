//! Lists the refs that are advertised to a client.

use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};
use gix_object::Kind as ObjectKind;
use pronto_hash::{IdCache, ObjectId};

use super::hidden::Hidden;
use crate::objects::from_odb;
use crate::refs::BrokenRef;
use crate::refs::name::{Form, is_valid};
use crate::{Repository, Result};

/// An advertised ref.
#[derive(Clone, Debug)]
pub(super) struct VisibleRef {
    /// The name of the ref in the namespace.
    pub(super) name: BString,
    /// The object id; `None` for an unborn `HEAD`.
    pub(super) id: Option<ObjectId>,
    pub(super) symbolic: Option<BString>,
    pub(super) peeled: Option<ObjectId>,
}

/// The refs of a repository, as a client of a namespace sees them.
pub(super) struct NamespaceView<'a> {
    pub(super) repository: &'a Repository,
    pub(super) hidden: &'a Hidden,
}

impl NamespaceView<'_> {
    /// Returns the advertised refs, `HEAD` first; with `prefixes`, only the refs that start with
    /// one of them. Costs reading the refs below the prefixes, and with `peel` the types of their
    /// objects.
    ///
    /// # Errors
    /// Fails if refs or objects cannot be read.
    pub(super) fn shown(&self, prefixes: &[Vec<u8>], peel: bool) -> Result<Vec<VisibleRef>> {
        let is_wanted = |name: &[u8]| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        let mut found = Vec::new();
        if is_wanted(b"HEAD")
            && let Some(head) = self.head()?
            && !self.hides(head.name.as_bstr())
        {
            found.push(head);
        }
        for prefix in outermost(prefixes) {
            self.for_each(&prefix, &mut |shown, is_hidden| {
                if !is_hidden && is_wanted(&shown.name) {
                    found.push(shown);
                }
            })?;
        }
        if peel {
            self.peel(&mut found)?;
        }
        Ok(found)
    }

    /// Calls `visit` for each ref of the namespace that starts with `prefix`, with a flag that is
    /// true if the ref is hidden.
    ///
    /// # Errors
    /// Fails if the refs cannot be read.
    pub(super) fn for_each(
        &self,
        prefix: &[u8],
        visit: &mut dyn FnMut(VisibleRef, bool),
    ) -> Result<()> {
        let refs = self.repository.refs();
        let full = [refs.namespace().as_bytes(), prefix].concat();
        refs.for_each_or_broken(full, |reference| {
            let (full, found) = match reference {
                Ok(reference) => (reference.name, Some(reference)),
                // As in Git, a broken ref is advertised with the null object id.
                Err(BrokenRef::Contents(name))
                    if is_valid(name, Form::Full) && !refs.is_symbolic(name) =>
                {
                    (name, None)
                }
                Err(_) => return Ok(ControlFlow::Continue(())),
            };
            let Some(name) = self.without_namespace(full) else {
                return Ok(ControlFlow::Continue(()));
            };
            let is_hidden = self.hidden.hides_in(Some(name), full);
            let mut shown = VisibleRef {
                name: name.to_owned(),
                id: Some(self.repository.object_hash().null()),
                symbolic: None,
                peeled: None,
            };
            if let Some(found) = found {
                shown.id = Some(found.id);
                shown.peeled = found.peeled;
                if found.symbolic.is_some() {
                    shown.symbolic = self.target_of(full)?;
                }
            }
            visit(shown, is_hidden);
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Whether the ref with this full name is hidden.
    pub(super) fn hides_full(&self, full: &BStr) -> bool {
        self.hidden.hides_in(self.without_namespace(full), full)
    }

    /// Returns `HEAD` of the namespace, even if it is hidden.
    ///
    /// # Errors
    /// Fails if `HEAD` cannot be read.
    pub(super) fn head(&self) -> Result<Option<VisibleRef>> {
        let refs = self.repository.refs();
        let full = [refs.namespace().as_bytes(), b"HEAD"].concat();
        let Some(head) = refs.find(&full)? else {
            return Ok(None);
        };
        let symbolic = match &head.target {
            crate::refs::RefTarget::Symbolic(_) => self.target_of(full.as_bstr())?,
            _ => None,
        };
        Ok(Some(VisibleRef {
            name: "HEAD".into(),
            id: refs.id_of(&full)?.filter(|id| !id.is_null()),
            symbolic,
            peeled: None,
        }))
    }

    /// Returns the object id of the ref `name` of the namespace; `None` if the ref is hidden or
    /// missing.
    ///
    /// # Errors
    /// Fails if the ref cannot be read.
    pub(super) fn id_of(&self, name: &BStr) -> Result<Option<ObjectId>> {
        if !is_valid(name, Form::OneLevel) || self.hides(name) {
            return Ok(None);
        }
        let refs = self.repository.refs();
        let full = [refs.namespace().as_bytes(), name.as_bytes()].concat();
        refs.id_of(full)
    }

    fn hides(&self, name: &BStr) -> bool {
        let full = [self.repository.refs().namespace().as_bytes(), name].concat();
        self.hidden.hides_in(Some(name), full.as_bstr())
    }

    fn without_namespace<'n>(&self, full: &'n BStr) -> Option<&'n BStr> {
        let namespace = self.repository.refs().namespace();
        full.strip_prefix(namespace.as_bytes()).map(BStr::new)
    }

    /// Returns the name of the ref to which a symref finally points.
    fn target_of(&self, full: &BStr) -> Result<Option<BString>> {
        let resolved = self.repository.refs().resolve(full)?;
        let name = resolved.map(|resolved| resolved.name);
        Ok(
            name.map(|name| match self.without_namespace(name.as_bstr()) {
                Some(name) => name.to_owned(),
                None => name,
            }),
        )
    }

    /// Peels tags, and drops refs to objects that do not exist.
    fn peel(&self, found: &mut Vec<VisibleRef>) -> Result<()> {
        let store = self.repository.objects()?;
        // Many refs may point to the same object.
        let mut headers = IdCache::default();
        let mut kept = Vec::with_capacity(found.len());
        for mut reference in found.drain(..) {
            if let (Some(id), None) = (reference.id.filter(|id| !id.is_null()), reference.peeled) {
                let header =
                    headers.get_or_insert_with(&id, || store.header(&id).map_err(from_odb))?;
                match header.map(|header| header.kind) {
                    // As in Git, `HEAD` is advertised even if its object is missing.
                    None if reference.name != "HEAD" => continue,
                    None => {}
                    Some(ObjectKind::Tag) => reference.peeled = self.repository.peel_tag(id)?,
                    Some(_) => {}
                }
            }
            kept.push(reference);
        }
        *found = kept;
        Ok(())
    }
}

/// Returns the prefixes below `refs/` that no other prefix covers, in order.
fn outermost(prefixes: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const ALL: &[u8] = b"refs/";
    if prefixes.is_empty() {
        return vec![ALL.to_vec()];
    }
    let below = prefixes.iter().filter_map(|prefix| {
        if ALL.starts_with(prefix) {
            return Some(ALL.to_vec());
        }
        prefix.starts_with(ALL).then(|| prefix.clone())
    });
    let mut below: Vec<Vec<u8>> = below.collect();
    below.sort_unstable();
    let mut last: Option<Vec<u8>> = None;
    below.retain(|prefix| {
        let is_covered = last.as_ref().is_some_and(|last| prefix.starts_with(last));
        if !is_covered {
            last = Some(prefix.clone());
        }
        !is_covered
    });
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_visited_once_and_in_order() {
        let outermost = |prefixes: &[&str]| -> Vec<String> {
            let prefixes: Vec<Vec<u8>> = prefixes
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect();
            let found = outermost(&prefixes).into_iter();
            found
                .map(|prefix| String::from_utf8_lossy(&prefix).into_owned())
                .collect()
        };
        let given = [
            "refs/tags/",
            "HEAD",
            "refs/heads/main",
            "refs/heads/",
            "refs/tags/",
        ];
        assert_eq!(outermost(&given), ["refs/heads/", "refs/tags/"]);
        assert_eq!(outermost(&["refs/tags/", "ref"]), ["refs/"]);
        assert_eq!(outermost(&[]), ["refs/"]);
        assert!(outermost(&["HEAD"]).is_empty());
    }
}
