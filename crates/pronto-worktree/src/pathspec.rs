//! Pathspecs, which select the paths of a command.

use crate::{Error, ErrorKind};
use bstr::{BStr, BString, ByteSlice};
use item::{PathspecExtent, PathspecItem, PathspecRelation};
use pronto_io::short::Short as _;

mod absolute;
mod item;
mod magic;

/// Defaults for all pathspecs, from the environment, global options, or the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathspecDefaults {
    /// Disable magic and wildcards (`--literal-pathspecs`).
    pub literal: bool,
    /// Let wildcards not match slashes (`--glob-pathspecs`).
    pub glob: bool,
    /// Disable wildcards (`--noglob-pathspecs`).
    pub noglob: bool,
    /// Match without regard to case (`--icase-pathspecs`).
    pub icase: bool,
    /// Whether a list of only exclude pathspecs applies to the directory in which they are given,
    /// instead of to the whole worktree. Git's commands differ in this respect.
    pub exclude_below_prefix: bool,
}

/// A list of pathspecs, relative to the top of the worktree.
#[derive(Clone, Debug, Default)]
pub struct Pathspec {
    items: Vec<PathspecItem>,
}

/// The relation of a directory to a list of pathspecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryRelation {
    /// No path in the directory matches.
    Outside,
    /// Some paths in the directory may match.
    Partly,
    /// All paths in the directory match.
    Inside,
}

impl Pathspec {
    /// Parses `specs`, which are relative to the directory `prefix` (empty for the top, otherwise with
    /// a slash at its end). `work_tree` is used for absolute paths and messages.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::Pathspec`] and Git's message if a pathspec is malformed or outside of
    /// the worktree, [`ErrorKind::Unsupported`] if a pathspec uses attributes, or [`ErrorKind::Io`] if
    /// the symbolic links of an absolute path cannot be resolved.
    pub fn parse<'a>(
        specs: impl IntoIterator<Item = &'a BStr>,
        prefix: &BStr,
        work_tree: &std::path::Path,
        defaults: PathspecDefaults,
    ) -> Result<Pathspec, Error> {
        let mut items = Vec::new();
        for spec in specs {
            items.push(PathspecItem::parse(spec, prefix, work_tree, defaults)?);
        }
        if !items.is_empty() && items.iter().all(|item| item.exclude) {
            let place = match defaults.exclude_below_prefix {
                true => prefix,
                false => BStr::new(""),
            };
            let all = BStr::new(".");
            items.push(PathspecItem::parse_path(
                all,
                place,
                work_tree,
                magic::Magic::default(),
            )?);
        }
        Ok(Pathspec { items })
    }

    /// Returns whether there are no pathspecs, so that all paths match.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether `path` matches. `is_directory` is set for paths that stand for a whole
    /// directory.
    pub fn matches(&self, path: &BStr, is_directory: bool) -> bool {
        self.items.is_empty() || self.position(path, is_directory).is_some()
    }

    /// Returns the position of the first pathspec that matches `path`, unless an exclude pathspec
    /// matches.
    pub fn position(&self, path: &BStr, is_directory: bool) -> Option<usize> {
        let hit = |item: &&PathspecItem| item.matches(path, is_directory);
        if self
            .items
            .iter()
            .filter(|item| item.exclude)
            .any(|item| hit(&item))
        {
            return None;
        }
        self.items
            .iter()
            .position(|item| !item.exclude && hit(&item))
    }

    /// Marks all pathspecs that match `path` in `seen`, which has [`len`](Self::len) elements. Exclude
    /// pathspecs are marked only if another pathspec matches.
    pub fn mark(&self, path: &BStr, seen: &mut [bool]) {
        if seen.iter().all(|seen| *seen) {
            return;
        }
        let mut is_included = false;
        for (item, seen) in self.items.iter().zip(seen.iter_mut()) {
            if !item.exclude && item.matches(path, false) {
                *seen = true;
                is_included = true;
            }
        }
        let excluding = self.items.iter().zip(seen).filter(|(item, _)| item.exclude);
        for (_, seen) in excluding.filter(|_| is_included) {
            *seen = true;
        }
    }

    /// Returns the number of pathspecs.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the pathspec at `position` as it was given.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn original(&self, position: usize) -> &BStr {
        self.items[position].original.as_bstr()
    }

    /// Returns the path of the pathspec at `position`, relative to the top, with wildcards taken
    /// literally. It has a slash at its end if the pathspec has one.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn path(&self, position: usize) -> BString {
        let item = &self.items[position];
        let mut path = item.text.clone();
        if item.is_directory {
            path.push(b'/');
        }
        path
    }

    /// Returns the path of the pathspec at `position`, relative to the top, if the pathspec has no
    /// wildcards and no magic except `top`. Such a pathspec matches this path and everything below.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn literal(&self, position: usize) -> Option<&BStr> {
        let item = &self.items[position];
        let is_literal = item.literal_len == item.text.len() && !item.icase && !item.exclude;
        is_literal.then(|| item.text.as_bstr())
    }

    /// Returns whether the pathspec at `position` is an exclude pathspec.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn excludes(&self, position: usize) -> bool {
        self.items[position].exclude
    }

    /// Returns whether the pathspec at `position` has the magic `glob` or `icase`, so that it does not
    /// name a single file.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn is_loose(&self, position: usize) -> bool {
        self.items[position].glob || self.items[position].icase
    }

    /// Returns whether the pathspec at `position` matches `path`, regardless of other pathspecs.
    ///
    /// # Panics
    /// Panics if `position` is out of range.
    pub fn matches_at(&self, position: usize, path: &BStr) -> bool {
        self.items[position].matches(path, false)
    }

    /// Returns whether a pathspec, up to its first wildcard, names `path` (without a slash at its end)
    /// or a path below it. Such a path was requested explicitly, even if it is ignored.
    pub fn asks_for(&self, path: &BStr) -> bool {
        self.items.iter().any(|item| {
            let literal = &item.text[..item.literal_len];
            let ends_here = literal.len() == path.len();
            literal.len() >= path.len()
                && item.same(&literal[..path.len()], path)
                && (ends_here || literal[path.len()] == b'/')
        })
    }

    /// Returns the relation of the directory at `path` (without a slash at its end) to the pathspecs.
    pub fn directory(&self, path: &BStr) -> DirectoryRelation {
        if self.items.is_empty() || path.is_empty() {
            return if self.items.is_empty() {
                DirectoryRelation::Inside
            } else {
                DirectoryRelation::Partly
            };
        }
        let excludes = self.items.iter().any(|item| item.exclude);
        let included = self.items.iter().filter(|item| !item.exclude);
        let mut found = DirectoryRelation::Outside;
        for item in included {
            if item.matches(path, true) {
                found = DirectoryRelation::Inside;
                break;
            }
            if item.may_match_below(path) {
                found = DirectoryRelation::Partly;
            }
        }
        match found {
            DirectoryRelation::Inside if excludes => DirectoryRelation::Partly,
            found => found,
        }
    }

    /// Returns whether the pathspecs include the whole directory at `path` (without a slash at its
    /// end): a pathspec names the directory or a parent, or a wildcard matches it with a slash at its
    /// end. Exclude pathspecs are ignored. Compares with each pathspec.
    pub fn takes_whole(&self, path: &BStr) -> bool {
        let with_slash = [path.as_bytes(), b"/"].concat();
        let mut included = self.items.iter().filter(|item| !item.exclude);
        self.items.is_empty()
            || included.any(|item| {
                let relation = item.relation(path, with_slash.as_bstr());
                matches!(
                    relation,
                    PathspecRelation::Inside | PathspecRelation::Wildcard | PathspecRelation::Exact
                )
            })
    }

    /// Returns whether a comparison of trees reports the directory at `path` (without a slash at its
    /// end) if it differs. As in Git, an excluded directory is reported, and in a `recursive`
    /// comparison each directory in which a wildcard could match. Compares with each pathspec.
    pub fn names_directory(&self, path: &BStr, recursive: bool) -> bool {
        if self.items.is_empty() {
            return true;
        }
        let reach = |exclude: bool| {
            let items = self.items.iter().rev();
            let mut items = items.filter(|item| item.exclude == exclude);
            items.find_map(|item| item.reach(path, recursive))
        };
        reach(false).is_some() && reach(true) != Some(PathspecExtent::All)
    }

    /// Returns whether paths in the directory at `path` (without a slash at its end) are reported one
    /// by one instead of as the whole directory. As in Git, this is the case if a pathspec could match
    /// below the directory, even if another one matches all of it, unless one names the directory
    /// itself (with a slash at its end, or by a wildcard). Exclude pathspecs are ignored. Compares with
    /// each pathspec.
    pub fn leads_below(&self, path: &BStr) -> bool {
        let with_slash = [path.as_bytes(), b"/"].concat();
        let included = self.items.iter().filter(|item| !item.exclude);
        let relations = included.map(|item| item.relation(path, with_slash.as_bstr()));
        relations.max() == Some(PathspecRelation::Leading)
    }
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Pathspec, message)
}

/// Returns whether the path of `spec` is relative to the top, and the path, for commands that accept no
/// magic except `top` and `literal`.
///
/// # Errors
/// Fails with [`ErrorKind::Pathspec`] and Git's message if `spec` has other magic, or
/// [`ErrorKind::Unsupported`] if it uses attributes.
pub fn path_of(spec: &BStr) -> Result<(bool, &BStr), Error> {
    let mut magic = magic::Magic::default();
    let path = magic::parse_magic(spec, &mut magic)?;
    let others = [
        (magic.glob, "'glob'"),
        (magic.icase, "'icase'"),
        (magic.exclude, "'exclude' (mnemonic: '!')"),
    ];
    let others: Vec<&str> = others
        .iter()
        .filter_map(|(is_set, name)| is_set.then_some(*name))
        .collect();
    match others.is_empty() {
        true => Ok((magic.top, path)),
        false => {
            let others = others.join(", ");
            let message = format!("{spec}: pathspec magic not supported by this command: {others}");
            Err(wrong(message))
        }
    }
}

/// Converts `path`, relative to the directory `prefix` (empty for the top, otherwise with a slash at
/// its end), to a path relative to the top. A slash at its end is kept. `work_tree` has no symbolic
/// links. Accesses the file system only for an absolute path that does not begin with `work_tree`: as
/// in Git, symbolic links in it can lead to the worktree.
///
/// # Errors
/// Fails with [`ErrorKind::Pathspec`] if the path leads out of `work_tree`, or with [`ErrorKind::Io`] if
/// the symbolic links of an absolute path cannot be resolved.
pub fn path_from_top(
    path: &BStr,
    prefix: &BStr,
    work_tree: &std::path::Path,
) -> Result<BString, Error> {
    Ok(split_from_top(path, prefix, work_tree)?.0)
}

/// Does the same as [`path_from_top`], and adds a slash to a path that can only be a directory: `.`,
/// `..` and paths that end with them. As in Git, no index entry has such a name, and messages contain
/// the slash.
///
/// # Errors
/// As for [`path_from_top`].
pub fn entry_from_top(
    path: &BStr,
    prefix: &BStr,
    work_tree: &std::path::Path,
) -> Result<BString, Error> {
    let mut text = path_from_top(path, prefix, work_tree)?;
    let last = path.rsplit(|byte| *byte == b'/').next();
    let is_directory = matches!(last, Some(b"" | b"." | b".."));
    if is_directory && !text.is_empty() && !text.ends_with(b"/") {
        text.push(b'/');
    }
    Ok(text)
}

/// Does the same as [`path_from_top`], and returns the length of the part that comes from `prefix`,
/// with its slash.
fn split_from_top(
    path: &BStr,
    prefix: &BStr,
    work_tree: &std::path::Path,
) -> Result<(BString, usize), Error> {
    let outside = || {
        let place = work_tree.display();
        wrong(format!("'{path}' is outside repository at '{place}'"))
    };
    let mut parts: Vec<&[u8]> = Vec::new();
    let below;
    let relative = if path.starts_with(b"/") {
        below = absolute::below_work_tree(path, work_tree)?.ok_or_else(outside)?;
        below.as_slice()
    } else {
        parts.extend(prefix.split_at_each(b'/').filter(|part| !part.is_empty()));
        path.as_bytes()
    };
    let mut kept = parts.len();
    for part in relative.split_at_each(b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop().ok_or_else(outside)?;
                kept = kept.min(parts.len());
            }
            part => parts.push(part),
        }
    }
    let mut text: BString = bstr::join("/", &parts).into();
    if !text.is_empty() && path.ends_with(b"/") {
        text.push(b'/');
    }
    let kept = parts[..kept].iter().map(|part| part.len() + 1).sum();
    Ok((text, kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(specs: &[&str], prefix: &str) -> Pathspec {
        spec_by(specs, prefix, PathspecDefaults::default())
    }

    fn spec_by(specs: &[&str], prefix: &str, defaults: PathspecDefaults) -> Pathspec {
        let specs = specs.iter().map(|spec| BStr::new(*spec));
        Pathspec::parse(specs, prefix.into(), "/work".as_ref(), defaults).expect("it is sound")
    }

    #[test]
    fn paths_directories_and_wildcards() {
        let one = spec(
            &["a/b", "*.c", ":(glob)x/*.h", ":(icase)README", "dir/"],
            "",
        );
        for path in [
            "a/b", "a/b/c", "x.c", "deep/x.c", "x/y.h", "readme", "dir/x",
        ] {
            assert!(one.matches(path.into(), false), "{path}");
        }
        for path in ["a/bc", "a", "x/z/y.h", "dir", "Dir/x", "x.cc"] {
            assert!(!one.matches(path.into(), false), "{path}");
        }
        assert!(one.matches("dir".into(), true));
    }

    #[test]
    fn what_can_only_be_a_directory_ends_in_a_slash() {
        let named = |path: &str, prefix: &str| {
            entry_from_top(path.into(), prefix.into(), "/work".as_ref()).expect("it is inside")
        };
        assert_eq!(named(".", "d/"), "d/");
        assert_eq!(named("e/.", "d/"), "d/e/");
        assert_eq!(named("..", "d/e/"), "d/");
        assert_eq!(named("..", "d/"), "");
        assert_eq!(named("x/", ""), "x/");
        assert_eq!(named("x", "d/"), "d/x");
    }

    #[test]
    fn prefixes_and_exclusion() {
        let one = spec(&["b", "../c", ":/top", "/work/abs", ":!b/no"], "a/");
        for path in ["a/b", "c/x", "top", "abs/x"] {
            assert!(one.matches(path.into(), false), "{path}");
        }
        assert!(!one.matches("a/b/no".into(), false) && !one.matches("b".into(), false));
        let all = spec(&[":!x"], "a/");
        assert!(all.matches("a/y".into(), false) && !all.matches("a/x".into(), false));
        assert!(all.matches("z".into(), false) && all.matches("x".into(), false));
        let below = PathspecDefaults {
            exclude_below_prefix: true,
            ..PathspecDefaults::default()
        };
        let all = spec_by(&[":!x"], "a/", below);
        assert!(all.matches("a/y".into(), false) && !all.matches("a/x".into(), false));
        assert!(!all.matches("z".into(), false));
        assert_eq!(spec(&[], "").position("x".into(), false), None);
    }

    #[test]
    fn absolute_paths_are_normalised() {
        let named = |path: &str| path_from_top(path.into(), "d/".into(), "/work".as_ref());
        let inside = [
            ("/work/../work/a", "a"),
            ("/work/d/../a", "a"),
            ("//work/./d//a/", "d/a/"),
            ("/nowhere/x/../../work/d/", "d/"),
            ("/work", ""),
        ];
        for (path, expected) in inside {
            assert_eq!(named(path).expect("it is inside"), expected, "{path}");
        }
        for path in ["/work/..", "/work/../x", "/../work/a", "/workers", "/"] {
            let error = named(path).expect_err("it is outside");
            let message = format!("'{path}' is outside repository at '/work'");
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::Pathspec, &*message)
            );
        }
    }

    #[test]
    fn absolute_paths_may_lead_through_symbolic_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("it exists");
        let top = root.join("w");
        std::fs::create_dir_all(top.join("d")).expect("a directory");
        for (target, name) in [("w", "link"), ("d", "w/inner"), ("nowhere", "dangling")] {
            std::os::unix::fs::symlink(target, root.join(name)).expect("a link");
        }
        let named = |path: &str| {
            let path = root.join(path);
            let path = BStr::new(path.as_os_str().as_encoded_bytes());
            path_from_top(path, "".into(), &top)
        };
        for (path, expected) in [
            ("link/d/x", "d/x"),
            ("link", ""),
            ("link/inner/x", "inner/x"),
            ("link/../link/d/", "d/"),
            ("link/missing/x", "missing/x"),
        ] {
            assert_eq!(named(path).expect("it is inside"), expected, "{path}");
        }
        for path in ["missing", "dangling"] {
            let error = named(path).expect_err("it is outside");
            assert_eq!(error.kind(), ErrorKind::Pathspec, "{path}");
        }
        for (path, absent) in [("missing/x", "missing"), ("dangling/x", "nowhere")] {
            let error = named(path).expect_err("it is invalid");
            let absent = root.join(absent);
            let message = format!(
                "Invalid path '{}': No such file or directory",
                absent.display()
            );
            assert_eq!((error.kind(), error.message()), (ErrorKind::Io, &*message));
        }
    }

    #[test]
    fn what_may_match_in_a_directory() {
        let one = spec(&["a/b/c", "x*/y"], "");
        assert_eq!(one.directory("a".into()), DirectoryRelation::Partly);
        assert_eq!(one.directory("a/b/c".into()), DirectoryRelation::Inside);
        assert_eq!(one.directory("a/c".into()), DirectoryRelation::Outside);
        assert_eq!(one.directory("ab".into()), DirectoryRelation::Outside);
        assert_eq!(one.directory("xy".into()), DirectoryRelation::Partly);
        assert_eq!(
            spec(&[":!a"], "").directory("b".into()),
            DirectoryRelation::Partly
        );
    }

    #[test]
    fn faults_are_named_as_git_names_them() {
        let fault = |text: &str| {
            let parsed = Pathspec::parse(
                [BStr::new(text)],
                "".into(),
                "/work".as_ref(),
                PathspecDefaults::default(),
            );
            parsed.expect_err("it is wrong").message().to_owned()
        };
        assert_eq!(
            fault("../x"),
            "../x: '../x' is outside repository at '/work'"
        );
        assert_eq!(
            fault(":(bad)x"),
            "Invalid pathspec magic 'bad' in ':(bad)x'"
        );
        assert_eq!(
            fault(":(top"),
            "Missing ')' at the end of pathspec magic in ':(top'"
        );
    }
}
