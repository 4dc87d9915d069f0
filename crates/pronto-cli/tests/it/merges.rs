//! Compares merges of randomly changed texts with those of git.

use std::path::Path;
use std::process::Output;

use crate::support::{Scratch, process, pronto_path, stderr};

/// Pseudo-random numbers that are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % limit.max(1)
    }

    /// Lines, some of which occur many times.
    fn text(&mut self, lines: usize) -> Vec<String> {
        (0..lines)
            .map(|_| match self.below(4) {
                0 => ["", "}", "{", "\treturn;"][self.below(4)].to_owned(),
                _ => format!("line {}", self.below(lines * 2)),
            })
            .collect()
    }

    fn changed(&mut self, text: &[String], times: usize) -> Vec<String> {
        let mut text = text.to_vec();
        for _ in 0..times {
            let at = self.below(text.len() + 1);
            let end = (at + 1 + self.below(4)).min(text.len());
            match self.below(4) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let new = self.text(3);
                    text.splice(at..at, new);
                }
                2 => text[at..end].iter_mut().for_each(|line| line.push('x')),
                _ => {
                    let from = self.below(text.len());
                    let copied = text[from..(from + 3).min(text.len())].to_vec();
                    text.splice(at..at, copied);
                }
            }
        }
        text
    }
}

fn merge(program: impl AsRef<std::ffi::OsStr>, directory: &Path, style: &str) -> Output {
    process(program)
        .args([
            "merge-file",
            "-p",
            style,
            "-L",
            "one",
            "ours",
            "base",
            "theirs",
        ])
        .env("PRONTO_NO_FALLBACK", "1")
        .current_dir(directory)
        .output()
        .expect("it starts")
}

#[test]
fn merges_of_changed_texts_equal_those_of_git() {
    let scratch = Scratch::new();
    let directory = scratch.path();
    let mut chance = Chance(20_051_122);
    for round in 0..60 {
        let lines = [5, 40, 300, 1500][round % 4];
        let base = chance.text(lines);
        let times = 1 + chance.below(lines / 4 + 2);
        let ours = chance.changed(&base, times);
        let theirs = match chance.below(3) {
            0 => chance.changed(&ours, 3),
            _ => chance.changed(&base, times),
        };
        for (name, text) in [("base", &base), ("ours", &ours), ("theirs", &theirs)] {
            let end = ["\n", ""][usize::from(chance.below(9) == 0)];
            std::fs::write(directory.join(name), text.join("\n") + end).expect("a file");
        }
        for style in ["--marker-size=7", "--diff3", "--zdiff3"] {
            let (expected, found) = (
                merge("git", directory, style),
                merge(pronto_path(), directory, style),
            );
            assert_eq!(expected.status, found.status, "{round}: {}", stderr(&found));
            assert!(expected.stdout == found.stdout, "round {round}, {style}");
        }
    }
}
