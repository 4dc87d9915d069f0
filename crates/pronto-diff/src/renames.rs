//! Rename detection in Git's order: exact renames, then unique base names, then all pairs of a
//! deletion and an addition.

use crate::similarity::LineCounts;
use crate::{Difference, DifferenceSide, MOST_SIMILAR, RenameOrigin};
use bstr::{BStr, BString, ByteSlice};
use pronto_hash::ObjectId;
use std::collections::HashMap;

/// The options of rename detection (`-M`, `-C`, `diff.renames`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renames {
    /// Detect copies of modified files, too (`-C`, `diff.renames=copies`).
    pub copies: bool,
    /// The minimum similarity, out of [`MOST_SIMILAR`] (`-M50%`).
    pub minimum_score: u32,
    /// The rename limit (`-l`, `diff.renameLimit`). Inexact detection is skipped if there are more
    /// pairs than the square of the limit. 0 means no limit.
    pub limit: usize,
}

impl Default for Renames {
    fn default() -> Self {
        Renames {
            copies: false,
            minimum_score: MOST_SIMILAR / 2,
            limit: 1000,
        }
    }
}

/// The maximum number of sources that are considered for each addition.
const CANDIDATES: usize = 4;
/// The maximum number of sources with the same content that are compared.
const MOST_ALTERNATIVES: usize = 100;

/// A possible source of a rename or a copy.
struct RenameSource {
    path: BString,
    side: DifferenceSide,
    /// The number of uses as a source. A file that still exists starts with one.
    used: u32,
    /// The position among the differences, if the file was deleted.
    deletion: Option<usize>,
}

/// A possible target of a rename or a copy.
struct RenameTarget {
    path: BString,
    side: DifferenceSide,
    /// The position among the differences.
    addition: usize,
    found: Option<(usize, u32)>,
}

/// Returns the content of a file, or `None` if the file cannot be read. Called only for files that
/// are compared.
pub type ReadContent<'a> = dyn FnMut(&BStr, &DifferenceSide) -> Option<Vec<u8>> + 'a;

/// Detects renames among `differences` (sorted by path) and combines each pair into one difference.
pub fn detect(
    differences: Vec<Difference>,
    renames: Renames,
    content: &mut ReadContent<'_>,
) -> Vec<Difference> {
    let mut search = RenameSearch::new(&differences, renames);
    if search.sources.is_empty() || search.targets.is_empty() {
        return differences;
    }
    search.same_content();
    if renames.minimum_score < MOST_SIMILAR {
        let mut reader = Reader {
            content,
            known: HashMap::new(),
        };
        if !renames.copies {
            search.same_name(&mut reader);
        }
        search.similar(&mut reader);
    }
    search.apply(differences)
}

struct RenameSearch {
    renames: Renames,
    sources: Vec<RenameSource>,
    targets: Vec<RenameTarget>,
}

/// A pair that was compared.
#[derive(Clone, Copy)]
struct RenamePair {
    score: u32,
    same_name: bool,
    source: usize,
    target: usize,
}

impl RenamePair {
    fn rank(&self) -> (u32, bool) {
        (self.score, self.same_name)
    }
}

impl RenameSearch {
    fn new(differences: &[Difference], renames: Renames) -> RenameSearch {
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        for (at, difference) in differences.iter().enumerate() {
            if difference.unmerged {
                continue;
            }
            let path = || difference.path.clone();
            match (difference.old, difference.new) {
                (None, Some(side)) => {
                    targets.push(RenameTarget {
                        path: path(),
                        side,
                        addition: at,
                        found: None,
                    });
                }
                (Some(side), None) => {
                    let deletion = Some(at);
                    sources.push(RenameSource {
                        path: path(),
                        side,
                        used: 0,
                        deletion,
                    });
                }
                (Some(side), Some(_)) if renames.copies => {
                    sources.push(RenameSource {
                        path: path(),
                        side,
                        used: 1,
                        deletion: None,
                    });
                }
                _ => {}
            }
        }
        RenameSearch {
            renames,
            sources,
            targets,
        }
    }

    fn record(&mut self, source: usize, target: usize, score: u32) {
        self.sources[source].used += 1;
        self.targets[target].found = Some((source, score));
    }

    fn same_content(&mut self) {
        let mut by_id: HashMap<ObjectId, Vec<usize>> = HashMap::new();
        for (at, source) in self.sources.iter().enumerate() {
            by_id.entry(source.side.id).or_default().push(at);
        }
        for at in 0..self.targets.len() {
            let target = &self.targets[at];
            let Some(equal) = by_id
                .get(&target.side.id)
                .filter(|_| !target.side.id.is_null())
            else {
                continue;
            };
            let mut best: Option<(u32, usize)> = None;
            let modes_agree = |side: &DifferenceSide| {
                (is_regular(side) && is_regular(&target.side)) || side.mode == target.side.mode
            };
            let usable = |source: &&usize| {
                let source = &self.sources[**source];
                modes_agree(&source.side) && (source.used == 0 || self.renames.copies)
            };
            for &source in equal.iter().filter(usable).take(MOST_ALTERNATIVES) {
                let same_name = base_name(&self.sources[source].path) == base_name(&target.path);
                let score = u32::from(self.sources[source].used == 0) + u32::from(same_name);
                if best.is_none_or(|(known, _)| score > known) {
                    best = Some((score, source));
                }
                if score == 2 {
                    break;
                }
            }
            if let Some((_, source)) = best {
                self.record(source, at, MOST_SIMILAR);
            }
        }
    }

    /// Compares the pairs whose base name is unique among the sources and among the additions.
    /// Their similarity must be at least halfway between the minimum and 100%.
    fn same_name(&mut self, reader: &mut Reader<'_, '_>) {
        let least = self.renames.minimum_score;
        let least = least + (MOST_SIMILAR - least) / 2;
        let mut targets: HashMap<&BStr, Option<usize>> = HashMap::new();
        for (at, target) in self.targets.iter().enumerate() {
            if target.found.is_none() {
                let only = |slot: &mut Option<usize>| *slot = None;
                targets
                    .entry(base_name(&target.path))
                    .and_modify(only)
                    .or_insert(Some(at));
            }
        }
        let mut sources: HashMap<&BStr, u32> = HashMap::new();
        for source in self.sources.iter().filter(|source| source.used == 0) {
            *sources.entry(base_name(&source.path)).or_default() += 1;
        }
        let mut found = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            let name = base_name(&source.path);
            if source.used > 0 || sources.get(name) != Some(&1) {
                continue;
            }
            if let Some(Some(target)) = targets.get(name).copied() {
                let score = reader.score(source, &self.targets[target], least);
                if score >= least {
                    found.push((at, target, score));
                }
            }
        }
        for (source, target, score) in found {
            self.record(source, target, score);
        }
    }

    fn similar(&mut self, reader: &mut Reader<'_, '_>) {
        let free = |source: &RenameSource| source.used == 0 || self.renames.copies;
        let sources: Vec<usize> = (0..self.sources.len())
            .filter(|&at| free(&self.sources[at]))
            .collect();
        let targets: Vec<usize> = (0..self.targets.len())
            .filter(|&at| self.targets[at].found.is_none())
            .collect();
        let limit = self.renames.limit;
        if limit > 0 && sources.len().saturating_mul(targets.len()) > limit.saturating_mul(limit) {
            return;
        }
        let mut candidates = Vec::new();
        for &target in &targets {
            let mut best: Vec<RenamePair> = Vec::with_capacity(CANDIDATES);
            for &source in &sources {
                let (one, two) = (&self.sources[source], &self.targets[target]);
                let score = reader.score(one, two, self.renames.minimum_score);
                let same_name = base_name(&one.path) == base_name(&two.path);
                keep_better(
                    &mut best,
                    RenamePair {
                        score,
                        same_name,
                        source,
                        target,
                    },
                );
            }
            candidates.append(&mut best);
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.rank()));
        let copies: &[bool] = if self.renames.copies {
            &[false, true]
        } else {
            &[false]
        };
        for &copies in copies {
            for candidate in &candidates {
                if candidate.score < self.renames.minimum_score {
                    break;
                }
                let taken = self.targets[candidate.target].found.is_some();
                if !taken && (copies || self.sources[candidate.source].used == 0) {
                    self.record(candidate.source, candidate.target, candidate.score);
                }
            }
        }
    }

    fn apply(self, mut differences: Vec<Difference>) -> Vec<Difference> {
        let mut left: Vec<u32> = self.sources.iter().map(|source| source.used).collect();
        for target in &self.targets {
            let Some((at, score)) = target.found else {
                continue;
            };
            let source = &self.sources[at];
            left[at] -= 1;
            let difference = &mut differences[target.addition];
            difference.old = Some(source.side);
            // The last use of a deleted source is its rename.
            let copy = left[at] > 0;
            difference.origin = Some(RenameOrigin {
                path: source.path.clone(),
                score,
                copy,
            });
        }
        let mut gone: Vec<usize> = self
            .sources
            .iter()
            .filter(|source| source.used > 0)
            .filter_map(|source| source.deletion)
            .collect();
        gone.sort_unstable();
        let mut at = 0;
        differences.retain(|_| {
            at += 1;
            gone.binary_search(&(at - 1)).is_err()
        });
        differences
    }
}

/// Keeps the best candidates, in the order in which they were found.
fn keep_better(best: &mut Vec<RenamePair>, new: RenamePair) {
    if best.len() < CANDIDATES {
        return best.push(new);
    }
    // Replace the first of the worst candidates.
    let mut worst = 0;
    for at in 1..best.len() {
        if best[at].rank() < best[worst].rank() {
            worst = at;
        }
    }
    if best[worst].rank() < new.rank() {
        best[worst] = new;
    }
}

fn is_regular(side: &DifferenceSide) -> bool {
    side.mode & 0o170_000 == 0o100_000
}

fn base_name(path: &BString) -> &BStr {
    let start = path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
    path[start..].as_bstr()
}

/// Reads and splits contents, each at most once.
struct Reader<'r, 'c> {
    content: &'r mut ReadContent<'c>,
    known: HashMap<(BString, ObjectId), Option<LineCounts>>,
}

impl Reader<'_, '_> {
    fn score(&mut self, source: &RenameSource, target: &RenameTarget, least: u32) -> u32 {
        if !is_regular(&source.side) || !is_regular(&target.side) {
            return 0;
        }
        let keys = [(&source.path, &source.side), (&target.path, &target.side)];
        let [one, two] = keys.map(|(path, side)| {
            let key = (path.clone(), side.id);
            if !self.known.contains_key(&key) {
                let content = (self.content)(path.as_bstr(), side);
                let chunks = content.map(|content| LineCounts::new(&content));
                self.known.insert(key.clone(), chunks);
            }
            key
        });
        match (self.known.get(&one), self.known.get(&two)) {
            (Some(Some(one)), Some(Some(two)))
                if !LineCounts::sizes_differ_too_much(one.size(), two.size(), least) =>
            {
                one.score(two)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pronto_hash::Kind;

    fn side(content: &str) -> Option<DifferenceSide> {
        let id = pronto_hash::digest(Kind::Sha1, &[content.as_bytes()]).expect("no collision");
        Some(DifferenceSide {
            mode: 0o100_644,
            id,
        })
    }

    /// Runs the detection for files with a path, an old and a new content. Returns one line for
    /// each difference.
    fn run(files: &[(&str, Option<&str>, Option<&str>)], renames: Renames) -> Vec<String> {
        let mut known = HashMap::new();
        let mut differences = Vec::new();
        for &(path, old, new) in files {
            for content in [old, new].into_iter().flatten() {
                known.insert(side(content).expect("a side").id, content.to_owned());
            }
            differences.push(Difference {
                path: path.into(),
                old: old.and_then(side),
                new: new.and_then(side),
                origin: None,
                unmerged: false,
            });
        }
        let mut content = |_: &BStr, side: &DifferenceSide| {
            known.get(&side.id).map(|content| content.clone().into())
        };
        detect(differences, renames, &mut content)
            .iter()
            .map(|difference| {
                let letter = char::from(difference.letter());
                match &difference.origin {
                    Some(origin) => {
                        let percent = origin.score * 100 / MOST_SIMILAR;
                        format!("{letter}{percent} {} {}", origin.path, difference.path)
                    }
                    None => format!("{letter} {}", difference.path),
                }
            })
            .collect()
    }

    #[test]
    fn equal_content_prefers_equal_names() {
        let files = [
            ("a", Some("x\n"), None),
            ("d/b", Some("x\n"), None),
            ("e/b", None, Some("x\n")),
            ("f", None, Some("x\n")),
            ("g", None, Some("x\n")),
        ];
        let found = run(&files, Renames::default());
        assert_eq!(found, ["R100 d/b e/b", "R100 a f", "A g"]);
    }

    #[test]
    fn similar_content_is_found_down_to_the_minimum() {
        let files = [
            ("new", None, Some("1\n2\n3\n4\n5\n6\n7\n8\n9\n")),
            ("old", Some("1\n2\n3\n4\n5\n6\n7\n8\nx\n"), None),
            ("other", Some("1\n2\n3\n4\n5\n-\n-\n-\n-\n"), None),
        ];
        assert_eq!(run(&files, Renames::default()), ["R88 old new", "D other"]);
        let strict = Renames {
            minimum_score: 54_000,
            ..Renames::default()
        };
        assert_eq!(run(&files, strict), ["A new", "D old", "D other"]);
        let limited = Renames {
            limit: 1,
            ..Renames::default()
        };
        assert_eq!(run(&files, limited), ["A new", "D old", "D other"]);
    }

    #[test]
    fn copies_come_from_files_that_stay() {
        let files = [
            ("a", Some("1\n2\n3\n"), Some("1\n2\n3\n4\n")),
            ("b", None, Some("1\n2\n3\n")),
        ];
        assert_eq!(run(&files, Renames::default()), ["M a", "A b"]);
        let copies = Renames {
            copies: true,
            ..Renames::default()
        };
        assert_eq!(run(&files, copies), ["M a", "C100 a b"]);
    }
}
