//! Ignore rules: `.gitignore` of each directory, `info/exclude`, `core.excludesFile` and patterns
//! from a command line.

use crate::glob::matches_path;
use bstr::{BStr, BString, ByteSlice};
use gix_glob::Pattern;
use pronto_io::short::Short as _;

/// The patterns that hold for the whole worktree.
#[derive(Clone, Debug, Default)]
pub struct Patterns {
    command_line: List,
    /// Lists of files, by ascending precedence.
    files: Vec<(BString, List)>,
    ignore_case: bool,
}

/// The patterns of one file, with the number of their lines in it.
#[derive(Clone, Debug, Default)]
struct List {
    lines: Vec<(Pattern, usize)>,
    content: Vec<u8>,
}

/// The line that decides about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule<'a> {
    /// The source of the pattern.
    pub source: Source<'a>,
    /// The number of the line, from one.
    pub line: usize,
    /// The pattern as it is written.
    pub text: &'a BStr,
    /// Whether the pattern says that the path is not ignored.
    pub is_negative: bool,
}

/// The source of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// The command line.
    CommandLine,
    /// A file that holds everywhere, by the name it was added with.
    File(&'a BStr),
    /// The ignore file of this directory (empty for the top).
    Directory(&'a BStr),
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
        let pattern = Pattern::from_bytes(pattern);
        self.command_line
            .lines
            .extend(pattern.map(|pattern| (pattern, 0)));
    }

    /// Adds the content of the file called `name` (`core.excludesFile` first, then
    /// `info/exclude`); it wins over those before.
    pub fn add_file(&mut self, name: &BStr, content: Vec<u8>) {
        self.files.push((name.to_owned(), List::parse(content)));
    }

    /// Whether any pattern ignores case.
    pub fn ignores_case(&self) -> bool {
        self.ignore_case
    }
}

impl List {
    fn parse(content: Vec<u8>) -> List {
        // Most files named `info/exclude` have comments only, and need no parser.
        let is_comment = |line: &[u8]| line.is_empty() || line.starts_with(b"#");
        let lines = match content.each_line().all(is_comment) {
            true => Vec::new(),
            false => gix_ignore::parse(&content, false)
                .map(|(pattern, line, _)| (pattern, line))
                .collect(),
        };
        List { lines, content }
    }

    /// The pattern in the line `number` as it is written, without spaces at its end.
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

/// Reads the ignore file of a directory (empty for the top): its content, if there is one.
pub type Reader<'a> = dyn Fn(&BStr) -> Option<Vec<u8>> + Sync + 'a;

/// The patterns for one directory. Moving between directories reads the ignore files of entered
/// directories, once for each visit; visiting in order reads each once.
pub struct Stack<'a> {
    patterns: &'a Patterns,
    read: Option<&'a Reader<'a>>,
    directory: BString,
    frames: Vec<Frame>,
}

/// A directory between the top and the current one.
struct Frame {
    /// The length of its path.
    len: usize,
    list: List,
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
            list: content.map(List::parse).unwrap_or_default(),
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
                .find(path, is_directory, self.frames.len())
                .is_some_and(|(_, (pattern, _))| !pattern.is_negative())
    }

    /// Returns the deciding line for `path`, directly in the current directory: the line that
    /// ignores the topmost ignored directory above it, if there is one. `is_directory` is called if
    /// a line for directories decides.
    pub fn decide(&self, path: &BStr, is_directory: &dyn Fn() -> bool) -> Option<Rule<'_>> {
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
            Place::CommandLine => &self.patterns.command_line,
            Place::File(at) => &self.patterns.files[at].1,
            Place::Frame(at) => &self.frames[at].list,
        };
        Some(Rule {
            source: match source {
                Place::CommandLine => Source::CommandLine,
                Place::File(at) => Source::File(self.patterns.files[at].0.as_bstr()),
                Place::Frame(at) => Source::Directory(self.directory[..self.frames[at].len].into()),
            },
            line,
            text: list.text(line),
            is_negative: pattern.is_negative(),
        })
    }

    /// The pattern that decides about `path`, of which the first `frames` directories count.
    fn find(&self, path: &BStr, is_directory: bool, frames: usize) -> Option<Found<'_>> {
        let ignore_case = self.patterns.ignore_case;
        let last = |list, base| last_match(list, path, base, is_directory, ignore_case);
        if let Some(line) = last(&self.patterns.command_line, 0) {
            return Some((Place::CommandLine, line));
        }
        for (at, frame) in self.frames[..frames].iter().enumerate().rev() {
            let base = if frame.len == 0 { 0 } else { frame.len + 1 };
            if let Some(line) = last(&frame.list, base) {
                return Some((Place::Frame(at), line));
            }
        }
        let files = self.patterns.files.iter().enumerate().rev();
        files
            .filter_map(|(at, (_, list))| Some((Place::File(at), last(list, 0)?)))
            .next()
    }
}

/// Which list, and the line in it.
type Found<'a> = (Place, &'a (Pattern, usize));

/// A list that a pattern stands in.
#[derive(Clone, Copy)]
enum Place {
    CommandLine,
    File(usize),
    Frame(usize),
}

fn last_match<'p>(
    list: &'p List,
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

    #[test]
    fn the_deciding_line_is_told() {
        let mut patterns = Patterns::new(false);
        let content = "\u{feff}# x\n\\!y  \nz\\ \nonly/\n";
        patterns.add_file("f".into(), content.as_bytes().to_vec());
        let mut stack = Stack::new(&patterns, Some(&files));
        let mut told = |path: &str, is_directory: bool| {
            let directory = path.rfind('/').map_or("", |slash| &path[..slash]);
            stack.enter(directory.into());
            let rule = stack.decide(path.into(), &|| is_directory)?;
            let source = match rule.source {
                Source::Directory(directory) => format!("in '{directory}'"),
                Source::File(name) => name.to_string(),
                Source::CommandLine => String::new(),
            };
            Some(format!("{source} {} {}", rule.line, rule.text))
        };
        assert_eq!(told("x.o", false).as_deref(), Some("in '' 1 *.o"));
        assert_eq!(told("!y", false).as_deref(), Some("f 2 \\!y"));
        assert_eq!(told("z ", false).as_deref(), Some("f 3 z\\ "));
        assert_eq!(told("only", false), None);
        assert_eq!(told("only", true).as_deref(), Some("f 4 only/"));
        assert_eq!(told("build/a/b", false).as_deref(), Some("in '' 3 build/"));
        assert_eq!(told("keep.o", false).as_deref(), Some("in '' 4 !keep.o"));
    }
}
