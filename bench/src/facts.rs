//! A description of the machine, for each result.

use std::path::Path;

use crate::Arguments;
use crate::data::{Repository, git};
use crate::peer::Peer;

/// Named properties of the machine, in the order of printing.
pub(crate) type Facts = Vec<(String, String)>;

/// Collects the properties of this machine, of the file system of `data`, and of the programs.
pub(crate) fn collect(
    data: &Path,
    peers: &[Peer],
    repository: &Repository,
    arguments: &Arguments,
) -> Facts {
    let mut facts = bench::machine::facts(data);
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(delay) = arguments.slow {
        fact("added to each metadata call", format!("{delay:?}"));
    }
    if let Some(stroke) = arguments.seek {
        fact("disk with one arm, from end to end", format!("{stroke:?}"));
    }
    if let Some(place) = arguments.place {
        let kind = match place {
            crate::volume::Kind::Tmpfs => "in memory",
            _ => "an image, loop device",
        };
        fact("made for the run", format!("{}: {kind}", place.name()));
    }
    if arguments.cold {
        fact("page cache", "dropped before each run".to_owned());
    }
    if arguments.touch > 0 {
        let touched = format!(
            "{} GiB touched before each run that writes",
            arguments.touch
        );
        fact("memory given back to the host", touched);
    }
    fact("runs of each", arguments.runs.to_string());
    fact("repository", repository.name.clone());
    if let Ok(count) = git(&repository.path, &["count-objects", "-v"]) {
        let field = |name: &str| {
            count
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .unwrap_or("?")
                .to_owned()
        };
        fact("objects in packs", field("in-pack: "));
        fact("packs in KiB", field("size-pack: "));
    }
    for peer in peers {
        fact(&peer.name, peer.version.clone());
    }
    facts
}
