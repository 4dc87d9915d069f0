//! Finds the files of a commit-graph, and checks that the files of a chain belong together.

use std::path::{Path, PathBuf};

use pronto_hash::ObjectId;
use pronto_io::view::FileView;

use super::layer::GraphLayer;
use super::{CommitGraph, Options, Remark};

/// Returns the path of a commit-graph with a single file, in an object directory.
pub fn single_path(objects: &Path) -> PathBuf {
    objects.join("info/commit-graph")
}

/// Returns the path of the file that lists the layers of a chain.
pub fn chain_path(objects: &Path) -> PathBuf {
    objects.join("info/commit-graphs/commit-graph-chain")
}

/// Returns the path of the layer `id`, a full id in hexadecimal digits.
pub fn layer_path(objects: &Path, id: &str) -> PathBuf {
    objects.join(format!("info/commit-graphs/graph-{id}.graph"))
}

pub(super) fn open(
    directories: &[impl AsRef<Path>],
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<CommitGraph> {
    (0..directories.len()).find_map(|number| open_in(directories, number, options, remarks)?.0)
}

/// Opens the commit-graph of the directory with this number. Also returns whether all files of its
/// chain are usable. Returns `None` if there are no files.
pub(super) fn open_in(
    directories: &[impl AsRef<Path>],
    number: usize,
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<(Option<CommitGraph>, bool)> {
    let objects = directories.get(number)?.as_ref();
    if let Some(mut layer) = open_layer(&single_path(objects), options, remarks) {
        layer.directory = number;
        let layers = vec![layer];
        return Some((Some(CommitGraph { layers }), true));
    }
    let text = read_chain(&chain_path(objects), options, remarks)?;
    Some(open_chain(&text, directories, options, remarks))
}

/// Opens the file at `path`; `None` if the file is missing or cannot be opened.
pub(super) fn open_layer(
    path: &Path,
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<GraphLayer> {
    let view = FileView::open(path, options.access).ok()?;
    GraphLayer::parse(view, path, options, remarks)
}

/// Reads the list of the layers of a chain. An empty list counts as a missing one.
pub(super) fn read_chain(
    path: &Path,
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<Vec<u8>> {
    let text = pronto_io::untrusted::content(path).ok()?;
    if text.is_empty() {
        return None;
    }
    if text.len() < options.kind.len_in_hex() {
        remarks.push(Remark::ChainTooSmall);
        return None;
    }
    Some(text)
}

/// Opens the layers listed in `text`, lowest first, up to the first layer that is missing or does
/// not belong to the chain. Also returns whether all layers were opened.
pub(super) fn open_chain(
    text: &[u8],
    directories: &[impl AsRef<Path>],
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> (Option<CommitGraph>, bool) {
    let mut layers: Vec<GraphLayer> = Vec::new();
    let mut complete = true;
    // The number of lines follows from the size: an incomplete last line is ignored.
    let count = text.len() / (options.kind.len_in_hex() + 1);
    for line in text.split(|byte| *byte == b'\n').take(count) {
        let hex_len = options.kind.len_in_hex();
        let Some(id) = line
            .get(..hex_len)
            .and_then(|hex| pronto_hash::parse_hex(hex).ok())
        else {
            let line = String::from_utf8_lossy(line).into_owned();
            remarks.push(Remark::ChainLine { line });
            complete = false;
            break;
        };
        let found = find_layer(&id, directories, options, remarks);
        let added = found.is_some_and(|layer| add_layer(&mut layers, layer, remarks));
        if !added {
            remarks.push(Remark::ChainFileMissing);
            complete = false;
            break;
        }
    }
    agree(&mut layers, remarks);
    let graph = (!layers.is_empty()).then_some(CommitGraph { layers });
    (graph, complete)
}

fn find_layer(
    id: &ObjectId,
    directories: &[impl AsRef<Path>],
    options: &Options,
    remarks: &mut Vec<Remark>,
) -> Option<GraphLayer> {
    let name = id.to_string();
    directories
        .iter()
        .enumerate()
        .find_map(|(number, objects)| {
            let path = layer_path(objects.as_ref(), &name);
            let mut layer = open_layer(&path, options, remarks)?;
            layer.directory = number;
            Some(layer)
        })
}

/// Adds `layer` on top of `layers`, if it belongs to them.
fn add_layer(
    layers: &mut Vec<GraphLayer>,
    mut layer: GraphLayer,
    remarks: &mut Vec<Remark>,
) -> bool {
    let mut refuse = |problem| {
        remarks.push(problem);
        false
    };
    if !layers.is_empty() {
        let Some(count) = layer.base_count() else {
            return refuse(Remark::NoBaseGraphs);
        };
        if count < layers.len() as u64 {
            return refuse(Remark::BaseGraphsTooSmall);
        }
    }
    for (number, below) in layers.iter().enumerate() {
        let named = layer.base(number).and_then(Result::ok);
        if named != Some(below.id) {
            return refuse(Remark::ChainMismatch);
        }
    }
    if let Some(top) = layers.last() {
        let Some(below) = top.below.checked_add(top.len()) else {
            return refuse(Remark::TooManyCommits { below: top.below });
        };
        layer.below = below;
    }
    if layer.below.checked_add(layer.len()).is_none() {
        let below = layer.below;
        return refuse(Remark::TooManyCommits { below });
    }
    layers.push(layer);
    true
}

/// Discards generation numbers unless all layers have the same version, and filters unless their
/// settings are equal.
fn agree(layers: &mut [GraphLayer], remarks: &mut Vec<Remark>) {
    if layers.iter().any(|layer| layer.generations.is_none()) {
        for layer in &mut *layers {
            layer.levels_only = true;
        }
    }
    let mut settings = None;
    for layer in layers.iter_mut().rev() {
        let Some(bloom) = &layer.bloom else {
            continue;
        };
        if *settings.get_or_insert(bloom.settings) != bloom.settings {
            layer.bloom = None;
            remarks.push(Remark::FiltersIncompatible { layer: layer.id });
        }
    }
}
