//! Fuzzes a commit-graph: opens and searches it, and reads every commit and every Bloom filter.

use std::path::Path;

use pronto_hash::{Kind, ObjectId};
use pronto_io::view::FileView;
use pronto_pack::commit_graph::{CommitGraph, GraphPosition, Options};

pub(crate) fn run(data: &[u8]) {
    let view = FileView::from_bytes(data.to_vec());
    let (graph, _) = CommitGraph::from_view(view, Path::new("fuzzed"), &Options::default());
    let Some(graph) = graph else { return };
    let _ = graph.find(&ObjectId::null(Kind::Sha1));
    let (mut parents, mut filter) = (Vec::new(), Vec::new());
    for position in (0..graph.len().min(64)).map(GraphPosition) {
        if let Ok(id) = graph.id_at(position) {
            let _ = graph.find(&id);
        }
        let _ = graph.commit_at(position, &mut parents);
        let _ = graph.filter_at(position, &mut filter);
    }
}
