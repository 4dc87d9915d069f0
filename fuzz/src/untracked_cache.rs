//! Fuzzes the untracked cache (`UNTR`) of an index.

use bstr::ByteSlice;
use pronto_hash::Kind;
use pronto_index::UntrackedCache;

pub(crate) fn run(data: &[u8]) {
    let Some(mut cache) = UntrackedCache::parse(data, Kind::Sha1) else {
        return;
    };
    for at in 0..cache.len() {
        assert!(cache.end(at) > at && cache.end(at) <= cache.len());
        for child in cache.children(at) {
            let name = cache.directory(child).name.clone();
            assert_eq!(cache.child(at, name.as_ref()), Some(child));
        }
        let directory = cache.directory(at);
        assert_eq!(
            directory.untracked.iter().count(),
            directory.untracked.len()
        );
    }
    let mut bytes = Vec::new();
    cache.encode(&mut bytes);
    let again = UntrackedCache::parse(&bytes, Kind::Sha1).expect("it was encoded");
    let mut bytes_again = Vec::new();
    again.encode(&mut bytes_again);
    assert_eq!(bytes, bytes_again);
    let mut copy = cache.successor();
    if !cache.is_empty() {
        copy.copy(&cache, 0);
    }
    assert_eq!(copy, cache);
    cache.invalidate(data.as_bstr());
}
