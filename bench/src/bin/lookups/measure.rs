//! The measurements of pronto's library.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gix_object::Kind as ObjectKind;
use pronto_hash::{Kind, ObjectId};
use pronto_io::view::ViewAccess;
use pronto_odb::{Options, Store};
use pronto_pack::idx::{IndexPosition, PackIndex};

/// The largest number of ids to look up. In a larger index, these ids are evenly spread.
pub(crate) const MOST_IDS: u32 = 2_000_000;

/// The number of times that each run opens the index.
const OPENINGS: usize = 10;

pub(crate) const OPEN: &str = "open and find one";
pub(crate) const FIND: &str = "random find, each";
pub(crate) const MANY: &str = "random find of many at once, each";
pub(crate) const SORTED: &str = "sorted find, each";
pub(crate) const SCAN: &str = "scan of all";

/// The number of commits that are read after opening a repository.
const COMMITS: [usize; 4] = [1, 10, 100, 1000];

/// The measured operations, in the order of printing.
pub(crate) fn all() -> Vec<String> {
    let of_index = [OPEN, FIND, MANY, SORTED, SCAN].map(str::to_owned);
    of_index.into_iter().chain(COMMITS.map(reading)).collect()
}

fn reading(commits: usize) -> String {
    format!("open and read {commits} commits")
}

/// The duration of each run in seconds.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<(String, f64)>);

/// The properties and the figures of an index.
pub(crate) struct MeasuredIndexFile {
    pub(crate) objects: u32,
    pub(crate) figures: Figures,
}

impl Figures {
    pub(crate) fn of(&self, what: &str) -> impl Iterator<Item = f64> {
        let wanted = self.0.iter().filter(move |(other, _)| other == what);
        wanted.map(|(_, seconds)| *seconds)
    }

    /// Parses lines that consist of a name, a tab and seconds.
    pub(crate) fn parse(text: &str) -> Result<Figures, String> {
        let lines = text.lines().map(|line| {
            let (what, seconds) = line.split_once('\t')?;
            Some((what.to_owned(), seconds.parse().ok()?))
        });
        let figures: Option<Vec<_>> = lines.collect();
        figures
            .map(Figures)
            .ok_or_else(|| format!("no figures: {text}"))
    }
}

/// Measures `path` `runs` times, after one warm-up run.
pub(crate) fn pronto(path: &Path, runs: usize) -> Result<MeasuredIndexFile, String> {
    let measured = measure(path, runs);
    measured.map_err(|error| format!("{}: {error}", path.display()))
}

type MeasureFailure = Box<dyn std::error::Error>;

fn measure(path: &Path, runs: usize) -> Result<MeasuredIndexFile, MeasureFailure> {
    let open = || PackIndex::open(path, Kind::Sha1, ViewAccess::Auto);
    let index = open()?;
    let random = sample(&index)?;
    let mut sorted = random.clone();
    sorted.sort_unstable();
    let each = random.len().max(1) as f64;
    let mut figures = Figures::default();
    for run in 0..=runs {
        let mut note = |what: &str, seconds: f64| {
            if run > 0 {
                figures.0.push((what.to_owned(), seconds));
            }
        };
        for one in random.iter().take(OPENINGS) {
            // The measured time ends when the id is found. Closing the index is never included.
            let mut opened = None;
            let opening = time(|| {
                let index = opened.insert(open()?);
                Ok(index.find_offset(one)?.is_some())
            })?;
            note(OPEN, opening);
        }
        let finding = time(|| {
            let mut all = true;
            for id in &random {
                all &= index.find_offset(id)?.is_some();
            }
            Ok(all)
        })?;
        note(FIND, finding / each);
        let searching = time(|| {
            let mut count = 0;
            index.find_offsets(random.iter().map(|id| &**id), |_, _, _| count += 1)?;
            Ok(count == random.len())
        })?;
        note(MANY, searching / each);
        let merging = time(|| {
            let mut count = 0;
            index.find_many(sorted.iter().map(|id| &**id), |_, _| count += 1)?;
            Ok(count == sorted.len())
        })?;
        note(SORTED, merging / each);
        let scanning = time(|| {
            let mut sum = 0;
            index.scan(0..index.len(), |_, id, offset| {
                sum ^= offset.0 ^ u64::from(id.first_byte());
            })?;
            Ok(black_box(sum) < u64::MAX)
        })?;
        note(SCAN, scanning);
    }
    if path.with_extension("pack").exists()
        && let Some(objects) = path.ancestors().nth(2)
    {
        read_commits(objects, &random, runs, &mut figures)?;
    }
    Ok(MeasuredIndexFile {
        objects: index.len(),
        figures,
    })
}

/// Opens the object store and reads commits from it. Each run opens the store again.
fn read_commits(
    objects: &Path,
    ids: &[ObjectId],
    runs: usize,
    figures: &mut Figures,
) -> Result<(), MeasureFailure> {
    let open = || Store::open(objects, Options::default());
    let mut commits = Vec::new();
    let store = open()?;
    for id in ids {
        let header = store.header(id)?;
        if header.is_some_and(|header| header.kind == ObjectKind::Commit) {
            commits.push(*id);
        }
        if Some(&commits.len()) == COMMITS.last() {
            break;
        }
    }
    let mut out = Vec::new();
    for count in COMMITS.into_iter().filter(|count| *count <= commits.len()) {
        for run in 0..=runs {
            let seconds = time(|| {
                let store = open()?;
                let mut all = true;
                for id in &commits[..count] {
                    all &= store.find(id, &mut out)?.is_some();
                }
                Ok(all)
            })?;
            if run > 0 {
                figures.0.push((reading(count), seconds));
            }
        }
    }
    Ok(())
}

fn time(run: impl FnOnce() -> Result<bool, MeasureFailure>) -> Result<f64, MeasureFailure> {
    let start = Instant::now();
    let sound = run()?;
    let taken = start.elapsed().as_secs_f64();
    assert!(sound, "every id that is looked for is there");
    Ok(taken)
}

/// Returns ids of the index in random order.
fn sample(index: &PackIndex) -> Result<Vec<ObjectId>, pronto_pack::Error> {
    let step = index.len().div_ceil(MOST_IDS).max(1);
    let rows = (0..index.len()).step_by(step as usize);
    let ids: Result<Vec<_>, _> = rows.map(|row| index.id_at(IndexPosition(row))).collect();
    let mut ids = ids?;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for at in (1..ids.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ids.swap(at, ((state >> 33) % (at as u64 + 1)) as usize);
    }
    Ok(ids)
}
