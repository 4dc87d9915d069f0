//! Which paths are ignored: `.gitignore` of each directory, `info/exclude`, `core.excludesFile`
//! and patterns from a command line.

use bstr::{BStr, BString, ByteSlice};
use gix_glob::Pattern;
use gix_glob::pattern::Case;
use gix_glob::wildmatch::Mode;

/// The patterns that hold for the whole worktree.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    command_line: Vec<Pattern>,
    /// Lists of files, the one that wins last.
    files: Vec<Vec<Pattern>>,
    ignore_case: bool,
}

impl Patterns {
    /// No patterns. `ignore_case` is `core.ignoreCase`.
    pub fn new(ignore_case: bool) -> Patterns {
        Patterns {
            ignore_case,
            ..Patterns::default()
        }
    }

    /// Adds a pattern of the command line; it wins over everything else, and over those before.
    pub fn add_pattern(&mut self, pattern: &[u8]) {
        self.command_line.extend(Pattern::from_bytes(pattern));
    }

    /// Adds the content of a file (`core.excludesFile` first, then `info/exclude`); it wins over
    /// those before.
    pub fn add_file(&mut self, content: &[u8]) {
        self.files.push(parse(content));
    }

    /// Whether any pattern ignores case.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }
}

fn parse(content: &[u8]) -> Vec<Pattern> {
    gix_ignore::parse(content, false)
        .map(|(pattern, _, _)| pattern)
        .collect()
}

/// Reads the ignore file of a directory (empty for the top): its content, if there is one.
pub type Reader<'a> = dyn Fn(&BStr) -> Option<Vec<u8>> + Sync + 'a;

/// The patterns that hold in one directory. Moving from directory to directory reads the ignore
/// files on the way down, once for each visit; visiting in order reads each once.
pub struct Stack<'a> {
    patterns: &'a Patterns,
    read: Option<&'a Reader<'a>>,
    directory: BString,
    frames: Vec<Frame>,
}

/// One directory on the way from the top to the current one.
struct Frame {
    /// The length of its path.
    len: usize,
    patterns: Vec<Pattern>,
    /// The directory itself is ignored, so all in it is.
    excluded: bool,
}

impl<'a> Stack<'a> {
    /// Starts at the top. Without `read` directories have no ignore files.
    pub fn new(patterns: &'a Patterns, read: Option<&'a Reader<'a>>) -> Stack<'a> {
        let mut stack = Stack {
            patterns,
            read,
            directory: BString::default(),
            frames: Vec::new(),
        };
        stack.push(0, false);
        stack
    }

    fn push(&mut self, len: usize, excluded: bool) {
        let directory = self.directory[..len].as_bstr();
        let content = self
            .read
            .filter(|_| !excluded)
            .and_then(|read| read(directory));
        self.frames.push(Frame {
            len,
            patterns: content.map(|content| parse(&content)).unwrap_or_default(),
            excluded,
        });
    }

    /// Moves to `directory` (without a slash at its end; empty for the top).
    pub fn enter(&mut self, directory: &BStr) {
        if self.directory == directory {
            return;
        }
        let below = |len: usize| {
            len == 0
                || (directory.len() >= len
                    && directory[..len] == self.directory[..len]
                    && matches!(directory.get(len), None | Some(b'/')))
        };
        let kept = self
            .frames
            .iter()
            .take_while(|frame| below(frame.len))
            .count();
        self.frames.truncate(kept.max(1));
        let mut len = self.frames.last().map_or(0, |frame| frame.len);
        self.directory.clear();
        self.directory.extend_from_slice(directory);
        while len < directory.len() {
            let start = if len == 0 { 0 } else { len + 1 };
            let rest = &directory[start..];
            len = start + rest.find_byte(b'/').unwrap_or(rest.len());
            let path = directory[..len].as_bstr();
            let excluded = self.is_ignored(path, true);
            self.push(len, excluded);
        }
    }

    /// Whether everything in the current directory is ignored, because it or one above it is.
    pub fn is_directory_ignored(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.excluded)
    }

    /// Whether `path`, directly in the current directory, is ignored.
    pub fn is_ignored(&self, path: &BStr, is_directory: bool) -> bool {
        self.is_directory_ignored()
            || self
                .find(path, is_directory)
                .is_some_and(|pattern| !pattern.is_negative())
    }

    /// The pattern that decides about `path`.
    fn find(&self, path: &BStr, is_directory: bool) -> Option<&Pattern> {
        let last = |list: &'a [Pattern], base: usize| {
            last_match(list, path, base, is_directory, self.patterns.ignore_case)
        };
        if let Some(pattern) = last(&self.patterns.command_line, 0) {
            return Some(pattern);
        }
        for frame in self.frames.iter().rev() {
            let base = if frame.len == 0 { 0 } else { frame.len + 1 };
            let ignore_case = self.patterns.ignore_case;
            let found = last_match(&frame.patterns, path, base, is_directory, ignore_case);
            if found.is_some() {
                return found;
            }
        }
        self.patterns
            .files
            .iter()
            .rev()
            .find_map(|list| last(list, 0))
    }
}

fn last_match<'p>(
    list: &'p [Pattern],
    path: &BStr,
    base: usize,
    is_directory: bool,
    ignore_case: bool,
) -> Option<&'p Pattern> {
    if list.is_empty() {
        return None;
    }
    let path = path.get(base..)?.as_bstr();
    let basename = path.rfind_byte(b'/').map(|slash| slash + 1);
    let case = if ignore_case {
        Case::Fold
    } else {
        Case::Sensitive
    };
    list.iter().rev().find(|pattern| {
        pattern.matches_repo_relative_path(
            path,
            basename,
            Some(is_directory),
            case,
            Mode::NO_MATCH_SLASH_LITERAL,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(directory: &BStr) -> Option<Vec<u8>> {
        let content: &[u8] = match directory.as_bytes() {
            b"" => b"*.o\n/top\nbuild/\n!keep.o\n",
            b"a" => b"!b.o\n/only\n",
            b"build" => b"!*\n",
            _ => return None,
        };
        Some(content.to_vec())
    }

    #[test]
    fn deeper_files_win_and_ignored_directories_hide_theirs() {
        let mut patterns = Patterns::new(false);
        patterns.add_file(b"*.tmp\n");
        patterns.add_file(b"!good.tmp\n");
        let mut stack = Stack::new(&patterns, Some(&files));
        let mut check = |path: &str| {
            let directory = path.rfind('/').map_or("", |slash| &path[..slash]);
            stack.enter(directory.into());
            stack.is_ignored(path.into(), false)
        };
        assert!(check("x.o") && check("top") && check("x.tmp"));
        assert!(!check("keep.o") && !check("good.tmp"));
        assert!(check("a/x.o") && !check("a/b.o") && !check("a/top"));
        assert!(check("a/only") && !check("a/c/only") && check("a/c/d/x.o"));
        assert!(check("build/anything") && check("build/deep/er"));
        assert!(!check("build2/anything") && check("z/build/x"));
    }

    #[test]
    fn the_command_line_wins() {
        let mut patterns = Patterns::new(true);
        patterns.add_pattern(b"keep.o");
        let stack = Stack::new(&patterns, Some(&files));
        assert!(stack.is_ignored("keep.o".into(), false));
        assert!(stack.is_ignored("KEEP.O".into(), false));
    }
}
