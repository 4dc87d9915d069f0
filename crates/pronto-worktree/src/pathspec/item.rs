//! A single pathspec.

use crate::glob::{self, MatchOptions};
use bstr::{BStr, BString, ByteSlice};

use super::magic::{Magic, parse_magic};
use super::{PathspecDefaults, split_from_top, wrong};
use crate::{Error, ErrorKind};

#[derive(Clone, Debug)]
pub(super) struct PathspecItem {
    pub(super) original: BString,
    /// The path or pattern relative to the top, without a slash at its end.
    pub(super) text: BString,
    /// Whether the pathspec ends with a slash, so that it matches only directories.
    pub(super) is_directory: bool,
    /// The length of the part of `text` that comes from the current directory. This part is always
    /// matched with regard to case.
    pub(super) prefix_len: usize,
    /// The length of the part of `text` without wildcards.
    pub(super) literal_len: usize,
    pub(super) glob: bool,
    pub(super) icase: bool,
    pub(super) exclude: bool,
}

/// The relation of a pathspec to a directory. Later variants take precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathspecRelation {
    Outside,
    /// All paths in the directory match.
    Inside,
    /// A path below the directory could match.
    Leading,
    /// A wildcard matches the directory itself.
    Wildcard,
    Exact,
}

/// The extent to which a pathspec matches the content of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathspecExtent {
    /// The directory itself, or some paths below it.
    Some,
    /// Also all paths beside the directory.
    All,
}

impl PathspecItem {
    pub(super) fn parse(
        spec: &BStr,
        prefix: &BStr,
        work_tree: &std::path::Path,
        defaults: PathspecDefaults,
    ) -> Result<PathspecItem, Error> {
        if spec.is_empty() {
            return Err(wrong(
                "empty string is not a valid pathspec. please use . instead if you meant to match \
                 all paths",
            ));
        }
        let mut magic = Magic::default();
        let mut path = spec;
        if !defaults.literal {
            path = parse_magic(spec, &mut magic)?;
        }
        magic.literal |= defaults.literal;
        magic.icase |= defaults.icase;
        if !magic.literal && !magic.glob && defaults.noglob {
            magic.noglob = true;
        }
        magic.glob |= defaults.glob && !magic.literal && !magic.noglob;
        if magic.glob && magic.literal {
            return Err(wrong(format!(
                "{spec}: 'literal' and 'glob' are incompatible"
            )));
        }
        let mut item = PathspecItem::parse_path(path, prefix, work_tree, magic)?;
        item.original = spec.to_owned();
        Ok(item)
    }

    pub(super) fn parse_path(
        path: &BStr,
        prefix: &BStr,
        work_tree: &std::path::Path,
        magic: Magic,
    ) -> Result<PathspecItem, Error> {
        let prefix = if magic.top { "".into() } else { prefix };
        let (mut text, prefix_len) =
            split_from_top(path, prefix, work_tree).map_err(|error| match error.kind() {
                ErrorKind::Pathspec => wrong(format!("{path}: {}", error.message())),
                _ => error,
            })?;
        let is_directory = text.ends_with(b"/");
        if is_directory {
            text.pop();
        }
        let prefix_len = prefix_len.min(text.len());
        let wild = !magic.literal && !magic.noglob;
        let literal_len = if wild {
            text[prefix_len..]
                .find_byteset(b"*?[\\")
                .map_or(text.len(), |at| prefix_len + at)
        } else {
            text.len()
        };
        Ok(PathspecItem {
            original: path.to_owned(),
            text,
            is_directory,
            prefix_len,
            literal_len,
            glob: magic.glob,
            icase: magic.icase,
            exclude: magic.exclude,
        })
    }

    pub(super) fn matches(&self, path: &BStr, is_directory: bool) -> bool {
        let text = self.text.as_bstr();
        if text.is_empty() {
            return true;
        }
        // The text matches as a path, or as a parent directory of the path.
        if path.len() >= text.len() && self.same(&path[..text.len()], text) {
            match path.get(text.len()) {
                None if !self.is_directory || is_directory => return true,
                Some(b'/') => return true,
                _ => {}
            }
        }
        self.literal_len < text.len()
            && path.len() >= self.literal_len
            && self.same(&path[..self.literal_len], &text[..self.literal_len])
            && self.wildmatch(path)
    }

    /// Returns the relation to the directory `name`. `path` is the same path with a slash at its end.
    pub(super) fn relation(&self, name: &BStr, path: &BStr) -> PathspecRelation {
        let exact = name.len() == self.text.len() && self.same(name, &self.text);
        if exact && self.is_directory {
            return PathspecRelation::Exact;
        }
        let below = path.get(self.text.len()) == Some(&b'/');
        if self.text.is_empty() || (below && self.same(&path[..self.text.len()], &self.text)) {
            return PathspecRelation::Inside;
        }
        let has_wildcards = self.literal_len < self.text.len();
        let literal = &self.text[..self.literal_len];
        let starts = path.len() >= literal.len() && self.same(&path[..literal.len()], literal);
        if has_wildcards && starts && self.wildmatch(path) {
            return PathspecRelation::Wildcard;
        }
        let is_above =
            self.text.get(name.len()) == Some(&b'/') && self.same(name, &self.text[..name.len()]);
        match is_above || (has_wildcards && starts) {
            true => PathspecRelation::Leading,
            false => PathspecRelation::Outside,
        }
    }

    fn wildmatch(&self, path: &BStr) -> bool {
        let how = MatchOptions {
            in_components: self.glob,
            fold_case: self.icase,
        };
        let (literal, pattern) = self.text.split_at(self.literal_len);
        let Some((start, rest)) = path.split_at_checked(self.literal_len) else {
            return false;
        };
        if !self.same(start, literal) {
            return false;
        }
        if self.is_directory {
            // The removed slash matches itself.
            return glob::matches(&[pattern, b"/"].concat(), rest, how);
        }
        glob::matches(pattern, rest, how)
    }

    pub(super) fn same(&self, one: &[u8], two: &[u8]) -> bool {
        if !self.icase {
            return one == two;
        }
        let cut = self.prefix_len.min(one.len()).min(two.len());
        one[..cut] == two[..cut] && one[cut..].eq_ignore_ascii_case(&two[cut..])
    }

    /// Returns the extent to which a comparison of trees matches the directory at `path` (without a
    /// slash at its end).
    pub(super) fn reach(&self, path: &BStr, recursive: bool) -> Option<PathspecExtent> {
        let (above, name) = path.split_at(path.rfind_byte(b'/').map_or(0, |slash| slash + 1));
        let slash: &[u8] = if self.is_directory { b"/" } else { b"" };
        let whole = [self.text.as_bytes(), slash].concat();
        let has_wildcards = self.literal_len < self.text.len();
        let leads_here = match above.get(..whole.len()) {
            Some(start) if self.same(start, &whole) => {
                let ends = whole.is_empty() || whole.ends_with(b"/");
                if ends || above.get(whole.len()) == Some(&b'/') {
                    return Some(PathspecExtent::All);
                }
                false
            }
            Some(_) => false,
            None => self.same(above, &whole[..above.len()]),
        };
        if leads_here {
            let rest = &whole[above.len()..];
            let is_name = rest
                .get(..name.len())
                .is_some_and(|start| match self.icase {
                    true => start.eq_ignore_ascii_case(name),
                    false => start == name,
                });
            if is_name && matches!(rest.get(name.len()), None | Some(b'/')) {
                return Some(PathspecExtent::Some);
            }
        } else {
            let literal = &whole[..self.literal_len];
            let start = above.get(..literal.len());
            if !start.is_some_and(|start| self.same(start, literal)) {
                return None;
            }
        }
        (has_wildcards && (recursive || self.wildmatch(path))).then_some(PathspecExtent::Some)
    }

    /// Returns whether a path below the directory `path`, which does not match itself, could match.
    pub(super) fn may_match_below(&self, path: &BStr) -> bool {
        let literal = &self.text[..self.literal_len];
        let common = literal.len().min(path.len());
        if !self.same(&path[..common], &literal[..common]) {
            return false;
        }
        if literal.len() <= path.len() {
            // Only a wildcard can match below the directory.
            return self.literal_len < self.text.len();
        }
        literal[path.len()] == b'/'
    }
}
