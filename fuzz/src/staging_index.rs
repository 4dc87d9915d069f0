//! Fuzzes an index file with all its extensions.

use pronto_hash::Kind;

pub(crate) fn run(data: &[u8]) {
    let Ok(index) = pronto_index::Index::from_bytes(data.to_vec(), Kind::Sha1) else {
        return;
    };
    for number in 0..index.len() {
        let _ = index.entry(number);
    }
    let _ = index.cached_tree();
    let _ = index.resolve_undo();
    if let Ok(Some(fsmonitor)) = index.fsmonitor() {
        fsmonitor.encode(&mut Vec::new());
    }
    if let Some(mut cache) = index.untracked_cache() {
        let mut bytes = Vec::new();
        cache.encode(&mut bytes);
        assert!(pronto_index::UntrackedCache::parse(&bytes, Kind::Sha1).is_some());
        cache.invalidate("a/b/c".into());
    }
}
