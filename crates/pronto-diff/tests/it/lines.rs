//! Line differences of random texts.

use std::fmt::Write as _;

use pronto_diff::lines::{LineChange, changes, lines};
use test_support::{Random, Seed};

use crate::trees::{TestFile, TestTree, TreePair};

/// The number of pairs of texts.
const PAIRS: usize = 300;

/// Returns a text of up to `most` lines, of which `different` are different.
fn text(random: &mut Random, most: u64, different: u64) -> Vec<String> {
    let count = random.below(most);
    let line = |random: &mut Random| format!("line {}\n", random.below(different));
    (0..count).map(|_| line(random)).collect()
}

/// Returns `text` with lines that were removed, inserted, replaced or moved.
fn edited(random: &mut Random, text: &[String], different: u64) -> Vec<String> {
    let mut edited = text.to_vec();
    for _ in 0..random.below(12) {
        let at = random.below(edited.len() as u64 + 1) as usize;
        let end = (at + random.below(6) as usize).min(edited.len());
        let block: Vec<String> = match random.below(4) {
            0 => Vec::new(),
            1 => self::text(random, 8, different),
            2 => edited[at..end].iter().rev().cloned().collect(),
            _ => vec![format!("line {}\n", random.below(different)); 3],
        };
        edited.splice(at..end, block);
    }
    edited
}

/// Returns `text` with blocks of 10 to 50 lines that were kept, removed, replaced or exchanged, so that long
/// equal runs lie between many changes: there, the search for the shortest script ends early.
fn exchanged(random: &mut Random, text: &[String], different: u64) -> Vec<String> {
    let mut blocks: Vec<Vec<String>> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let count = (10 + random.below(40) as usize).min(rest.len());
        let (block, after) = rest.split_at(count);
        rest = after;
        let block = match random.below(4) {
            0 => Vec::new(),
            1 => self::text(random, 60, different),
            _ => block.to_vec(),
        };
        let at = blocks.len() - random.below(blocks.len().min(3) as u64 + 1) as usize;
        blocks.insert(at, block);
    }
    blocks.concat()
}

/// Returns the changes that a patch with context shows.
fn changes_of(patch: &str) -> Vec<LineChange> {
    let mut found: Vec<LineChange> = Vec::new();
    let (mut before, mut after) = (0, 0);
    let mut is_open = false;
    for line in patch.lines() {
        if let Some(header) = line.strip_prefix("@@ -") {
            let start = |range: &str| {
                let (start, count) = range.split_once(',').unwrap_or((range, "1"));
                let start: usize = start.parse().expect("a number");
                match count {
                    "0" => start,
                    _ => start - 1,
                }
            };
            let mut parts = header.split(' ');
            before = start(parts.next().expect("a range"));
            after = start(parts.next().expect("a range").trim_start_matches('+'));
            is_open = false;
            continue;
        }
        let (from_before, from_after) = match line.as_bytes().first() {
            Some(b' ') => (1, 1),
            Some(b'-') => (1, 0),
            Some(b'+') => (0, 1),
            _ => continue,
        };
        let is_change = from_before + from_after == 1;
        if is_change && !is_open {
            found.push(LineChange {
                before: before..before,
                after: after..after,
            });
        }
        is_open = is_change;
        before += from_before;
        after += from_after;
        if is_change && let Some(last) = found.last_mut() {
            last.before.end = before;
            last.after.end = after;
        }
    }
    found
}

#[test]
fn changes_are_those_of_git() {
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let seed = Seed::new("changes_are_those_of_git");
    let mut random = Random::new(seed.number());
    let (mut old, mut new) = (TestTree::new(), TestTree::new());
    for number in 0..PAIRS {
        // A few are so large and different that the search is limited.
        let (most, different) = match number % 30 {
            0 => (3000, 200),
            10 | 20 => (4000, *random.one_of(&[30, 300, 3000])),
            _ => (120, *random.one_of(&[2, 3, 8, 40])),
        };
        let before = text(&mut random, most, different);
        let after = match random.below(4) {
            _ if matches!(number % 30, 10 | 20) => exchanged(&mut random, &before, different),
            0 => text(&mut random, most, different),
            _ => edited(&mut random, &before, different),
        };
        let mut name = String::new();
        _ = write!(name, "{number:04}");
        for (tree, lines) in [(&mut old, before), (&mut new, after)] {
            let content = lines.concat().into_bytes();
            tree.insert(
                name.clone(),
                TestFile {
                    mode: 0o100_644,
                    content,
                },
            );
        }
    }
    let pair = TreePair::new(git, [&old, &new]);
    let patch = pair.diff(&["-p", "--no-indent-heuristic", "--diff-algorithm=myers"]);
    let mut patches: Vec<&str> = patch.split("diff --git a/").skip(1).collect();
    patches.reverse();
    for (name, file) in &old {
        let (before, after) = (&file.content, &new[name].content);
        let found = changes(&lines(before), &lines(after));
        let expected = match patches
            .last()
            .filter(|patch| patch.starts_with(name.as_str()))
        {
            Some(patch) => changes_of(patch.split_once("\n+++ ").map_or("", |(_, body)| body)),
            None => Vec::new(),
        };
        if !expected.is_empty() {
            patches.pop();
        }
        let (before, after) = (
            String::from_utf8_lossy(before),
            String::from_utf8_lossy(after),
        );
        assert!(
            found == expected,
            "{name}\ngit: {expected:?}\npronto: {found:?}\nbefore:\n{before}\nafter:\n{after}"
        );
    }
}
