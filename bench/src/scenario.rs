//! The scenarios by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::git;
use crate::peer::{BenchPeer, ProgramFamily};
use crate::place::ScenarioPaths;
use crate::threshold;

/// A command that users wait for.
pub(crate) struct BenchScenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Whether the command writes much. If so, dirty pages are written back before each run.
    pub(crate) writes: bool,
    /// Whether the command checks files out. If so, each number of workers counts as a separate
    /// program.
    pub(crate) checks_out: bool,
    /// The number of times that the command runs for one figure.
    pub(crate) repeat: u32,
    /// Prepares the state before the command, without being measured. The path is unused.
    pub(crate) prepare: fn(&ScenarioPaths, &Path) -> Result<(), String>,
    /// Returns the command to measure, or `None` if the program does not support the scenario.
    pub(crate) command: fn(&BenchPeer, &ScenarioPaths, &Path) -> Option<Command>,
    /// The file for the standard input of the command.
    pub(crate) input: fn(&ScenarioPaths) -> Option<PathBuf>,
}

/// The default for scenarios that only read and need no preparation.
pub(crate) const READING: BenchScenario = BenchScenario {
    name: "",
    what: "",
    writes: false,
    checks_out: false,
    repeat: 1,
    prepare: nothing,
    command: |_, _, _| None,
    input: |_| None,
};

/// Returns all scenarios in the order of running.
pub(crate) const ALL: &[BenchScenario] = &[
    BenchScenario {
        name: "version",
        what: "what starting the program costs",
        repeat: 200,
        command: |peer, _, _| {
            (peer.family == ProgramFamily::Git).then(|| with(peer.command(), &["version"]))
        },
        ..READING
    },
    BenchScenario {
        name: "status-tiny",
        what: "status in a repository of one file",
        repeat: 200,
        command: |peer, place, _| {
            // The start of a Java virtual machine takes much longer than this command, so JGit is
            // not measured here.
            let mut command = (peer.family != ProgramFamily::Jgit).then(|| status(peer, &[]))?;
            command.current_dir(&place.tiny);
            Some(command)
        },
        ..READING
    },
    BenchScenario {
        name: "clone",
        what: "clone over file:// with a checkout",
        writes: true,
        checks_out: true,
        command: |peer, place, fresh| Some(clone(peer, place, fresh, &["-q"])),
        ..READING
    },
    BenchScenario {
        name: "clone-bare",
        what: "clone --bare over file://: receiving and indexing the pack",
        writes: true,
        command: |peer, place, fresh| Some(clone(peer, place, fresh, &["-q", "--bare"])),
        ..READING
    },
    BenchScenario {
        name: "index-pack",
        what: "index-pack of the largest pack into an empty repository",
        writes: true,
        prepare: |place, fresh| {
            let fresh = fresh.to_string_lossy();
            git(&place.source, &["init", "-q", "--bare", &fresh]).map(drop)
        },
        command: index_pack,
        input: |place| Some(place.pack.clone()),
        ..READING
    },
    BenchScenario {
        name: "checkout",
        what: "checkout of the newer commit into an empty worktree",
        writes: true,
        checks_out: true,
        prepare: |place, fresh| {
            let fresh = fresh.to_string_lossy();
            let options = ["clone", "-q", "--shared", "--no-checkout", ".", &fresh];
            git(&place.source, &options).map(drop)
        },
        command: |peer, place, fresh| {
            let mut command = checkout(peer, &place.newer)?;
            command.current_dir(fresh);
            Some(command)
        },
        ..READING
    },
    BenchScenario {
        name: "switch",
        what: "checkout of the older commit where the newer one was",
        writes: true,
        checks_out: true,
        prepare: |place, fresh| {
            let fresh = fresh.to_string_lossy();
            let options = ["clone", "-q", "--shared", "--no-checkout", ".", &fresh];
            git(&place.source, &options)?;
            let newer = ["checkout", "-q", "-f", "--detach", &place.newer];
            git(Path::new(&*fresh), &newer)?;
            settle(Path::new(&*fresh))
        },
        command: |peer, place, fresh| {
            let mut command = checkout(peer, &place.older)?;
            command.current_dir(fresh);
            Some(command)
        },
        ..READING
    },
    BenchScenario {
        name: "status",
        what: "status, everything cached",
        repeat: 5,
        prepare: settled_newer,
        command: |peer, place, _| {
            let mut command = status(peer, &["--porcelain"]);
            command.current_dir(&place.worktree);
            Some(command)
        },
        ..READING
    },
    BenchScenario {
        name: "status-uno",
        what: "status without untracked files",
        repeat: 5,
        prepare: settled_newer,
        command: |peer, place, _| {
            let mut command = (peer.family == ProgramFamily::Git).then(|| peer.command())?;
            command.args(["status", "--porcelain", "-uno"]);
            command.current_dir(&place.worktree);
            Some(command)
        },
        ..READING
    },
    BenchScenario {
        name: "batch-check",
        what: "cat-file --batch-check of all objects, in the order of the packs",
        command: |peer, place, _| cat_file(peer, place, "--batch-check"),
        input: |place| Some(place.ids.clone()),
        ..READING
    },
    BenchScenario {
        name: "batch-check-random",
        what: "cat-file --batch-check of all objects, in random order",
        command: |peer, place, _| cat_file(peer, place, "--batch-check"),
        input: |place| Some(place.shuffled_ids.clone()),
        ..READING
    },
    BenchScenario {
        name: "batch",
        what: "cat-file --batch of all objects, in the order of the packs",
        command: |peer, place, _| cat_file(peer, place, "--batch"),
        input: |place| Some(place.ids.clone()),
        ..READING
    },
    threshold::of::<1>(THRESHOLDS[0]),
    threshold::of::<2>(THRESHOLDS[1]),
    threshold::of::<5>(THRESHOLDS[2]),
    threshold::of::<10>(THRESHOLDS[3]),
    threshold::of::<20>(THRESHOLDS[4]),
    threshold::of::<50>(THRESHOLDS[5]),
    threshold::of::<100>(THRESHOLDS[6]),
    threshold::of::<200>(THRESHOLDS[7]),
    threshold::of::<500>(THRESHOLDS[8]),
    threshold::of::<1000>(THRESHOLDS[9]),
    threshold::of::<2000>(THRESHOLDS[10]),
];

/// Returns the names of the scenarios with few files.
pub(crate) const THRESHOLDS: [&str; 11] = [
    "threshold-1",
    "threshold-2",
    "threshold-5",
    "threshold-10",
    "threshold-20",
    "threshold-50",
    "threshold-100",
    "threshold-200",
    "threshold-500",
    "threshold-1000",
    "threshold-2000",
];

fn nothing(_place: &ScenarioPaths, _fresh: &Path) -> Result<(), String> {
    Ok(())
}

fn settled_newer(place: &ScenarioPaths, _fresh: &Path) -> Result<(), String> {
    if git(&place.worktree, &["rev-parse", "HEAD"])? != place.newer {
        let newer = ["checkout", "-q", "-f", "--detach", &place.newer];
        git(&place.worktree, &newer)?;
        settle(&place.worktree)?;
    }
    Ok(())
}

/// Waits until the second of the checkout has passed, then refreshes the index, so that no entry is
/// racily clean.
pub(crate) fn settle(worktree: &Path) -> Result<(), String> {
    std::thread::sleep(std::time::Duration::from_millis(1100));
    git(worktree, &["status", "--porcelain"]).map(drop)
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}

fn clone(peer: &BenchPeer, place: &ScenarioPaths, fresh: &Path, options: &[&str]) -> Command {
    let mut command = peer.command();
    match peer.family {
        ProgramFamily::Git => command.arg("clone").args(options),
        ProgramFamily::Gix => command
            .arg("clone")
            .args(options.iter().filter(|&&option| option != "-q")),
        ProgramFamily::Jgit => command.arg(if options.contains(&"--bare") {
            "clone-bare"
        } else {
            "clone"
        }),
    };
    command.arg(place.url()).arg(fresh);
    command
}

fn index_pack(peer: &BenchPeer, place: &ScenarioPaths, fresh: &Path) -> Option<Command> {
    let mut command = peer.command();
    command.current_dir(fresh);
    match peer.family {
        ProgramFamily::Git => command.args(["index-pack", "--stdin"]),
        ProgramFamily::Gix => command
            .args(["free", "pack", "index", "create", "--pack-path"])
            .arg(&place.pack)
            .arg(fresh.join("objects/pack")),
        ProgramFamily::Jgit => command.arg("index-pack"),
    };
    Some(command)
}

fn checkout(peer: &BenchPeer, commit: &str) -> Option<Command> {
    match peer.family {
        ProgramFamily::Git => Some(with(
            peer.command(),
            &["checkout", "-q", "--detach", commit],
        )),
        ProgramFamily::Jgit => Some(with(peer.command(), &["checkout", commit])),
        ProgramFamily::Gix => None,
    }
}

fn status(peer: &BenchPeer, options: &[&str]) -> Command {
    let mut command = with(peer.command(), &["status"]);
    if peer.family == ProgramFamily::Git {
        command.args(options);
    }
    command
}

fn cat_file(peer: &BenchPeer, place: &ScenarioPaths, how: &str) -> Option<Command> {
    let mut command = (peer.family == ProgramFamily::Git).then(|| peer.command())?;
    command.args(["cat-file", how]).current_dir(&place.source);
    Some(command)
}
