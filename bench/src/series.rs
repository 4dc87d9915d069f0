//! Measures the tables of report 000 in one run: clone, checkout and threshold on many file
//! systems. Each part writes its own result, `report-000-PART`. An interrupted series continues
//! after the finished parts.

use std::time::Duration;

use crate::Args;
use crate::volume::Kind;

/// A part of the series, which is one table.
struct BenchTable {
    name: &'static str,
    place: Option<Kind>,
    slow_microseconds: u64,
    seek_microseconds: u64,
    cold: bool,
    sort: Sort,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Clones and checkouts of whole trees.
    Checkouts,
    /// Checkouts of a small number of files.
    Threshold,
    /// Checkouts of whole trees of the smaller repository, on file systems with slow calls.
    Far,
}

const NEAR: BenchTable = BenchTable {
    name: "",
    place: None,
    slow_microseconds: 0,
    seek_microseconds: 0,
    cold: false,
    sort: Sort::Checkouts,
};

const fn near(name: &'static str, place: Kind, cold: bool, sort: Sort) -> BenchTable {
    BenchTable {
        name,
        place: Some(place),
        cold,
        sort,
        ..NEAR
    }
}

const fn far(name: &'static str, slow_microseconds: u64, seek_microseconds: u64) -> BenchTable {
    BenchTable {
        name,
        slow_microseconds,
        seek_microseconds,
        sort: Sort::Far,
        ..NEAR
    }
}

/// All parts, the most important ones first.
const PARTS: [BenchTable; 14] = [
    near("tmpfs", Kind::Tmpfs, false, Sort::Checkouts),
    far("slow-1ms", 1000, 0),
    near("ext4", Kind::Ext4, false, Sort::Checkouts),
    near("tmpfs-threshold", Kind::Tmpfs, false, Sort::Threshold),
    near("xfs", Kind::Xfs, false, Sort::Checkouts),
    far("slow-200us", 200, 0),
    far("seek", 0, 8000),
    near("ext4-cold", Kind::Ext4, true, Sort::Checkouts),
    near("ext4-threshold", Kind::Ext4, false, Sort::Threshold),
    near("btrfs", Kind::Btrfs, false, Sort::Checkouts),
    far("slow-5ms", 5000, 0),
    near("xfs-cold", Kind::Xfs, true, Sort::Checkouts),
    near("btrfs-cold", Kind::Btrfs, true, Sort::Checkouts),
    near("xfs-threshold", Kind::Xfs, false, Sort::Threshold),
];

/// Returns the arguments of each part that `arguments` select, in order.
pub(crate) fn parts(arguments: &Args) -> Vec<Args> {
    let wanted = |part: &&BenchTable| {
        arguments.part.is_empty() || arguments.part.iter().any(|name| name == part.name)
    };
    PARTS
        .iter()
        .filter(wanted)
        .map(|part| arguments_of(part, arguments))
        .collect()
}

/// Returns the names of all parts.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PARTS.iter().map(|part| part.name)
}

fn arguments_of(part: &BenchTable, given: &Args) -> Args {
    let microseconds = |count: u64| (count > 0).then(|| Duration::from_micros(count));
    let mut arguments = Args {
        name: Some(format!("report-000-{}", part.name)),
        place: part.place,
        slow: microseconds(part.slow_microseconds),
        seek: microseconds(part.seek_microseconds),
        cold: part.cold,
        resume: true,
        ..given.clone()
    };
    arguments.scenarios = match part.sort {
        Sort::Checkouts | Sort::Far => vec!["clone", "checkout", "switch"],
        Sort::Threshold => crate::scenario::THRESHOLDS.to_vec(),
    }
    .into_iter()
    .map(str::to_owned)
    .collect();
    match part.sort {
        Sort::Checkouts => {}
        Sort::Far => {
            arguments.repository.clone_from(&given.far_repository);
            arguments.runs = given.runs.min(2);
        }
        Sort::Threshold => {
            arguments.runs = given.runs * 3;
            arguments.workers = ["default", "2", "10"].map(str::to_owned).to_vec();
        }
    }
    arguments
}
