//! Serves the command `ls-refs`.

use std::sync::Arc;

use bstr::ByteSlice;
use pronto_hash::ObjectId;

use super::super::cache::{KeyDigester, ListingCache, ListingKey, listing_key};
use super::super::writer::UnsentLines;
use super::super::{ConversationEnd, UploadSession, broken};
use super::Request;
use crate::Result;

/// The number of ref prefixes from which on all refs are listed, and the client filters them.
pub const MOST_PREFIXES: usize = 65_536;

/// The limit for the total size of all prefixes, which suffices for a fetch of ten thousand
/// branches.
pub const MOST_PREFIX_BYTES: usize = 4 << 20;

/// The size below which lists are not cached, because creating them is faster than a lookup.
const LEAST_KEPT_BYTES: usize = 64 << 10;

/// The arguments of the command.
#[derive(Debug, Default)]
struct LsRefsArguments {
    peel: bool,
    symrefs: bool,
    unborn: bool,
    prefixes: Vec<Vec<u8>>,
}

impl LsRefsArguments {
    /// Returns a digest that differs for arguments that select other refs or properties.
    fn digest(&self) -> ObjectId {
        let mut parts = KeyDigester::new();
        for is_set in [self.peel, self.symrefs, self.unborn] {
            parts.add(&[is_set.into()]);
        }
        for prefix in &self.prefixes {
            parts.add(prefix);
        }
        parts.finish()
    }
}

impl<'a> UploadSession<'a> {
    /// Lists refs.
    pub(super) fn list(&mut self, request: &Request) -> Result<ConversationEnd> {
        let arguments = self.list_arguments(request)?;
        let key = self.listing_key(&arguments)?;
        let kept = key.and_then(|(cache, key)| cache.get(&key));
        if let Some(listing) = kept {
            self.write(&listing)?;
            return Ok(ConversationEnd::Served);
        }
        let listing: Arc<[u8]> = self.listing(&arguments)?.into();
        if let Some((cache, key)) = key
            && listing.len() >= LEAST_KEPT_BYTES
            // The refs may have changed while they were listed.
            && self.listing_key(&arguments)?.is_some_and(|(_, now)| now == key)
        {
            cache.put(key, Arc::clone(&listing));
        }
        self.write(&listing)?;
        Ok(ConversationEnd::Served)
    }

    fn listing_key(
        &self,
        arguments: &LsRefsArguments,
    ) -> Result<Option<(&'a dyn ListingCache, ListingKey)>> {
        let Some(cache) = self.options.listings.as_deref() else {
            return Ok(None);
        };
        let key = listing_key(
            &self.view(),
            &arguments.digest(),
            self.options.view_of.as_deref(),
        )?;
        Ok(key.map(|key| (cache, key)))
    }

    /// Returns the response.
    fn listing(&self, arguments: &LsRefsArguments) -> Result<Vec<u8>> {
        let mut out = UnsentLines::default();
        let mut shown = self.view().shown(&arguments.prefixes, arguments.peel)?;
        // As in Git, the `HEAD` of a namespace is also found below its prefix.
        if !self.repository.refs().namespace().is_empty()
            && let Some(head) = shown.first().filter(|first| first.name == "HEAD")
            && head.id.is_some()
        {
            let head = head.clone();
            shown.insert(0, head);
        }
        for reference in shown {
            let mut line = match reference.id {
                Some(id) => id.to_string().into_bytes(),
                None if arguments.unborn && arguments.symrefs && reference.symbolic.is_some() => {
                    b"unborn".to_vec()
                }
                None => continue,
            };
            line.push(b' ');
            line.extend_from_slice(&reference.name);
            if let Some(target) = reference.symbolic.filter(|_| arguments.symrefs) {
                line.extend_from_slice(b" symref-target:");
                line.extend_from_slice(&target);
            }
            if let Some(peeled) = reference.peeled.filter(|_| arguments.peel) {
                line.extend_from_slice(format!(" peeled:{peeled}").as_bytes());
            }
            line.push(b'\n');
            out.text(line)?;
        }
        out.flush();
        Ok(out.bytes)
    }

    fn list_arguments(&mut self, request: &Request) -> Result<LsRefsArguments> {
        let ignores_unborn = {
            let value = self.repository.config().string("lsrefs.unborn")?;
            value.is_some_and(|value| value == "ignore")
        };
        let mut arguments = LsRefsArguments::default();
        let mut prefix_bytes = 0;
        let what = "expected flush after ls-refs arguments";
        while let Some(line) = self.argument(request, what)? {
            match line.as_slice() {
                b"peel" => arguments.peel = true,
                b"symrefs" => arguments.symrefs = true,
                b"unborn" => arguments.unborn = !ignores_unborn,
                other => match other.strip_prefix(b"ref-prefix ") {
                    Some(prefix) if arguments.prefixes.len() < MOST_PREFIXES => {
                        prefix_bytes += prefix.len();
                        if prefix_bytes > MOST_PREFIX_BYTES {
                            let message = format!(
                                "the prefixes of ls-refs have more than {MOST_PREFIX_BYTES} bytes"
                            );
                            return Err(broken(message));
                        }
                        arguments.prefixes.push(prefix.to_vec());
                    }
                    Some(_) => {}
                    None => return Err(broken(format!("unexpected line: '{}'", other.as_bstr()))),
                },
            }
        }
        if arguments.prefixes.len() >= MOST_PREFIXES {
            arguments.prefixes.clear();
        }
        Ok(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_arguments_have_other_digests() {
        let of = |prefixes: &[&[u8]]| LsRefsArguments {
            prefixes: prefixes.iter().map(|prefix| prefix.to_vec()).collect(),
            ..LsRefsArguments::default()
        };
        let mut peeled = of(&[]);
        peeled.peel = true;
        let mut symbolic = of(&[]);
        symbolic.symrefs = true;
        let all = [
            of(&[]),
            peeled,
            symbolic,
            of(&[b""]),
            of(&[b"a", b"b"]),
            of(&[b"b", b"a"]),
            of(&[b"ab"]),
        ];
        let digests: std::collections::HashSet<_> =
            all.iter().map(LsRefsArguments::digest).collect();
        assert_eq!(digests.len(), all.len());
        assert_eq!(of(&[b"a"]).digest(), of(&[b"a"]).digest());
    }
}
