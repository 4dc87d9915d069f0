//! The steps of `docs/serve.md` that set up a server for a team, executed as they are written
//! there.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use test_support::skip;

use crate::serve::Server;
use crate::servers::free_port;
use crate::support::{Scratch, install, path_with, process, stderr, stdout, write_program};

/// A block of the page: the word after its fence, and its lines.
struct Block {
    language: String,
    text: String,
}

/// The command that starts the server.
const START: &str = "pronto serve --config pronto-server.toml";

/// The blocks of the section "A team's server in five minutes", in which the page's names are replaced.
fn blocks(directory: &Path, port: u16) -> Vec<Block> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let page = std::fs::read_to_string(path).expect("a page");
    let begin = page.find("## A team's server in five minutes");
    let section = &page[begin.expect("the section")..];
    let end = section[2..].find("\n## ").expect("another section");
    let text = section[..end]
        .replace("0.0.0.0:8418", &format!("127.0.0.1:{port}"))
        .replace("8418", &port.to_string())
        // This is what the page says for one's own machine.
        .replace("git.example.org", "localhost")
        .replace("/srv/git", directory.to_str().expect("text"));
    let mut blocks = Vec::new();
    let mut parts = text.split("\n```");
    parts.next();
    while let Some(part) = parts.next() {
        let (language, text) = part.split_once('\n').expect("a fence");
        blocks.push(Block {
            language: language.to_owned(),
            text: text.to_owned(),
        });
        parts.next().expect("the end of a block");
    }
    blocks
}

/// A user of the page, with an empty home directory.
struct Newcomer {
    scratch: Scratch,
    programs: PathBuf,
}

impl Newcomer {
    fn new() -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.join("home")).expect("a directory");
        let link = |from: &Path, to: &Path| std::os::unix::fs::symlink(from, to);
        let program = install(&scratch, "programs", "pronto", link);
        let programs = program.parent().expect("it has one").to_owned();
        Newcomer { scratch, programs }
    }

    fn command(&self, directory: &Path) -> Command {
        let mut command = process("sh");
        command
            .arg("-ec")
            .env("PATH", path_with(&self.programs))
            .env("HOME", self.scratch.join("home"))
            .env("GIT_TERMINAL_PROMPT", "0")
            .current_dir(directory);
        command
    }

    /// Runs a block in a directory, which must succeed. Returns what it prints.
    fn run(&self, directory: &Path, text: &str) -> String {
        let output = self.command(directory).arg(text).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{text}: {}", stderr(&output));
        stdout(&output)
    }

    /// Does the same with a program that answers what git asks.
    fn run_answering(&self, directory: &Path, text: &str, password: &str) {
        let answer = self.scratch.join("answer");
        write_program(&answer, &format!("#!/bin/sh\necho '{password}'\n"));
        let mut command = self.command(directory);
        let output = command.arg(text).env("GIT_ASKPASS", answer).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{text}: {}", stderr(&output));
    }
}

#[test]
fn the_steps_of_the_page_lead_to_a_server() {
    if !Path::new("/usr/bin/openssl").exists() {
        skip!("openssl is not installed");
    }
    let newcomer = Newcomer::new();
    let top = newcomer.scratch.path().to_owned();
    let directory = newcomer.scratch.join("srv/git");
    let mut token = None;
    let mut server = None;
    for Block { language, text } in blocks(&directory, free_port()) {
        if language == "toml" {
            std::fs::write(directory.join("pronto-server.toml"), text).expect("a file");
        } else if let Some(before) = text.strip_suffix(START) {
            newcomer.run(&directory, before);
            let arguments = ["--config", "pronto-server.toml"];
            server = Some(Server::start(&directory, &arguments, "serving at https"));
        } else if text.contains("git push") {
            newcomer.run(
                &top,
                "git init -q -b main work; git -C work -c user.name=A -c user.email=a@x \
                 commit -q --allow-empty -m one",
            );
            let token = token.as_deref().expect("a step before");
            newcomer.run_answering(&top.join("work"), &text, token);
        } else {
            let place = if directory.exists() { &directory } else { &top };
            let printed = newcomer.run(place, &text);
            let mut words = printed.split_whitespace();
            token = words
                .find(|word| word.starts_with("pronto_"))
                .map(str::to_owned)
                .or(token);
        }
    }
    let clone = newcomer.scratch.join("home/project");
    let commits = newcomer.run(&clone, "git log --oneline origin/main");
    assert_eq!(commits.lines().count(), 1, "{commits}");
    assert!(directory.join("repositories/team/project.git").is_dir());
    let server = server.expect("a step starts it");
    server.signal(Signal::TERM);
    server.end();
}
