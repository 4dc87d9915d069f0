//! Executes the blocks of commands on pages of `docs/`.
//!
//! A block without a language is a block of commands, and runs in a shell as a reader would run it. A comment
//! before the block, `<!-- run: CLAUSE; CLAUSE -->`, changes this:
//!
//! - `not, because REASON`: the block does not run.
//! - `until "TEXT"`: the block runs in the background, and has started when it prints TEXT.
//! - `file NAME`, also for blocks with a language: the block is written to a file.
//! - `end NAME`: the block is added to the end of a file.
//! - `exit STATUS`: the last command of the block ends with this status.
//! - `before COMMANDS`: commands that the text around the block describes, in the same shell.
//! - `after COMMANDS`: commands that check the effect of the block.
//! - `where WORD is COMMAND`: the output of a command replaces a word of the block.
//!
//! The shell has the variable `GUIDE`, a directory with the output of the last block in the background (`out`,
//! `err`), its process (`pid`), and the last token that a block has printed (`token`), with which `git` answers
//! questions for passwords. The directory of a block is that in which the block before has ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Scratch, install, path_with, process, stderr, stdout, write_program};

/// A block of a page.
pub(crate) struct Block {
    /// The page and the line, for messages.
    place: String,
    /// The word after the fence.
    language: String,
    text: String,
    clauses: Vec<Clause>,
}

/// A part of the comment before a block.
#[derive(Debug)]
enum Clause {
    Not,
    Until(String),
    File(String),
    End(String),
    Exit(String),
    Before(String),
    After(String),
    Where(String, String),
}

impl Clause {
    fn parse(text: &str, place: &str) -> Self {
        let (word, rest) = text.trim().split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        assert!(!rest.is_empty(), "{place}: '{text}' says nothing");
        match word {
            "not," => {
                let reason = rest.strip_prefix("because ").unwrap_or_default();
                assert!(reason.len() > 10, "{place}: no reason");
                Clause::Not
            }
            "until" => Clause::Until(rest.trim_matches('"').to_owned()),
            "file" => Clause::File(rest.to_owned()),
            "end" => Clause::End(rest.to_owned()),
            "exit" => Clause::Exit(rest.to_owned()),
            "before" => Clause::Before(rest.to_owned()),
            "after" => Clause::After(rest.to_owned()),
            "where" => {
                let (name, command) = rest.split_once(" is ").expect("a word and a command");
                Clause::Where(name.to_owned(), command.to_owned())
            }
            _ => panic!("{place}: unknown clause '{text}'"),
        }
    }
}

/// Returns the blocks of a page, which is a path in the repository of pronto.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = std::fs::read_to_string(path).expect("a page");
    let mut found = Vec::new();
    let mut clauses = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let place = format!("{page}:{}", number + 1);
        let indent = line.len() - line.trim_start().len();
        if let Some(comment) = line.trim_start().strip_prefix("<!-- run: ") {
            let mut comment = comment.to_owned();
            while !comment.ends_with("-->") {
                let (_, next) = lines.next().expect("the end of the comment");
                comment.push(' ');
                comment.push_str(next.trim());
            }
            let comment = comment.trim_end_matches("-->");
            clauses = comment
                .split("; ")
                .map(|clause| Clause::parse(clause, &place))
                .collect();
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            let mut text = String::new();
            loop {
                let (_, line) = lines.next().expect("the end of the block");
                if line.trim_start() == "```" {
                    break;
                }
                text.push_str(line.get(indent..).unwrap_or_default());
                text.push('\n');
            }
            found.push(Block {
                place,
                language: language.to_owned(),
                text,
                clauses: std::mem::take(&mut clauses),
            });
        } else {
            assert!(
                clauses.is_empty() || line.trim().is_empty(),
                "{place}: no block follows the comment"
            );
        }
    }
    found
}

/// A reader who executes blocks, with an empty home directory.
pub(crate) struct Reader {
    pub(crate) scratch: Scratch,
    programs: PathBuf,
    directory: PathBuf,
    /// The names on the pages, and their replacements.
    names: Vec<(String, String)>,
    variables: Vec<(String, String)>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        let scratch = Scratch::new();
        for name in ["home", "guide"] {
            std::fs::create_dir(scratch.join(name)).expect("a directory");
        }
        let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to);
        let program = install(&scratch, "programs", "pronto", link);
        let programs = program.parent().expect("it has one").to_owned();
        let answer = "#!/bin/sh\ncat \"$GUIDE/token\"\n";
        write_program(&scratch.join("guide/answer"), answer);
        let identity = "[user]\nname = A\nemail = a@example.org\n[init]\ndefaultBranch = main\n";
        std::fs::write(scratch.join("home/.gitconfig"), identity).expect("a file");
        Reader {
            directory: scratch.join("home"),
            scratch,
            programs,
            names: Vec::new(),
            variables: Vec::new(),
        }
    }

    /// Adds a program.
    pub(crate) fn program(&self, name: &str, text: &str) {
        write_program(&self.programs.join(name), text);
    }

    /// Replaces a name on the pages.
    pub(crate) fn name(&mut self, name: &str, here: impl Into<String>) {
        self.names.push((name.to_owned(), here.into()));
    }

    /// Replaces a directory on the pages by one below the directory of this reader, whose parent exists.
    pub(crate) fn place(&mut self, directory: &str) {
        let here = self.scratch.join(&directory[1..]);
        std::fs::create_dir_all(here.parent().expect("it has one")).expect("a directory");
        self.name(directory, here.to_str().expect("text"));
    }

    pub(crate) fn variable(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    /// Executes the blocks of a page. Returns the number of blocks that ran.
    pub(crate) fn follow(&mut self, page: &str) -> usize {
        self.directory = self.scratch.join("home");
        let mut count = 0;
        for block in blocks(page) {
            count += usize::from(self.run(&block));
        }
        count
    }

    fn here(&self, text: &str) -> String {
        // Replaced text is not searched again.
        let (mut rest, mut done) = (text, String::new());
        let first = |rest: &str| {
            let found = self
                .names
                .iter()
                .filter_map(|name| Some((rest.find(&name.0)?, name)));
            found.min_by_key(|(at, _)| *at)
        };
        while let Some((at, (name, here))) = first(rest) {
            done.push_str(&rest[..at]);
            done.push_str(here);
            rest = &rest[at + name.len()..];
        }
        done + rest
    }

    fn run(&mut self, block: &Block) -> bool {
        let mut text = self.here(&block.text);
        let (mut before, mut after, mut until) = (String::new(), String::new(), None);
        for clause in &block.clauses {
            match clause {
                Clause::Not => return false,
                Clause::Until(wanted) => until = Some(self.here(wanted)),
                Clause::File(name) => {
                    std::fs::write(self.directory.join(self.here(name)), text).expect("a file");
                    return false;
                }
                Clause::End(name) => {
                    let path = self.directory.join(self.here(name));
                    let old = std::fs::read_to_string(&path).expect("a file");
                    std::fs::write(path, format!("{old}\n{text}")).expect("a file");
                    return false;
                }
                // The shell ends at the first command that fails, unless it is in a condition.
                Clause::Exit(status) => {
                    let last = text.trim_end().to_owned();
                    text = format!("{last} || test $? = {status}\n");
                }
                Clause::Before(commands) => before = self.here(commands),
                Clause::After(commands) => after = self.here(commands),
                Clause::Where(name, command) => {
                    let value = self.shell(&block.place, &self.here(command));
                    assert!(!value.trim().is_empty(), "{}: no {name}", block.place);
                    text = text.replace(name, value.trim());
                }
            }
        }
        if !block.language.is_empty() {
            return false;
        }
        match until {
            Some(wanted) => self.start(&block.place, &format!("{before}\n{text}"), &wanted),
            None => {
                let script = format!("{before}\n{text}\n{after}\npwd > \"$GUIDE/pwd\"\n");
                let printed = self.shell(&block.place, &script);
                self.learn(&printed);
                let pwd = self.scratch.join("guide/pwd");
                if let Ok(directory) = std::fs::read_to_string(pwd) {
                    self.directory = directory.trim().into();
                }
            }
        }
        true
    }

    fn command(&self) -> Command {
        let mut command = process("sh");
        command
            .env("PATH", path_with(&self.programs))
            .env("HOME", self.scratch.join("home"))
            .env("GUIDE", self.scratch.join("guide"))
            .env("GIT_ASKPASS", self.scratch.join("guide/answer"))
            .env("GIT_TERMINAL_PROMPT", "0")
            .envs(self.variables.iter().cloned())
            .current_dir(&self.directory);
        command
    }

    /// Executes commands, which must succeed. Returns what they print.
    fn shell(&self, place: &str, text: &str) -> String {
        let output = self
            .command()
            .args(["-ec", text])
            .output()
            .expect("it starts");
        assert!(
            output.status.success(),
            "{place} in {}:\n{text}\n{}{}",
            self.directory.display(),
            stdout(&output),
            stderr(&output)
        );
        stdout(&output)
    }

    /// Starts commands in the background, and waits until they print `wanted`.
    fn start(&self, place: &str, text: &str, wanted: &str) {
        let script = format!(
            ": > \"$GUIDE/out\"\n( {text}\n) > \"$GUIDE/out\" 2> \"$GUIDE/err\" & \n\
             until grep -qF '{wanted}' \"$GUIDE/out\"; do\n\
             kill -0 $! || {{ cat \"$GUIDE/out\" \"$GUIDE/err\"; exit 1; }}; sleep 0.02; done\n\
             ls /proc/$!/task/*/children > /dev/null && \
             {{ cat /proc/$!/task/*/children | grep . || echo $!; }} > \"$GUIDE/pid\"\n"
        );
        let printed = self.shell(place, &script);
        drop(printed);
        let printed = std::fs::read_to_string(self.scratch.join("guide/out"));
        self.learn(&printed.expect("a file"));
    }

    /// Keeps the last token in a text.
    fn learn(&self, printed: &str) {
        let mut words = printed.split_whitespace();
        if let Some(token) = words.rfind(|word| word.starts_with("pronto_")) {
            std::fs::write(self.scratch.join("guide/token"), token).expect("a file");
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let end = "test ! -e \"$GUIDE/pid\" || kill $(cat \"$GUIDE/pid\") || true";
        let _ = self.command().args(["-c", end]).output();
    }
}
