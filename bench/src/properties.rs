//! The properties of the machine on which a result was measured.

use std::path::Path;

use crate::Args;
use crate::data::{BenchRepository, git};
use crate::peer::BenchPeer;

/// Named properties of the machine, in the order of printing.
pub(crate) type MachineProperties = Vec<(String, String)>;

/// Collects the properties of this machine, of the file system of `data`, and of the programs.
pub(crate) fn collect(
    data: &Path,
    peers: &[BenchPeer],
    repository: &BenchRepository,
    arguments: &Args,
) -> MachineProperties {
    let mut properties = bench::machine::properties(data);
    let mut add = |name: &str, value: String| properties.push((name.to_owned(), value));
    if let Some(delay) = arguments.slow {
        add("added to each metadata call", format!("{delay:?}"));
    }
    if let Some(stroke) = arguments.seek {
        add("disk with one arm, from end to end", format!("{stroke:?}"));
    }
    if let Some(place) = arguments.place {
        let kind = match place {
            crate::volume::Kind::Tmpfs => "in memory",
            _ => "an image, loop device",
        };
        add("made for the run", format!("{}: {kind}", place.name()));
    }
    if arguments.cold {
        add("page cache", "dropped before each run".to_owned());
    }
    if arguments.touch > 0 {
        let touched = format!(
            "{} GiB touched before each run that writes",
            arguments.touch
        );
        add("memory given back to the host", touched);
    }
    add("runs of each", arguments.runs.to_string());
    add("repository", repository.name.clone());
    if let Ok(count) = git(&repository.path, &["count-objects", "-v"]) {
        let field = |name: &str| {
            count
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or("?")
                .to_owned()
        };
        add("objects in packs", field("in-pack: "));
        add("packs in KiB", field("size-pack: "));
    }
    for peer in peers {
        add(&peer.name, peer.version.clone());
    }
    properties
}
