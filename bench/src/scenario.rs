//! What is measured: scenarios by name.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::data::{Repository, git};
use crate::peer::{Family, Peer};

/// One thing a user waits for.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// Brings the place into the state the command starts from; not timed.
    pub(crate) prepare: fn(&Place) -> Result<(), String>,
    /// The command to time, or `None` if this peer cannot do it.
    pub(crate) command: fn(&Peer, &Place) -> Option<Command>,
}

/// Where a scenario happens.
pub(crate) struct Place {
    source: PathBuf,
    older: String,
    newer: String,
    /// What a clone makes; removed before each run.
    fresh: PathBuf,
    /// A worktree of the newer commit that stays.
    worktree: PathBuf,
    /// A repository of one file.
    tiny: PathBuf,
}

impl Place {
    /// Sets up the worktrees that scenarios share, below `data`.
    pub(crate) fn new(data: &Path, repository: &Repository) -> Result<Self, String> {
        let place = Place {
            source: repository.path.clone(),
            older: repository.older.clone(),
            newer: repository.newer.clone(),
            fresh: data.join("fresh"),
            worktree: data.join(format!("{}-worktree", repository.name)),
            tiny: data.join("tiny"),
        };
        if !place.worktree.exists() {
            let target = place.worktree.to_string_lossy();
            git(&place.source, &["clone", "-q", "--shared", ".", &target])?;
        }
        if !place.tiny.exists() {
            std::fs::create_dir_all(&place.tiny).map_err(|error| error.to_string())?;
            git(&place.tiny, &["init", "-q"])?;
            std::fs::write(place.tiny.join("file"), "text\n").map_err(|error| error.to_string())?;
            git(&place.tiny, &["add", "file"])?;
            let identity = ["-c", "user.name=b", "-c", "user.email=b@example.com"];
            git(
                &place.tiny,
                &[&identity[..], &["commit", "-q", "-m", "one"]].concat(),
            )?;
        }
        Ok(place)
    }

    fn url(&self) -> String {
        format!("file://{}", self.source.display())
    }

    fn in_worktree(&self, peer: &Peer) -> Command {
        let mut command = peer.command();
        command.current_dir(&self.worktree);
        command
    }
}

/// All scenarios, in the order to run them.
pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        name: "version",
        what: "what starting the program costs",
        prepare: nothing,
        command: |peer, _| (peer.family == Family::Git).then(|| with(peer.command(), &["version"])),
    },
    Scenario {
        name: "status-tiny",
        what: "status in a repository of one file",
        prepare: nothing,
        command: |peer, place| {
            let mut command = status(peer, &[])?;
            command.current_dir(&place.tiny);
            Some(command)
        },
    },
    Scenario {
        name: "clone",
        what: "clone over file:// with a checkout",
        prepare: without_fresh,
        command: |peer, place| Some(clone(peer, place, &["-q"])),
    },
    Scenario {
        name: "clone-bare",
        what: "clone --bare over file://: receiving and indexing the pack",
        prepare: without_fresh,
        command: |peer, place| Some(clone(peer, place, &["-q", "--bare"])),
    },
    Scenario {
        name: "checkout",
        what: "checkout of the newer commit into an empty worktree",
        prepare: |place| {
            without_fresh(place)?;
            let fresh = place.fresh.to_string_lossy();
            git(
                &place.source,
                &["clone", "-q", "--shared", "--no-checkout", ".", &fresh],
            )?;
            Ok(())
        },
        command: |peer, place| {
            let mut command = checkout(peer, &place.newer)?;
            command.current_dir(&place.fresh);
            Some(command)
        },
    },
    Scenario {
        name: "switch",
        what: "checkout of the older commit where the newer one was",
        prepare: |place| {
            git(
                &place.worktree,
                &["checkout", "-q", "-f", "--detach", &place.newer],
            )?;
            settle(&place.worktree)
        },
        command: |peer, place| {
            let mut command = checkout(peer, &place.older)?;
            command.current_dir(&place.worktree);
            Some(command)
        },
    },
    Scenario {
        name: "status",
        what: "status, everything cached",
        prepare: settled_newer,
        command: |peer, place| {
            let mut command = status(peer, &["--porcelain"])?;
            command.current_dir(&place.worktree);
            Some(command)
        },
    },
    Scenario {
        name: "status-uno",
        what: "status without untracked files",
        prepare: settled_newer,
        command: |peer, place| {
            let git = peer.family == Family::Git;
            git.then(|| with(place.in_worktree(peer), &["status", "--porcelain", "-uno"]))
        },
    },
];

fn nothing(_place: &Place) -> Result<(), String> {
    Ok(())
}

fn without_fresh(place: &Place) -> Result<(), String> {
    match std::fs::remove_dir_all(&place.fresh) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    }
}

fn settled_newer(place: &Place) -> Result<(), String> {
    if git(&place.worktree, &["rev-parse", "HEAD"])? != place.newer {
        git(
            &place.worktree,
            &["checkout", "-q", "-f", "--detach", &place.newer],
        )?;
        settle(&place.worktree)?;
    }
    Ok(())
}

/// Lets the second of the checkout pass, then refreshes, so that no entry is racy.
fn settle(worktree: &Path) -> Result<(), String> {
    std::thread::sleep(std::time::Duration::from_millis(1100));
    git(worktree, &["status", "--porcelain"]).map(drop)
}

fn with(mut command: Command, arguments: &[&str]) -> Command {
    command.args(arguments);
    command
}

fn clone(peer: &Peer, place: &Place, options: &[&str]) -> Command {
    let mut command = peer.command();
    match peer.family {
        Family::Git => command.arg("clone").args(options),
        Family::Gix => command
            .arg("clone")
            .args(options.iter().filter(|&&option| option != "-q")),
        Family::Jgit => command.arg(if options.contains(&"--bare") {
            "clone-bare"
        } else {
            "clone"
        }),
    };
    command.arg(place.url()).arg(&place.fresh);
    command
}

fn checkout(peer: &Peer, commit: &str) -> Option<Command> {
    match peer.family {
        Family::Git => Some(with(
            peer.command(),
            &["checkout", "-q", "--detach", commit],
        )),
        Family::Jgit => Some(with(peer.command(), &["checkout", commit])),
        Family::Gix => None,
    }
}

fn status(peer: &Peer, options: &[&str]) -> Option<Command> {
    let mut command = with(peer.command(), &["status"]);
    if peer.family == Family::Git {
        command.args(options);
    }
    Some(command)
}
