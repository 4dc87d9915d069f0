//! Ignore rules: the `.gitignore` of each directory, `info/exclude`, `core.excludesFile` and patterns
//! of the command line (`--exclude`).

use crate::glob::matches_path;
use bstr::{BStr, BString, ByteSlice};
use gix_glob::Pattern;
use pronto_io::short::Short as _;

/// The patterns that apply to the whole worktree.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    command_line: IgnoreFile,
    /// The lists of files, in ascending precedence.
    files: Vec<(BString, IgnoreFile)>,
    ignore_case: bool,
}

/// The patterns of one file, with their line numbers.
#[derive(Clone, Debug, Default)]
struct IgnoreFile {
    lines: Vec<(Pattern, usize)>,
    content: Vec<u8>,
}

/// The line that determines whether a path is ignored (`git check-ignore --verbose`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecidingPattern<'a> {
    /// The source of the pattern.
    pub source: PatternSource<'a>,
    /// The number of the line, from one.
    pub line: usize,
    /// The pattern as it is written in the file.
    pub text: &'a BStr,
    /// Whether the pattern is negative (`!`), so that the path is not ignored.
    pub is_negative: bool,
}

/// The source of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternSource<'a> {
    /// The command line.
    CommandLine,
    /// A file that applies to the whole worktree, by the name with which it was added.
    File(&'a BStr),
    /// The ignore file of this directory (empty for the top).
    Directory(&'a BStr),
}

impl Patterns {
    /// Creates an empty list of patterns. `ignore_case` is `core.ignoreCase`.
    pub fn new(ignore_case: bool) -> Patterns {
        Patterns {
            ignore_case,
            ..Patterns::default()
        }
    }

    /// Adds a pattern of the command line, which takes precedence over files and over earlier patterns.
    pub fn add_pattern(&mut self, pattern: &[u8]) {
        let pattern = Pattern::from_bytes(pattern);
        self.command_line
            .lines
            .extend(pattern.map(|pattern| (pattern, 0)));
    }

    /// Adds the content of the file `name`, which takes precedence over earlier files. Add
    /// `core.excludesFile` first, then `info/exclude`.
    pub fn add_file(&mut self, name: &BStr, content: Vec<u8>) {
        self.files
            .push((name.to_owned(), IgnoreFile::parse(content)));
    }

    /// Returns whether patterns match without regard to case.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }
}

impl IgnoreFile {
    fn parse(content: Vec<u8>) -> IgnoreFile {
        // Most `info/exclude` files consist of comments only and need no parser.
        let is_comment = |line: &[u8]| line.is_empty() || line.starts_with(b"#");
        let lines = match content.each_line().all(is_comment) {
            true => Vec::new(),
            false => gix_ignore::parse(&content, false)
                .map(|(pattern, line, _)| (pattern, line))
                .collect(),
        };
        IgnoreFile { lines, content }
    }

    /// Returns the pattern in line `number` as it is written, without spaces at its end.
    fn text(&self, number: usize) -> &BStr {
        let content = self.content.strip_prefix(b"\xef\xbb\xbf");
        let content = content.unwrap_or(&self.content);
        let line = content.lines().nth(number.saturating_sub(1));
        let line = line.unwrap_or_default();
        let text = line.trim_end_with(|end| end == ' ');
        let escapes = text.iter().rev().take_while(|&&byte| byte == b'\\').count();
        // A space after an odd number of backslashes is part of the pattern.
        let kept = text.len() + usize::from(escapes % 2 == 1 && text.len() < line.len());
        line[..kept].as_bstr()
    }
}

/// A callback that reads the ignore file of a directory (empty for the top), if the file exists.
pub type Reader<'a> = dyn Fn(&BStr) -> Option<Vec<u8>> + Sync + 'a;

/// The patterns for one directory. A change of the directory reads the ignore files of the entered
/// directories. If directories are visited in order, each file is read once.
pub struct IgnoreStack<'a> {
    patterns: &'a Patterns,
    read: Option<&'a Reader<'a>>,
    directory: BString,
    frames: Vec<IgnoreDirectory>,
}

/// A directory between the top and the current one.
struct IgnoreDirectory {
    /// The length of the path of the directory.
    len: usize,
    list: IgnoreFile,
    /// Whether the directory itself is ignored, and therefore everything in it.
    excluded: bool,
}

impl<'a> IgnoreStack<'a> {
    /// Creates a stack at the top. Without `read` there are no ignore files in directories.
    pub fn new(patterns: &'a Patterns, read: Option<&'a Reader<'a>>) -> IgnoreStack<'a> {
        let mut stack = IgnoreStack {
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
        self.frames.push(IgnoreDirectory {
            len,
            list: content.map(IgnoreFile::parse).unwrap_or_default(),
            excluded,
        });
    }

    /// Moves to `directory`, which has no slash at its end and is empty for the top.
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

    /// Returns whether everything in the current directory is ignored, because the directory or a
    /// parent is ignored.
    pub fn is_directory_ignored(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.excluded)
    }

    /// Returns whether `path`, which is directly in the current directory, is ignored.
    pub fn is_ignored(&self, path: &BStr, is_directory: bool) -> bool {
        self.is_directory_ignored()
            || self
                .find(path, is_directory, self.frames.len())
                .is_some_and(|(_, (pattern, _))| !pattern.is_negative())
    }

    /// Returns the line that determines whether `path`, directly in the current directory, is ignored.
    /// If a parent directory is ignored, this is the line that ignores the topmost one. `is_directory`
    /// is called if a pattern for directories matches.
    pub fn decide(
        &self,
        path: &BStr,
        is_directory: &dyn Fn() -> bool,
    ) -> Option<DecidingPattern<'_>> {
        let excluded = self.frames.iter().position(|frame| frame.excluded);
        let (source, &(ref pattern, line)) = match excluded {
            Some(at) => self.find(self.directory[..self.frames[at].len].as_bstr(), true, at)?,
            None => {
                let found = self.find(path, true, self.frames.len())?;
                let (_, (pattern, _)) = found;
                let for_directories = pattern.mode.contains(gix_glob::pattern::Mode::MUST_BE_DIR);
                match for_directories && !is_directory() {
                    true => self.find(path, false, self.frames.len())?,
                    false => found,
                }
            }
        };
        let list = match source {
            PatternList::CommandLine => &self.patterns.command_line,
            PatternList::File(at) => &self.patterns.files[at].1,
            PatternList::Frame(at) => &self.frames[at].list,
        };
        Some(DecidingPattern {
            source: match source {
                PatternList::CommandLine => PatternSource::CommandLine,
                PatternList::File(at) => PatternSource::File(self.patterns.files[at].0.as_bstr()),
                PatternList::Frame(at) => {
                    PatternSource::Directory(self.directory[..self.frames[at].len].into())
                }
            },
            line,
            text: list.text(line),
            is_negative: pattern.is_negative(),
        })
    }

    /// Finds the pattern that determines `path`, with the ignore files of the first `frames`
    /// directories.
    fn find(&self, path: &BStr, is_directory: bool, frames: usize) -> Option<PatternMatch<'_>> {
        let ignore_case = self.patterns.ignore_case;
        let last = |list, base| last_match(list, path, base, is_directory, ignore_case);
        if let Some(line) = last(&self.patterns.command_line, 0) {
            return Some((PatternList::CommandLine, line));
        }
        for (at, frame) in self.frames[..frames].iter().enumerate().rev() {
            let base = if frame.len == 0 { 0 } else { frame.len + 1 };
            if let Some(line) = last(&frame.list, base) {
                return Some((PatternList::Frame(at), line));
            }
        }
        let files = self.patterns.files.iter().enumerate().rev();
        files
            .filter_map(|(at, (_, list))| Some((PatternList::File(at), last(list, 0)?)))
            .next()
    }
}

/// A list, and a line in it.
type PatternMatch<'a> = (PatternList, &'a (Pattern, usize));

/// The list that contains a pattern.
#[derive(Clone, Copy)]
enum PatternList {
    CommandLine,
    File(usize),
    Frame(usize),
}

fn last_match<'p>(
    list: &'p IgnoreFile,
    path: &BStr,
    base: usize,
    is_directory: bool,
    ignore_case: bool,
) -> Option<&'p (Pattern, usize)> {
    if list.lines.is_empty() {
        return None;
    }
    let path = path.get(base..)?.as_bstr();
    let basename = path.rfind_byte(b'/').map(|slash| slash + 1);
    let mut lines = list.lines.iter().rev();
    lines.find(|(pattern, _)| matches_path(pattern, path, basename, is_directory, ignore_case))
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
        patterns.add_file("one".into(), b"*.tmp\n".to_vec());
        patterns.add_file("two".into(), b"!good.tmp\n".to_vec());
        let mut stack = IgnoreStack::new(&patterns, Some(&files));
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
        let stack = IgnoreStack::new(&patterns, Some(&files));
        assert!(stack.is_ignored("keep.o".into(), false));
        assert!(stack.is_ignored("KEEP.O".into(), false));
    }

    #[test]
    fn the_deciding_line_is_told() {
        let mut patterns = Patterns::new(false);
        let content = "\u{feff}# x\n\\!y  \nz\\ \nonly/\n";
        patterns.add_file("f".into(), content.as_bytes().to_vec());
        let mut stack = IgnoreStack::new(&patterns, Some(&files));
        let mut reported = |path: &str, is_directory: bool| {
            let directory = path.rfind('/').map_or("", |slash| &path[..slash]);
            stack.enter(directory.into());
            let rule = stack.decide(path.into(), &|| is_directory)?;
            let source = match rule.source {
                PatternSource::Directory(directory) => format!("in '{directory}'"),
                PatternSource::File(name) => name.to_string(),
                PatternSource::CommandLine => String::new(),
            };
            Some(format!("{source} {} {}", rule.line, rule.text))
        };
        assert_eq!(reported("x.o", false).as_deref(), Some("in '' 1 *.o"));
        assert_eq!(reported("!y", false).as_deref(), Some("f 2 \\!y"));
        assert_eq!(reported("z ", false).as_deref(), Some("f 3 z\\ "));
        assert_eq!(reported("only", false), None);
        assert_eq!(reported("only", true).as_deref(), Some("f 4 only/"));
        assert_eq!(
            reported("build/a/b", false).as_deref(),
            Some("in '' 3 build/")
        );
        assert_eq!(
            reported("keep.o", false).as_deref(),
            Some("in '' 4 !keep.o")
        );
    }
}
