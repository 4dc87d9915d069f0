//! Renames and copies between random trees.

use std::collections::HashMap;

use pronto_diff::renames::detect;
use pronto_diff::{Difference, DifferenceSide, MOST_SIMILAR, Renames};
use pronto_hash::ObjectId;
use test_support::{Random, Seed};

use crate::trees::{TestFile, TestTree, TreePair};

/// The number of pairs of trees.
const PAIRS: usize = 40;

/// Returns the content of a file: one of few texts, with some lines changed.
fn content(random: &mut Random) -> Vec<u8> {
    let topic = random.below(5);
    let count = 4 + topic * 6;
    let changed = random.below(count + 2);
    let line = |at: u64, random: &mut Random| match at < changed && random.below(2) == 0 {
        true => format!("changed {}\n", random.below(50)),
        false => format!("topic {topic} line {at}\n"),
    };
    (0..count)
        .map(|at| line(at, random))
        .collect::<String>()
        .into_bytes()
}

fn tree(random: &mut Random, old: Option<&TestTree>) -> TestTree {
    let mut tree = TestTree::new();
    for _ in 0..12 + random.below(12) {
        let directory = *random.one_of(&["a", "b", "c/d", "e"]);
        let name = *random.one_of(&["one", "two", "three", "four", "five", "six.c"]);
        let mode = *random.one_of(&[0o100_644, 0o100_644, 0o100_755, 0o120_000]);
        let kept = old.and_then(|old| {
            let files: Vec<&TestFile> = old.values().collect();
            (random.below(2) == 0).then(|| (*random.one_of(&files)).clone())
        });
        let file = kept.unwrap_or_else(|| TestFile {
            mode,
            content: match mode {
                0o120_000 => format!("target{}", random.below(3)).into_bytes(),
                _ => content(random),
            },
        });
        tree.insert(format!("{directory}/{name}"), file);
    }
    tree
}

/// Parses the raw format without renames.
fn differences(raw: &str) -> Vec<Difference> {
    let side = |mode: &str, id: &str| {
        let mode = u32::from_str_radix(mode, 8).expect("a mode");
        (mode != 0).then(|| DifferenceSide {
            mode,
            id: ObjectId::from_hex(id.as_bytes()).expect("an id"),
        })
    };
    let parse = |line: &str| {
        let (fields, path) = line.split_once('\t').expect("a path");
        let fields: Vec<&str> = fields.trim_start_matches(':').split(' ').collect();
        Difference {
            path: path.into(),
            old: side(fields[0], fields[2]),
            new: side(fields[1], fields[3]),
            origin: None,
            unmerged: false,
        }
    };
    raw.lines().map(parse).collect()
}

fn render(difference: &Difference) -> String {
    let letter = char::from(difference.letter());
    match &difference.origin {
        Some(origin) => {
            let percent = u64::from(origin.score) * 100 / u64::from(MOST_SIMILAR);
            format!("{letter}{percent:03}\t{}\t{}", origin.path, difference.path)
        }
        None => format!("{letter}\t{}", difference.path),
    }
}

#[test]
fn renames_and_copies_are_those_of_git() {
    let Some(git) = test_support::git::reference() else {
        test_support::skip!("git 2.55 is missing", test_support::NO_REFERENCE);
    };
    let seed = Seed::new("renames_and_copies_are_those_of_git");
    let mut random = Random::new(seed.number());
    for _ in 0..PAIRS {
        let old = tree(&mut random, None);
        let new = tree(&mut random, Some(&old));
        let pair = TreePair::new(git, [&old, &new]);
        let plain = differences(&pair.diff(&["--raw", "--no-abbrev", "--no-renames"]));
        let mut contents = HashMap::new();
        for difference in &plain {
            let path = difference.path.to_string();
            for (side, tree) in [(difference.old, &old), (difference.new, &new)] {
                if let Some(side) = side {
                    contents.insert(side.id, tree[&path].content.clone());
                }
            }
        }
        for (option, copies, minimum_score, limit) in [
            ("-M", false, MOST_SIMILAR / 2, 0),
            ("-M80%", false, MOST_SIMILAR / 10 * 8, 0),
            ("-M100%", false, MOST_SIMILAR, 0),
            ("-C", true, MOST_SIMILAR / 2, 0),
            ("-C30%", true, MOST_SIMILAR / 10 * 3, 0),
        ] {
            let renames = Renames {
                copies,
                minimum_score,
                limit,
            };
            let mut content = |_: &_, side: &DifferenceSide| contents.get(&side.id).cloned();
            let found = detect(plain.clone(), renames, &mut content);
            let found: Vec<String> = found.iter().map(render).collect();
            let expected = pair.diff(&["--name-status", "-l0", option]);
            let expected: Vec<&str> = expected.lines().collect();
            assert!(
                found == expected,
                "{option}\ngit: {expected:#?}\npronto: {found:#?}"
            );
        }
    }
}
